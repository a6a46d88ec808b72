"""Turns of the feeder: once for each time that the queue falls low, else after a pause."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connections
from django.utils import timezone

from tests.wms.placement.feeding.conftest import LEVEL, PAUSE_S, drain
from wms.core.models import AuditEntry
from wms.placement.feeding import operations
from wms.placement.feeding.models import Feeder
from wms.placement.feeding.operations import FeederEnd, begin_run, end_run, look, renew_lease
from wms.placement.feeding.running import wake_feeder
from wms.placement.operations import LEASE, LOST_CODE

NOW = timezone.now()
PAUSE = timedelta(seconds=PAUSE_S)
DONE = FeederEnd(0)


@pytest.fixture
def conf(set_feeder):
    return set_feeder(Path("/bin/true"))


def _run(conf, now=NOW, end: FeederEnd = DONE) -> bool:
    """One whole run, if one is due."""
    if not look(conf, now) or (run := begin_run(conf, now)) is None:
        return False
    return end_run(run.lease, end, conf, now)


@pytest.mark.django_db
def test_a_full_queue_is_not_fed_and_a_low_one_is(conf, fill):
    fill(LEVEL)
    assert not _run(conf)
    assert begin_run(conf, NOW) is None

    drain()
    fill(LEVEL - 1)

    assert _run(conf)
    assert Feeder.objects.get().active == LEVEL - 1


@pytest.mark.django_db
def test_it_runs_again_when_the_queue_was_full_in_between_and_not_before(conf, fill):
    assert _run(conf)
    assert not _run(conf)

    fill(LEVEL)
    assert not look(conf, NOW)
    drain()

    assert _run(conf)
    assert not _run(conf)


@pytest.mark.django_db
@pytest.mark.parametrize("when", ["at its end", "while it runs"])
def test_a_queue_that_it_filled_counts_as_full_however_soon_that_is_done(conf, fill, when):
    run = begin_run(conf, NOW)
    fill(LEVEL)
    if when == "while it runs":
        assert not look(conf, NOW)
        drain()
    end_run(run.lease, DONE, conf, NOW)
    drain()

    assert _run(conf)


@pytest.mark.django_db
@pytest.mark.parametrize("end", [DONE, FeederEnd(3), FeederEnd(1, "it was stopped")])
def test_a_run_that_does_not_fill_the_queue_is_repeated_after_the_pause(conf, fill, end):
    assert _run(conf, end=end)
    fill(LEVEL - 1)

    assert not _run(conf, NOW + PAUSE - timedelta(seconds=1))
    assert _run(conf, NOW + PAUSE)


@pytest.mark.django_db
def test_a_second_worker_that_looked_before_the_first_one_fed_does_not_run_it(conf, fill):
    assert look(conf, NOW)
    run = begin_run(conf, NOW)
    assert begin_run(conf, NOW) is None
    fill(LEVEL)
    end_run(run.lease, DONE, conf, NOW)

    assert begin_run(conf, NOW) is None
    assert Feeder.objects.get().runs == 1


@pytest.mark.django_db
def test_a_lease_that_is_not_renewed_ends_the_run_and_the_next_comes_after_the_pause(conf):
    run = begin_run(conf, NOW)
    assert renew_lease(run.lease, now=NOW + LEASE)
    late = NOW + 2 * LEASE + timedelta(seconds=1)
    assert not look(conf, NOW + 2 * LEASE)
    assert Feeder.objects.get().lease

    assert not look(conf, late)

    assert (Feeder.objects.get().exit_code, Feeder.objects.get().failures) == (LOST_CODE, 1)
    assert not renew_lease(run.lease, now=late)
    assert not end_run(run.lease, DONE, conf, late)
    assert _run(conf, late + PAUSE)


@pytest.mark.django_db
def test_the_trail_tells_when_runs_begin_to_fail_and_when_one_succeeds_again(conf):
    ends = [DONE, FeederEnd(7), FeederEnd(7), DONE, DONE]
    failures = []
    for n, end in enumerate(ends):
        assert _run(conf, NOW + n * PAUSE, end)
        failures.append(Feeder.objects.get().failures)

    assert failures == [0, 1, 2, 0, 0]
    told = AuditEntry.objects.filter(target=operations.TARGET).order_by("pk")
    assert [(each.facts["run"], each.facts["exit_code"]) for each in told] == [(2, 7), (4, 0)]


@pytest.mark.django_db
def test_without_a_feeder_nothing_is_counted(django_assert_num_queries):
    with django_assert_num_queries(0):
        assert not wake_feeder(NOW)


@pytest.mark.django_db(transaction=True)
def test_of_workers_at_once_one_runs_it(conf):
    barrier, runs = threading.Barrier(6), []

    def work() -> None:
        try:
            barrier.wait()
            runs.append(begin_run(conf, NOW))
        finally:
            connections["default"].close()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(runs) == 6
    assert sum(each is not None for each in runs) == 1
