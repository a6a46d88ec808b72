"""What is sampled of the negotiations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from wms.core import loops
from wms.core.models import ControlLoop
from wms.dags.models import NegotiationCycle
from wms.history.sampling import run_cycle
from wms.history.selectors import read_series
from wms.history.tasks import SAMPLER

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
SERIES = [f"negotiation.{name}" for name in ("requests", "matches", "unmatched", "seconds")]


def _cycle(second: float, *, matches: int) -> NegotiationCycle:
    return NegotiationCycle.objects.create(
        started_at=NOON + timedelta(seconds=second), publish_s=0.5, read_s=0.25, decide_s=0.125,
        carry_out_s=0.125, ads=1, requests=10, autoclusters=1, matches=matches, bound=matches,
        reasons={"no site fits": 3, "not looked at yet": 4},
    )  # fmt: skip


def _sample(second: float) -> dict[str, float | None]:
    """Sample as the loop does, each time into a bin of its own; the averages of the last bin."""
    now = NOON + timedelta(seconds=second)
    report = run_cycle(now)
    facts = {"report": dict(report), "period_s": 10}
    ControlLoop.objects.update_or_create(name=SAMPLER.name, defaults=facts)
    found = read_series(SERIES, archive="1min", now=now, since=now - timedelta(seconds=59))
    return {name: points[-1].average if points else None for name, points in found.items()}


def test_the_last_negotiation_and_the_matches_since_the_last_sample_are_sampled() -> None:
    _cycle(0, matches=2)
    assert list(_sample(0).values()) == [10, 2, 7, 1]

    for second in (20, 40, 60):
        _cycle(second, matches=5)
    assert list(_sample(60).values()) == [10, 15, 7, 1]


def test_without_a_new_negotiation_there_is_a_gap() -> None:
    _cycle(0, matches=2)
    _sample(0)

    assert set(_sample(120).values()) == {None}


def test_a_sampler_that_was_away_does_not_count_old_matches_as_new_ones() -> None:
    _cycle(0, matches=1)
    _sample(0)
    _cycle(10, matches=100)
    _cycle(3600, matches=3)

    assert _sample(3600)["negotiation.matches"] == 3


def test_the_loop_keeps_up_to_where_it_has_sampled() -> None:
    cycle = _cycle(0, matches=1)
    NegotiationCycle.objects.update(started_at=datetime.now(UTC))

    assert loops.run(SAMPLER)

    assert ControlLoop.objects.get(name="sampler").report["negotiation"] == cycle.pk
