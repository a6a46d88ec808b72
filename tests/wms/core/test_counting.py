"""Bounded counts: exact up to a limit, estimated above it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from tests import factories
from wms.core.database import counting
from wms.core.database.counting import Count, count_up_to, counts_by_state, summarise
from wms.dags.models import Dag
from wms.dags.services.dags import hold_dags
from wms.dags.states import DagState


@pytest.fixture
def people(db: None) -> SimpleNamespace:
    return factories.people()


@pytest.fixture
def dags(people: SimpleNamespace) -> list[Dag]:
    """Five idle DAGs, then two held ones of Bob."""
    made = [factories.dag(people.alice, name=f"{n}.dag", node_count=1) for n in range(5)]
    held = [factories.dag(people.bob, name=f"held{n}.dag", node_count=1) for n in range(2)]
    hold_dags([dag.pk for dag in held], actor=factories.SYSTEM, reason="look")
    return made + held


def _summary(listed, **options):
    return summarise(
        listed,
        every_state=Dag.objects.all(),
        states=DagState.values,
        groups={"owner": F("owner__username")},
        **options,
    )


def test_a_short_list_is_counted_exactly_in_one_query(dags: list[Dag]) -> None:
    with CaptureQueriesContext(connection) as queries:
        summary = _summary(Dag.objects.filter(state="held"))

    assert summary.states["idle"] == Count(5)
    assert summary.states["held"] == Count(2)
    assert summary.states["failed"] == Count(0)
    assert summary.groups == {"owner": [("bob", 2)]}
    assert not summary.is_sample
    assert len(queries) == 1


def test_a_list_of_any_state_is_looked_through_once_for_its_states_and_values(
    dags: list[Dag],
) -> None:
    of_bob = Dag.objects.filter(owner__username="bob")
    with CaptureQueriesContext(connection) as queries:
        summary = summarise(
            of_bob, every_state=of_bob, states=["held"], groups={"site": F("site__name")}
        )

    assert summary.states["held"] == Count(2)
    # Once for all rows, and once for each state, which is looked for only if there are many.
    assert queries[0]["sql"].count("'bob'") == 2


def test_the_most_frequent_values_come_first_and_only_so_many(dags: list[Dag]) -> None:
    every = _summary(Dag.objects.all())
    one = _summary(Dag.objects.all(), top=1)

    assert every.groups["owner"] == [("alice", 5), ("bob", 2)]
    assert one.groups["owner"] == [("alice", 5)]


def test_above_the_limit_states_are_estimated_and_groups_are_of_the_latest(
    dags: list[Dag], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "EXACT_UP_TO", 3)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE dags_dag")

    summary = _summary(Dag.objects.all())

    assert summary.states["idle"].is_estimate
    assert summary.states["idle"].value >= 4
    assert summary.states["held"] == Count(2)
    assert summary.is_sample
    assert sum(count for _, count in summary.groups["owner"]) == 3


def test_a_list_that_can_have_no_rows_is_counted_without_reading_any(dags: list[Dag]) -> None:
    nothing = Dag.objects.none()

    summary = summarise(
        nothing, every_state=nothing, states=["idle"], groups={"owner": F("owner__username")}
    )

    assert summary.states == {"idle": Count(0)}
    assert summary.groups == {"owner": []}


def test_counts_by_state_agree_with_the_summary(dags: list[Dag]) -> None:
    assert counts_by_state(Dag.objects.all(), DagState.values) == _summary(Dag.objects.all()).states


def test_an_estimate_of_several_states_belongs_to_each_of_them(
    dags: list[Dag], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "EXACT_UP_TO", 1)

    counts = counts_by_state(Dag.objects.all(), ["idle", "held", "failed"])

    assert counts["idle"].is_estimate
    assert counts["held"].is_estimate
    assert counts["failed"] == Count(0)


def test_the_rows_of_a_shared_branch_are_those_of_all_workers(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = {"Node Type": "Seq Scan", "Parallel Aware": True, "Plan Rows": 100}
    alone = {"Node Type": "Index Scan", "Plan Rows": 7}
    append = {"Node Type": "Append", "Plan Rows": 107, "Plans": [shared, alone]}
    gather = {"Node Type": "Gather", "Workers Planned": 2, "Plan Rows": 247, "Plans": [append]}
    monkeypatch.setattr(counting, "_read", lambda *_: [([{"Plan": gather}],)])

    assert counting._estimates([Dag.objects.all(), Dag.objects.all()]) == [240, 7]


def test_counting_stops_one_behind_the_limit(dags: list[Dag]) -> None:
    assert count_up_to(Dag.objects.all(), 10) == 7
    assert count_up_to(Dag.objects.all(), 3) == 4
