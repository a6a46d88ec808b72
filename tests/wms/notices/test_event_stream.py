"""The stream of events: nothing is missed or told twice, whatever commits late."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.core import signing
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone

from tests import factories
from wms.accounting.models import Frontend
from wms.core.errors import InvalidInput
from wms.core.models import User
from wms.dags.models import Dag, DagEvent
from wms.notices.stream.cursors import KEPT, Mark, Place, Snapshot, place_of
from wms.notices.stream.reading import Wanted, begin, read

pytestmark = pytest.mark.django_db(transaction=True)
INSERT = (
    "INSERT INTO dags_dagevent (dag_id, event, from_state, to_state, actor, reason, facts, cause)"
    " SELECT dag_id, %s, from_state, to_state, actor, reason, facts, cause FROM dags_dagevent"
    " WHERE dag_id = %s ORDER BY id LIMIT 1"
)


@pytest.fixture
def dag() -> Dag:
    people = factories.people()
    return factories.dag(people.alice)


@pytest.fixture
def other() -> Iterator[BaseDatabaseWrapper]:
    """Another session of the database, in a transaction."""
    found = connection.copy()
    found.set_autocommit(False)
    yield found
    found.rollback()
    found.close()


def add(dag: Dag, event: str, *, by: Any = connection) -> None:
    with by.cursor() as cursor:
        cursor.execute(INSERT, [event, dag.pk])


class Follower:
    """Reads on from where it was."""

    def __init__(self, user: User, wanted: Wanted | None = None) -> None:
        self.user, self.wanted, self.now = user, wanted or Wanted(), timezone.now()
        self.place = begin(self.now)

    def read(self, *, most: int = 1000) -> list[str]:
        self.place = place_of(self.place.text(), self.now)
        batch = read(self.user, self.wanted, self.place, self.now, most=most)
        self.place = batch.place
        return [each.event for each in batch.events]


def test_what_commits_late_is_told_once_and_in_its_turn(
    dag: Dag, other: BaseDatabaseWrapper
) -> None:
    follower = Follower(dag.owner)
    add(dag, "late", by=other)
    add(dag, "early")

    assert follower.read() == []
    other.commit()
    assert follower.read() == ["late", "early"]
    assert follower.read() == []


def test_who_begins_while_something_is_under_way_hears_of_it(
    dag: Dag, other: BaseDatabaseWrapper
) -> None:
    add(dag, "late", by=other)
    add(dag, "early")
    follower = Follower(dag.owner)

    other.commit()

    assert "late" in follower.read()


def test_floors_rise_past_what_is_over_and_nothing_is_lost(
    dag: Dag, other: BaseDatabaseWrapper
) -> None:
    follower = Follower(dag.owner)
    told: list[str] = []
    for number in range(6):
        add(dag, f"late{number}", by=other)
        add(dag, f"early{number}")
        follower.now += timedelta(seconds=20)
        told += follower.read()
        other.commit()
        told += follower.read(most=1)

    told += follower.read()

    expected = [f"{word}{number}" for number in range(6) for word in ("late", "early")]
    assert sorted(told) == sorted(expected)
    assert follower.place.floors["dag"] > DagEvent.objects.order_by("pk")[0].pk


def test_a_page_ends_where_it_is_full_and_the_next_goes_on(dag: Dag) -> None:
    follower = Follower(dag.owner)
    for number in range(3):
        add(dag, f"event{number}")

    assert follower.read(most=2) == ["event0", "event1"]
    assert follower.read(most=2) == ["event2"]


def test_events_are_those_of_the_objects_that_are_asked_for(dag: Dag) -> None:
    second = factories.dag(dag.owner, name="second.dag")
    Dag.objects.filter(pk=second.pk).update(labels=["campaign=mc27"])
    followers = [
        Follower(dag.owner, wanted)
        for wanted in (
            Wanted(objects={"dag": [dag.pk], "site": ["none"]}), Wanted(label="campaign=mc27"),
            Wanted(frozenset({"site"})),
        )
    ]  # fmt: skip
    add(dag, "first")
    add(second, "second")

    assert [each.read() for each in followers] == [["first"], ["second"], []]


def test_events_of_nodes_are_told_of_one_dag_with_their_names(dag: Dag) -> None:
    first, second = dag.nodes.order_by("ordinal")
    everything, of_dag, of_node = (
        Follower(dag.owner, wanted)
        for wanted in (
            Wanted(), Wanted(objects={"dag": [dag.pk]}),
            Wanted(objects={"dag": [dag.pk], "node": [second.pk]}),
        )
    )  # fmt: skip

    factories.site()
    factories.turn()
    told = read(dag.owner, of_node.wanted, of_node.place, of_node.now).events

    assert {(each.kind, each.object, each.name) for each in told} == {
        ("node", str(second.pk), second.name)
    }
    heard = everything.read()
    assert ("match" in heard, "submit" in heard) == (True, False)
    assert of_dag.read().count("submit") == 2
    assert first.name != second.name


def test_nobody_hears_of_what_they_may_not_see(dag: Dag) -> None:
    group = factories.accounting(dag.owner)
    group.frontend = Frontend.objects.create(name="theirs")
    group.save(update_fields=["frontend"])
    Dag.objects.filter(pk=dag.pk).update(accounting_group=group)
    bob = User.objects.get(username="bob")
    follower = Follower(bob)

    add(dag, "private")

    assert follower.read() == []
    assert Follower(bob).read() == []


def test_a_cursor_that_is_made_up_is_refused() -> None:
    for text in ("", "x", signing.dumps({"position": [1, "dag", 2]})):
        with pytest.raises(InvalidInput):
            place_of(text, timezone.now())


def test_a_cursor_that_is_too_old_is_refused() -> None:
    now = timezone.now()
    before = (now - KEPT).timestamp() - 1
    place = Place((5, "", 0), {}, Mark(5, {}, before), before)

    with pytest.raises(InvalidInput):
        place_of(place.text(), now)


def test_a_cursor_of_before_an_update_looks_through_no_kind_as_a_whole(dag: Dag) -> None:
    follower = Follower(dag.owner)
    mark = replace(follower.place.mark, ids={"dag": follower.place.mark.ids["dag"]})
    follower.place = replace(follower.place, floors={"dag": 0}, mark=mark)
    with connection.cursor() as cursor:
        cursor.execute("SELECT setval('placement_placementevent_id_seq', 5000000)")
    add(dag, "later")

    assert follower.read() == ["later"]
    assert follower.place.floors["placement"] > 1_000_000
    assert follower.place.knows(follower.place.floors.keys())


def test_a_place_never_goes_back() -> None:
    now = timezone.now()
    place = Place.now(Snapshot(10, 10), {"dag": 1007}, now)

    assert place.floors == {"dag": 7}
    assert place.at_end(Snapshot(9, 12), None, now).position == (10, "", 0)
    assert Place.now(Snapshot(9, 10), {"dag": 1007}, now).floors == {"dag": 0}


def test_what_is_under_way_in_another_database_holds_nothing_up(dag: Dag) -> None:
    follower = Follower(User.objects.get(username="alice"))
    elsewhere = connection.copy()
    elsewhere.settings_dict = {**connection.settings_dict, "NAME": "postgres"}
    elsewhere.set_autocommit(False)
    try:
        with elsewhere.cursor() as cursor:
            # It has a number of its own from now on.
            cursor.execute("SELECT pg_current_xact_id()")
        add(dag, "here")

        assert follower.read() == ["here"]
    finally:
        elsewhere.rollback()
        elsewhere.close()
