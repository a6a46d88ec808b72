"""Limits over several DAGs: stored with an audit entry, and counted as the engine counts them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests import factories
from wms.core.actors import Actor
from wms.core.errors import InvalidInput, NotPermitted
from wms.core.models import AuditEntry, InboxEntry
from wms.dags.models import Dag, SharedLimit
from wms.dags.services.shared_limits import (
    delete_shared_limit,
    save_shared_limit,
    visible_shared_limits,
)


@pytest.fixture
def people(db: None) -> SimpleNamespace:
    return factories.people()


def _save(**values: object) -> SharedLimit:
    limit = SharedLimit(**values)
    save_shared_limit(limit, actor=factories.SYSTEM)
    return limit


def test_each_limit_counts_the_nodes_of_its_kind(people: SimpleNamespace) -> None:
    mine = factories.running_dag(people.alice, node_count=3)
    factories.running_dag(people.bob, node_count=2)
    Dag.objects.filter(pk=mine.pk).update(category_counts={"heavy": 1})
    limits = [
        _save(max_jobs=1),
        _save(max_jobs=1, owner=people.alice),
        _save(max_jobs=1, owner=people.bob),
        _save(max_jobs=1, site=mine.site),
        _save(max_jobs=1, category="heavy"),
        _save(max_jobs=1, category="heavy", owner=people.bob),
        _save(max_jobs=1, category="light"),
    ]

    seen = {limit.pk: limit.submitted for limit in visible_shared_limits(people.vera)}

    assert [seen[limit.pk] for limit in limits] == [5, 3, 2, 5, 1, 0, 0]


def test_a_dag_that_has_ended_counts_no_more(people: SimpleNamespace) -> None:
    factories.finish(factories.running_dag(people.alice, node_count=1))
    _save(max_jobs=1)

    assert [limit.submitted for limit in visible_shared_limits(people.vera)] == [0]


def test_what_was_changed_by_whom_is_in_the_audit_trail(people: SimpleNamespace) -> None:
    actor = Actor.person(people.olga)
    limit = SharedLimit(owner=people.alice, max_jobs=5)
    save_shared_limit(limit, actor=actor)
    limit.max_jobs = 7
    save_shared_limit(limit, actor=actor)
    delete_shared_limit(limit, actor=actor)

    entries = AuditEntry.objects.filter(actor="olga").order_by("pk")
    assert [entry.action for entry in entries] == [
        "create shared limit",
        "change shared limit",
        "delete shared limit",
    ]
    assert entries[1].facts == {"max_jobs": [5, 7]}
    (target,) = {entry.target for entry in entries}
    assert target.endswith("alice")


def test_only_operators_set_limits_and_each_kind_has_one(people: SimpleNamespace) -> None:
    with pytest.raises(NotPermitted):
        save_shared_limit(SharedLimit(max_jobs=1), actor=Actor.person(people.sam))

    _save(max_jobs=1, category="heavy")
    with pytest.raises(InvalidInput):
        _save(max_jobs=2, category=" heavy ")
    assert SharedLimit.objects.count() == 1


def test_dags_that_may_have_more_room_are_looked_at_again(people: SimpleNamespace) -> None:
    limit = _save(max_jobs=1, owner=people.alice)
    dag = factories.running_dag(people.alice, node_count=2)
    assert dag.ready_count == 1
    InboxEntry.objects.all().delete()

    limit.max_jobs = 2
    save_shared_limit(limit, actor=factories.SYSTEM)
    factories.turn()

    dag.refresh_from_db()
    assert (dag.submitted_count, dag.ready_count) == (2, 0)
