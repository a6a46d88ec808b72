"""Time that pilots were told by their batch systems, and CPU power of their nodes, in messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from tests.portal.pilot_api.pilot_client import NODE, PilotClient
from wms.pilots.models import Pilot
from wms.sites.cpu_power import power_of
from wms.sites.models import Queue

pytestmark = pytest.mark.django_db

#: What a pilot with nothing to tell about its benchmark says of it.
RESULT = {
    "key": "benchmark:0", "name": "benchmark", "is_ok": True, "kind": "", "reason": "",
    "metrics": {"db12": 20.0}, "seconds": 1.0,
}  # fmt: skip


def measured(client: PilotClient, power: Any, number: int = 0) -> Pilot:
    """The pilot after its node has told this power."""
    result = {**RESULT, "key": f"benchmark:{number}", "attributes": {"CpuPower": power}}
    assert client.post("checks", {"checks": [result]}).status_code == 200
    return Pilot.objects.select_related("queue").get(pk=client.pilot.pk)


def test_the_batch_systems_time_is_kept_with_its_source_until_it_changes(
    fresh: PilotClient,
) -> None:
    began = timezone.now().timestamp()
    fresh.register(node={**NODE, "time_source": "slurm", "time_left_s": 1000})
    node = Pilot.objects.get().node
    assert node["time_source"] == "slurm"
    assert 0 <= node["ends_at"] - int(began) - 1000 < 60

    for sequence, told, ends in (
        (2, {"time_source": "slurm"}, None),
        # Kept back by the network: the later one counts.
        (1, {"time_source": "htcondor", "time_left_s": 5}, None),
        (3, {}, None),
    ):
        answer = fresh.post("heartbeat", {"jobs": [], "sequence": sequence, **told})
        assert answer.status_code == 200
        node = Pilot.objects.get().node
        assert (node["time_source"], node["ends_at"]) == ("slurm", ends)
    for field, wrong in (("time_source", "root"), ("time_left_s", -1), ("time_left_s", "1 h")):
        body = {"jobs": [], "time_source": "slurm", field: wrong}
        answer = fresh.post("heartbeat", body)
        assert answer.json()["errors"][0]["field"] == field


def test_a_job_comes_where_the_time_left_times_the_power_is_enough(
    registered: PilotClient, queue: Queue, make_job: Callable[..., int]
) -> None:
    job = make_job(cpu_time_s=5000)

    assert registered.ask(cpu_time_s=2500).json()["job"] is None
    measured(registered, 1.99)
    assert registered.ask(cpu_time_s=2500).json()["job"] is None
    measured(registered, 2, 1)
    given = registered.ask(cpu_time_s=2500).json()["job"]
    # What the payload may use of this node's time is half of it.
    assert (given["job"], given["cpu_time_s"]) == (job, 2500)


def test_the_queues_power_counts_for_a_node_that_measured_none_and_bounds_the_others(
    registered: PilotClient, queue: Queue, make_job: Callable[..., int]
) -> None:
    Queue.objects.update(cpu_power=0.5)
    make_job(cpu_time_s=500, requirements="CpuPower == 0.5 && CpuTimeLeft >= 500")

    for number, power in enumerate([0, -1, float("nan"), 1e9, 2.1, "fast", None, 0.12, [1]]):
        pilot = measured(registered, power, number)
        assert power_of(pilot.queue, pilot.published) == 0.5
        assert pilot.checks.latest("pk").skipped
    assert registered.ask(cpu_time_s=999).json()["job"] is None
    assert registered.ask(cpu_time_s=1000).json()["job"] is not None
    pilot = measured(registered, 1.9, 20)
    assert power_of(pilot.queue, pilot.published) == 1.9
    # What was believed is not, once the queue says that its nodes are others.
    pilot.queue.cpu_power = 0.1
    assert power_of(pilot.queue, pilot.published) == 0.1


def test_no_measure_lets_a_pilot_offer_more_than_the_time_of_its_queue(
    registered: PilotClient, make_job: Callable[..., int]
) -> None:
    Queue.objects.update(wall_time_s=1000)
    measured(registered, 4)
    make_job(cpu_time_s=5000)

    assert registered.ask(cpu_time_s=2**31 - 1).json()["job"] is None
