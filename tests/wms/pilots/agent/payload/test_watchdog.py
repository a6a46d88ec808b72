from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from wms.pilots.agent.payload.meter import next_measurement_s
from wms.pilots.agent.resources.limits import Limits
from wms.pilots.agent.resources.usage import Usage
from wms.pilots.agent.resources.watchdog import Watchdog
from wms.sites.queue_validation import PAYLOAD_LIMITS

ALL = Limits(
    wall_s=100,
    cpu_s=50,
    memory_mb=200,
    disk_mb=300,
    output_mb=10,
    processes=20,
    progress_ratio=0.1,
    progress_s=30,
)


@pytest.mark.parametrize(
    ("used", "resource"),
    [
        ({"wall_s": 100.0}, "wall-clock"),
        ({"cpu_s": 50.5}, "CPU"),
        ({"memory_mb": 200.4}, "memory"),
        ({"disk_mb": 1234.0}, "disk"),
        ({"output_mb": 10.25}, "stdout"),
        ({"processes": 21}, "processes"),
        ({"disk_free_mb": 20.0, "disk_mb": 90.0}, "the node's disk"),
    ],
)
def test_a_payload_over_a_limit_is_stopped_for_this_resource(
    used: dict[str, Any], resource: str
) -> None:
    assert Watchdog(ALL).why_stop(Usage(**used)).startswith(resource)


def test_what_is_at_its_limits_goes_on() -> None:
    seen = Usage(wall_s=99, cpu_s=50, memory_mb=200, disk_mb=300, output_mb=10, processes=20)

    assert Watchdog(ALL).why_stop(seen) == ""


def test_a_small_user_of_a_full_disk_goes_on() -> None:
    assert Watchdog(ALL).why_stop(Usage(disk_free_mb=0.0, disk_mb=3.0)) == ""


def test_a_payload_without_progress_is_stopped_after_the_time() -> None:
    watchdog = Watchdog(ALL)

    reasons = [watchdog.why_stop(Usage(wall_s=t, cpu_s=min(t, 20.0))) for t in range(0, 60, 2)]

    stopped = next(n for n, reason in enumerate(reasons) if reason)
    assert stopped * 2 == 48
    assert reasons[stopped].startswith("no progress")
    assert "6.7%" in reasons[stopped]


def test_a_payload_that_tells_of_itself_may_idle() -> None:
    watchdog = Watchdog(ALL)

    assert not any(watchdog.why_stop(Usage(wall_s=t, may_idle=True)) for t in range(0, 99, 3))


def test_a_short_burst_of_processes_is_no_load() -> None:
    limits = Limits(load=10.0, progress_ratio=0.0)

    watchdog = Watchdog(limits)
    short = [watchdog.why_stop(Usage(wall_s=t, busy=100 if t < 4 else 1)) for t in range(200)]
    watchdog = Watchdog(limits)
    long = [watchdog.why_stop(Usage(wall_s=t, busy=100)) for t in range(200)]

    assert not any(short)
    assert next(filter(None, long)).startswith("load")


def test_a_job_narrows_the_limits_of_its_queue_and_cannot_widen_them() -> None:
    queue = Limits.of({"wall_s": 100, "memory_mb": 500})

    narrowed = queue.narrowed(wall_s=1000, cpu_s=60, memory_mb=200, disk_mb=0)

    assert (narrowed.wall_s, narrowed.cpu_s, narrowed.memory_mb) == (100, 60, 200)
    assert narrowed.disk_mb is None


def test_limits_that_are_no_numbers_are_passed_over() -> None:
    told = {"wall_s": "1", "cpu_s": True, "memory_mb": -5, "colour": 3, "grace_s": None}

    assert Limits.of({**told, "disk_mb": 7, "output_mb": 0}) == Limits(disk_mb=7, output_mb=None)


def test_looks_are_close_at_first_and_never_take_much_of_the_time() -> None:
    assert next_measurement_s(0.0, 0.001) == 0.1
    assert next_measurement_s(4.0, 0.001) == 1.0
    assert next_measurement_s(1000.0, 0.001) == 2.0
    assert next_measurement_s(0.1, 0.03) == 1.5


def test_the_portal_knows_all_limits() -> None:
    assert tuple(each.name for each in fields(Limits)) == PAYLOAD_LIMITS
