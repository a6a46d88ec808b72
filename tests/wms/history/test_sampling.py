"""What is sampled of states, sites, control loops and negotiations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from tests import factories
from wms.core import loops
from wms.core.models import ControlLoop, User
from wms.dags.models import NegotiationCycle
from wms.history.models import Series
from wms.history.sampling import run_cycle
from wms.history.selectors import read_series
from wms.history.tasks import SAMPLER
from wms.pilots.pressure.director import plan_requests
from wms.pilots.pressure_models import PressureRequest
from wms.sites.services import ban_site

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
NEGOTIATION = [f"negotiation.{name}" for name in ("requests", "unmatched", "seconds")]


def sample(now: datetime) -> None:
    """Sample as the loop does, each time with the report of the time before."""
    facts = {"report": dict(run_cycle(now)), "period_s": 10}
    ControlLoop.objects.update_or_create(name=SAMPLER.name, defaults=facts)


def latest(*names: str, now: datetime) -> dict[str, float | None]:
    """The averages of the last bins of a minute."""
    found = read_series(names, archive="1min", now=now, since=now.replace(second=0, microsecond=0))
    return {name: points[-1].average if points else None for name, points in found.items()}


def _cycle(second: float, *, matches: int) -> NegotiationCycle:
    return NegotiationCycle.objects.create(
        started_at=NOON + timedelta(seconds=second), publish_s=0.5, read_s=0.25, decide_s=0.125,
        carry_out_s=0.125, ads=1, requests=10, autoclusters=1, matches=matches, bound=matches,
        reasons={"no site fits": 3, "not looked at yet": 4},
    )  # fmt: skip


def test_the_sampler_counts_every_state(submit) -> None:
    submit("JOB A step.sub")

    sample(NOON)

    assert latest("dags.idle", "dags.running", now=NOON) == {"dags.idle": 1, "dags.running": 0}
    assert Series.objects.filter(name="pilots.running").exists()


def test_the_last_negotiation_is_sampled_once() -> None:
    _cycle(0, matches=2)
    sample(NOON)
    assert list(latest(*NEGOTIATION, now=NOON).values()) == [10, 7, 1]

    later = NOON + timedelta(seconds=120)
    sample(later)

    assert set(latest(*NEGOTIATION, now=later).values()) == {None}


def test_demand_is_sampled_as_it_is_and_not_cut_down_to_what_is_granted(alice: User) -> None:
    now = timezone.now()
    site = factories.site("UW")
    factories.running_dag(alice, node_count=40)
    factories.pilot(site.queues.get())
    plan_requests(now)
    PressureRequest.objects.update(wanted=40, granted=3)

    sample(now)

    names = [f"pilots.{name}@UW" for name in ("requested", "granted", "running", "queued")]
    assert list(latest(*names, now=now).values()) == [40, 3, 1, 0]
    assert latest("pilots.requested", now=now) == {"pilots.requested": 40}


def test_pressure_that_nobody_renews_is_a_gap(alice: User) -> None:
    now = timezone.now()
    factories.site("UW")
    plan_requests(now)
    later = now + timedelta(hours=1)

    sample(later)

    assert latest("pilots.requested@UW", "pilots.running@UW", now=later) == {
        "pilots.requested@UW": None,
        "pilots.running@UW": 0,
    }


def test_sites_are_counted_as_they_stand(alice: User) -> None:
    now = timezone.now()
    for name in ("A", "B"):
        factories.site(name)
    ban_site("B", actor=factories.SYSTEM, reason="disk full")

    sample(now)

    names = ["sites.enabled", "sites.banned", "sites.draining"]
    assert list(latest(*names, now=now).values()) == [1, 1, 0]


def test_only_loops_that_run_have_a_duration() -> None:
    for name, ago in (("director", 2), ("negotiator", 3600)):
        started = NOON - timedelta(seconds=ago)
        ControlLoop.objects.create(name=name, period_s=5, started_at=started, duration_s=0.25)

    sample(NOON)

    names = ["loop.director.seconds", "loop.negotiator.seconds"]
    assert list(latest(*names, now=NOON).values()) == [0.25, None]


def test_a_clock_that_was_set_back_leaves_a_gap_and_not_samples_of_another_time() -> None:
    sample(NOON)
    sample(NOON - timedelta(minutes=10))
    sample(NOON + timedelta(minutes=1))

    points = read_series(["dags.idle"], archive="1min", now=NOON + timedelta(minutes=1))
    assert [point.start for point in points["dags.idle"]] == [NOON, NOON + timedelta(minutes=1)]


def test_the_loop_keeps_what_it_has_sampled_and_counted() -> None:
    cycle = _cycle(0, matches=1)
    NegotiationCycle.objects.update(started_at=datetime.now(UTC))

    assert loops.run(SAMPLER)

    report = ControlLoop.objects.get(name="sampler").report
    assert report["negotiation"] == cycle.pk
    assert datetime.fromisoformat(report["counted_until"]) <= datetime.now(UTC)
