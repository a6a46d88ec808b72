"""Lifetime of a pilot: retirement, shutdown when idle, end."""

from __future__ import annotations

import pytest

from wms.pilots.agent.control import Control
from wms.pilots.agent.session.lifetime_rules import lifetime, pilot_shutdown
from wms.pilots.agent.session.pilot_config import LifetimeSettings
from wms.pilots.agent.session.pilot_lifetime import FINAL_REPORTS_S, PilotLifetime

HOUR_S = 3600


def life(
    elapsed_s: float = 0, *, lifetime_s: float = HOUR_S, draw: int = 0, **settings: float
) -> PilotLifetime:
    return PilotLifetime(
        Control(clock=lambda: 5000 + elapsed_s),
        started=5000.0,
        lifetime_s=lifetime_s,
        idle_limit_s=30.0,
        settings=LifetimeSettings(**settings),
        random100=lambda: draw,
    )


def judged(life: PilotLifetime, **now: float) -> tuple[bool, list[str | None], bool]:
    found = life.shutdown_decision(
        **({"idle_s": 0.0, "job_starts": 0, "running": 0, "draining": False} | now)
    )
    return found.shutdown, found.reasons, found.accepts_jobs


def test_a_job_may_need_the_time_that_is_left_less_the_stop_margin() -> None:
    assert life(600, stop_margin_s=60).left_s() == HOUR_S - 60 - 600


def test_the_pilots_of_a_batch_do_not_end_together() -> None:
    ends = {life(draw=draw, retire_spread_s=300).times.die_after for draw in range(100)}

    assert ends == set(range(HOUR_S - 297, HOUR_S + 1, 3))


def test_no_job_begins_that_could_not_end() -> None:
    assert judged(life(1799, job_max_s=1800))[2]
    assert not judged(life(1800, job_max_s=1800))[2]


@pytest.mark.parametrize(
    ("idle_s", "job_starts", "reason"),
    [(30, 0, None), (31, 0, "idle_nojob"), (31, 2, None), (61, 2, "idle_tail")],
)
def test_a_pilot_waits_for_jobs_before_its_first_and_after_its_last(
    idle_s: float, job_starts: int, reason: str | None
) -> None:
    found = judged(life(100, tail_limit_s=60), idle_s=idle_s, job_starts=job_starts)

    assert found == (reason is not None, [reason], True)


def test_jobs_that_run_keep_a_pilot_alive_up_to_its_end() -> None:
    assert not judged(life(100), idle_s=1000, running=1)[0]
    assert judged(life(HOUR_S + 1), running=1) == (True, ["to_die"], False)


def test_after_its_end_the_pilot_has_time_for_last_words_and_is_told_to_go_then() -> None:
    later_s = [10.0]
    control = Control(clock=lambda: later_s[0])
    own = PilotLifetime(
        control,
        started=0.0,
        lifetime_s=10,
        idle_limit_s=1,
        settings=LifetimeSettings(),
        random100=lambda: 0,
    )

    own.watch()
    control.waker.wait(0.2)
    assert not control.is_terminated
    later_s[0] += FINAL_REPORTS_S
    control.kill((0, 0))  # no attempt of its own: it only rings the wakers
    while not control.is_terminated:
        control.waker.wait(1.0)

    assert own.is_over
    assert not control.is_preempted


@pytest.mark.parametrize("walltime", range(0, 200_000, 7919))
@pytest.mark.parametrize("draw", [0, 50, 99])
def test_nothing_ends_after_the_slot_and_no_job_longer_than_the_most_is_cut(
    walltime: int, draw: int
) -> None:
    found = lifetime(max_walltime=walltime, random100=draw)

    assert found.die_after <= walltime - 490
    assert found.retire_after + found.job_max_time == found.die_after
    assert found.abort == (found.retire_after < 600)


def test_a_pilot_without_a_slot_that_is_free_stays() -> None:
    busy = {"activity": "Busy", "state": "Claimed", "job_starts": 1, "partitionable": False}

    found = pilot_shutdown(now=10, to_retire=5, to_die=20, slots=[busy])

    assert (found.shutdown, found.reasons, found.accepts_jobs) == (False, [None], False)
