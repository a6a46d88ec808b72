"""Closed and failing sites in the negotiation: they take no DAG, and the DAG is told why."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from tests.wms.dags.driving import NOW, advance, claim_one, end, match
from wms.core.actors import Actor
from wms.dags.models import Dag, MatchRecord
from wms.dags.negotiation import cycle as negotiation
from wms.pilots.models import Pilot
from wms.sites.advertising import advertise
from wms.sites.downtimes.services import add_downtime
from wms.sites.services import ban_site, drain_site, unban_site
from wms.sites.standing import standings
from wms.sites.throttling import PERIOD

NODE = "JOB A step.sub"
ACTOR = Actor.system("test")


def ban() -> None:
    ban_site("site-a", actor=ACTOR, reason="eats jobs")


def drain() -> None:
    drain_site("site-a", actor=ACTOR, reason="moves house")


def plan_downtime() -> None:
    add_downtime(
        "site-a",
        start=NOW + timedelta(hours=1),
        end=NOW + timedelta(hours=2),
        lead_time_s=3600,
        reason="new disks",
        actor=ACTOR,
        now=NOW,
    )


def fall_silent() -> None:
    text = 'Name = "site-a"\nClassAdLifetime = 60'
    advertise(text, actor=ACTOR, now=NOW - timedelta(seconds=60))


@pytest.mark.parametrize(
    ("close", "words"),
    [
        (ban, "banned by system:test since"),
        (drain, "draining by system:test since"),
        (plan_downtime, "before (from 2026-11-20 13:00 UTC) its downtime"),
        (fall_silent, "silent: what it advertised expired"),
    ],
)
def test_a_closed_site_takes_no_dag_and_says_why(
    submit, make_site, close: Callable[[], None], words: str
) -> None:
    make_site("site-a")
    bound = match(submit(NODE))
    close()

    waiting = match(submit(NODE))

    bound.refresh_from_db()
    assert (bound.state, waiting.state) == ("running", "idle")
    assert words in waiting.unmatched_reason


def test_a_site_that_is_opened_takes_dags_again(submit, make_site) -> None:
    make_site("site-a")
    ban()
    dag = match(submit(NODE))

    unban_site("site-a", actor=ACTOR, reason="repaired")

    assert match(dag).state == "running"


def run(submit, *, exit_code: int, at: datetime) -> None:
    """Let a DAG run and end at site-a, and its stay end at this time."""
    dag = submit(NODE)
    negotiation.run_cycle(at)
    advance(dag)
    attempt = claim_one()
    assert attempt is not None, dag.unmatched_reason
    end(attempt, exit_code)
    advance(dag)
    MatchRecord.objects.filter(dag=dag).update(ended_at=at)


@pytest.mark.slow
def test_a_site_that_fails_its_dags_gets_fewer_then_none_and_recovers(submit, make_site) -> None:
    site = make_site("site-a", max_matches=100, failure_threshold=3)
    for _ in range(4):
        run(submit, exit_code=1, at=NOW)
    first = NOW + PERIOD

    negotiation.run_cycle(first)
    # Half of the four matches of the period before.
    assert standings(first)[site.pk].allowance == 2
    waiting = [submit(NODE) for _ in range(3)]
    negotiation.run_cycle(first)
    assert Dag.objects.filter(pk__in=[dag.pk for dag in waiting], state="running").count() == 2
    negotiation.run_cycle(first + timedelta(seconds=5))
    left = Dag.objects.get(state="idle")
    assert "throttled until 2026-11-20 12:20 UTC" in left.unmatched_reason

    negotiation.run_cycle(first + PERIOD)
    left.refresh_from_db()
    assert left.state == "running"
    assert standings(first + PERIOD)[site.pk].allowance is None


def test_failing_pilots_count_as_well(submit, make_site) -> None:
    site = make_site("site-a", failure_threshold=3)
    Pilot.objects.bulk_create(
        Pilot(queue=site.queues.get(), batch="b", state="aborted", ended_at=NOW) for _ in range(9)
    )

    negotiation.run_cycle(NOW + PERIOD)

    assert standings(NOW + PERIOD)[site.pk].allowance == 3
