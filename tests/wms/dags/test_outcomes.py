"""What counts as a failure of a site."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from matching.negotiation.failure_throttle import Outcomes
from wms.core.models import User
from wms.dags.models import MatchRecord
from wms.dags.negotiation.site_performance import site_outcomes
from wms.pilots.models import Pilot
from wms.sites.models import Site

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
PERIOD = timedelta(minutes=10)
DAG = "JOB A step.sub\n"


def pilots(site: Site, states: list[str], *, ended_at: datetime = NOW) -> None:
    queue = site.queues.get()
    Pilot.objects.bulk_create(
        Pilot(queue=queue, state=state, batch="b", token_sha256="t", ended_at=ended_at)
        for state in states
    )


def stay(dag, site: Site, end: str, *, ended_at: datetime = NOW) -> None:
    MatchRecord.objects.create(
        dag=dag, site=site, matched_at=NOW - PERIOD, ended_at=ended_at, end=end
    )


def test_pilots_and_dags_are_counted_by_site(make_site, submit) -> None:
    bad, good, idle = make_site("bad"), make_site("good"), make_site("idle")
    dag = submit(DAG)
    pilots(bad, ["failed", "failed", "aborted", "done", "removed"])
    pilots(good, ["done"])
    for end in ("fail", "policy", "complete", "rematch", "remove", "hold"):
        stay(dag, bad, end)
    stay(dag, good, "complete")

    outcomes = site_outcomes(NOW, NOW + PERIOD)

    assert outcomes == {bad.pk: Outcomes(5, 2), good.pk: Outcomes(0, 2)}
    assert idle.pk not in outcomes


def test_what_ended_before_or_after_is_not_counted(make_site, submit) -> None:
    site, dag = make_site(), submit(DAG)
    for at in (NOW - timedelta(microseconds=1), NOW + PERIOD):
        pilots(site, ["failed"], ended_at=at)
        stay(dag, site, "fail", ended_at=at)
    MatchRecord.objects.create(dag=dag, site=site, matched_at=NOW)

    assert site_outcomes(NOW, NOW + PERIOD) == {}


def test_it_takes_three_queries(make_site, alice: User, django_assert_num_queries) -> None:
    for number in range(4):
        pilots(make_site(f"site-{number}"), ["failed"])

    with django_assert_num_queries(3):
        assert len(site_outcomes(NOW, NOW + PERIOD)) == 4
