"""Director and status agent with real pilots on this host, behind a batch system that fails."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from tests.wms.elements.faulty import Fault, FaultyElement
from tests.wms.pilots.directing import direct, poll
from wms.elements.host import HostElement
from wms.elements.protocol import BatchState
from wms.pilots.models import Pilot

pytestmark = pytest.mark.process


@pytest.fixture
def now() -> datetime:
    return timezone.now()


@pytest.fixture
def host(make_queue, elements, tmp_path: Path, settings) -> Iterator[FaultyElement]:
    """Three slots of this host; no server answers the pilots, so they keep trying."""
    settings.PILOTAGE = {**settings.PILOTAGE, "PUBLIC_URL": "http://127.0.0.1:9"}
    make_queue()
    real = HostElement(tmp_path / "pilots", slots=3, cancel_grace_s=1)
    elements["site-a"] = FaultyElement(real)
    yield elements["site-a"]
    real.cancel([name for pilot in Pilot.objects.all() for name in [pilot.native_id] if name])


def test_the_free_slots_of_a_batch_system_without_a_queue_are_filled(
    host: FaultyElement, add_jobs, now: datetime
) -> None:
    add_jobs(5)

    turn = direct(now)["site-a/main"]
    again = direct(now)["site-a/main"]

    assert (turn.submitted, again.submitted) == (3, 0)
    assert "3 of 3 slots" in str(turn.reasons)
    assert "0 of 3 slots" in str(again.reasons)


@pytest.mark.parametrize("fault", [Fault.TIMEOUT, Fault.REFUSED, Fault.EMPTY, Fault.TRUNCATED])
def test_pilots_that_run_are_not_given_up_nor_replaced_whatever_is_said(
    host: FaultyElement, add_jobs, now: datetime, fault: Fault
) -> None:
    add_jobs(2)
    direct(now)
    poll(now)
    host.fault, host.methods = fault, frozenset({"status"})

    for minutes in range(1, 10):
        poll(now + timedelta(minutes=minutes))
        direct(now + timedelta(minutes=minutes))

    pilots = list(Pilot.objects.all())
    assert [pilot.state for pilot in pilots] == ["queued", "queued"]
    there = host.inner.status([pilot.native_id for pilot in pilots]).values()
    assert {pilot.state for pilot in there} <= {BatchState.QUEUED, BatchState.RUNNING}


def test_a_submission_whose_answer_was_lost_is_found_and_not_repeated(
    host: FaultyElement, add_jobs, now: datetime
) -> None:
    host.fault, host.methods = Fault.LOST, frozenset({"submit"})
    add_jobs(2)
    direct(now)
    host.fault = None

    for minutes in (1, 2, 3, 4):
        direct(now + timedelta(minutes=minutes))
        poll(now + timedelta(minutes=minutes))

    assert Pilot.objects.count() == 2
    assert {pilot.state for pilot in Pilot.objects.all()} == {"queued"}
    assert host.inner.capacity().free == 1
