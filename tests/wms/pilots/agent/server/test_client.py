"""Client of the pilot API, with the real portal as its server."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

from tests.wms.pilots.agent.conftest import SECRET, World
from wms.pilots.agent.control import Control, Waker
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


class _Busy(BaseHTTPRequestHandler):
    """A server that has no place for the first request, and asks to come again."""

    asked: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.asked.append(self.path)
        self.send_response(200 if len(self.asked) > 1 else 503)
        self.send_header("Retry-After", "40")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:
        """Not to the test's output."""


class _Pauses(Waker):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[float] = []

    def wait(self, timeout_s: float | None) -> None:
        self.found.append(timeout_s or 0.0)


def test_a_pilot_comes_again_when_an_overloaded_portal_asks_it_to_and_not_with_others() -> None:
    waker = _Pauses()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Busy) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        client = Client(url, "a", TOKEN, Control(), waker=waker)
        answer = client.call("claim", {})
        server.shutdown()

    assert (answer, len(_Busy.asked)) == ({}, 2)
    assert 40 < waker.found[0] < 41
