"""Client of the pilot API, with the real portal as its server."""

from __future__ import annotations

from tests.wms.pilots.agent.conftest import SECRET, World
from wms.pilots.agent.control import Control
from wms.pilots.agent.server.client import Client
from wms.pilots.models import Pilot
from wms.pilots.protocol.registration import secret_digest

TOKEN = "ab" * 32
NODE = {
    "hostname": "wn1",
    "platform": "linux-x86_64",
    "cores": 1,
    "memory_mb": 1000,
    "disk_mb": 1000,
    "slot_cores": 1,
    "slot_memory_mb": 1000,
    "slot_gpus": 0,
    "python": "3.9.2",
    "agent_version": "0.1.0",
}


def test_names_of_the_node_that_are_no_text_are_sent_as_the_server_can_store_them(
    world: World,
) -> None:
    pilot = Pilot.objects.create(
        queue=world.queue, batch="batch", secret_sha256=secret_digest(SECRET)
    )
    client = Client(world.server.url, str(pilot.uuid), TOKEN, Control())
    node = NODE | {"hostname": "w\udcffn\0", "platform": "linux-ä😀"}

    client.call(
        "register",
        {"pilot": str(pilot.uuid), "secret": SECRET, "token": TOKEN, "node": node},
        is_authorised=False,
    )

    pilot.refresh_from_db()
    assert pilot.node == node | {"hostname": "w?n?", "fence": "none", "fence_found": ""}
