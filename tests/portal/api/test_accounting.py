"""Submitters in their order, groups with their members, limits with what is used of them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from rest_framework.test import APIClient

from tests import factories
from wms.accounting.models import ConcurrencyLimit, Submitter
from wms.accounting.services import save_limit, save_submitter
from wms.dags.models import Dag


def _set_factor(user: object, factor: float) -> None:
    row = Submitter.objects.get(user=user)
    row.factor = factor
    save_submitter(row, actor=factories.SYSTEM)


def test_submitters_come_best_first_with_their_places(
    alice: APIClient, people: SimpleNamespace
) -> None:
    for person in (people.alice, people.bob, people.charlie):
        factories.accounting(person, f"of_{person.username}")
    _set_factor(people.alice, 5000)
    _set_factor(people.charlie, 10)

    first = alice.get("/api/v1/submitters/?page_size=2").json()
    second = alice.get(first["next"]).json()

    lines = first["results"] + second["results"]
    assert [(line["place"], line["user"], line["group"]) for line in lines] == [
        (1, "charlie", "of_charlie"),
        (2, "bob", "of_bob"),
        (3, "alice", "of_alice"),
    ]
    assert lines[2]["effective_priority"] == pytest.approx(lines[2]["real_priority"] * 5000)
    assert lines[0]["factor"] == 10


def test_a_user_without_group_is_a_submitter_as_well(
    alice: APIClient, people: SimpleNamespace
) -> None:
    Submitter.objects.create(user=people.bob, used_slots=3)

    (line,) = alice.get("/api/v1/submitters/").json()["results"]

    assert (line["user"], line["group"], line["used_slots"]) == ("bob", None, 3)


def test_groups_come_by_name_with_members_and_what_they_use(
    alice: APIClient, people: SimpleNamespace
) -> None:
    factories.accounting(people.bob, "physics")
    factories.accounting(people.alice, "chemistry")

    chemistry, physics = alice.get("/api/v1/groups/").json()["results"]

    assert (chemistry["name"], chemistry["members"], chemistry["used_slots"]) == (
        "chemistry",
        ["alice"],
        2.0,
    )
    assert (physics["quota"], physics["quota_kind"], physics["accepts_surplus"]) == (
        0.01,
        "dynamic",
        True,
    )


def test_limits_tell_what_running_dags_take_of_them(
    alice: APIClient, people: SimpleNamespace
) -> None:
    for name in ("db", "db.*", "sw"):
        save_limit(ConcurrencyLimit(name=name, maximum=10), actor=factories.SYSTEM)
    limits = {"db": 1, "db.read": 2.5, "db.write": 1, "other": 1}
    for dag in (factories.running_dag(people.alice), factories.running_dag(people.alice)):
        Dag.objects.filter(pk=dag.pk).update(concurrency_limits=limits)
    waiting = factories.dag(people.alice)
    Dag.objects.filter(pk=waiting.pk).update(concurrency_limits={"sw": 5})

    lines = alice.get("/api/v1/limits/").json()["results"]

    assert {line["name"]: line["in_use"] for line in lines} == {
        "db": [{"name": "db", "used": 2.0}],
        "db.*": [{"name": "db.read", "used": 5.0}, {"name": "db.write", "used": 2.0}],
        "sw": [],
    }


def test_a_dag_tells_its_group_and_limits(alice: APIClient, people: SimpleNamespace) -> None:
    group, plain = factories.accounting(people.alice), factories.dag(people.alice)
    dag = factories.dag(people.alice)
    Dag.objects.filter(pk=dag.pk).update(accounting_group=group, concurrency_limits={"db": 2})

    told = [alice.get(f"/api/v1/dags/{each.pk}/").json() for each in (dag, plain)]

    assert [each["accounting_group"] for each in told] == ["physics", None]
    assert [each["concurrency_limits"] for each in told] == [{"db": 2}, {}]


def test_limits_are_paged_by_name(alice: APIClient) -> None:
    for name in ("*", "db.*", "db.read"):
        save_limit(ConcurrencyLimit(name=name, maximum=1), actor=factories.SYSTEM)

    names, address = [], "/api/v1/limits/?page_size=1"
    while address:
        page = alice.get(address).json()
        names += [line["name"] for line in page["results"]]
        address = page["next"]

    assert names == ["*", "db.*", "db.read"]


@pytest.mark.parametrize("name", ["submitters", "groups", "limits"])
def test_an_unknown_filter_is_refused(alice: APIClient, name: str) -> None:
    assert alice.get(f"/api/v1/{name}/?owner=alice").status_code == 400
