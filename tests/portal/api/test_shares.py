"""Shares, factors and concurrency limits set by the API, and negotiation cycles read."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from rest_framework.test import APIClient

from tests import factories
from wms.accounting.models import AccountingGroup, ConcurrencyLimit, Submitter
from wms.core.models import AuditEntry, User

GROUPS, LIMITS, SUBMITTERS = (f"/api/v1/{name}/" for name in ("groups", "limits", "submitters"))


@pytest.fixture
def olga(people: SimpleNamespace, as_user: Callable[[User], APIClient]) -> APIClient:
    return as_user(people.olga)


def test_a_group_is_made_set_anew_and_deleted(olga: APIClient) -> None:
    made = olga.post(
        f"{GROUPS}?reason=new+experiment", {"name": "higgs", "members": ["alice"]}, format="json"
    )
    put = olga.put(f"{GROUPS}higgs/", {"name": "higgs", "share": 200, "quota": 0.5}, format="json")
    child = olga.post(GROUPS, {"name": "higgs.boson", "share": 3}, format="json")
    deleted = [olga.delete(f"{GROUPS}{name}/") for name in ("higgs", "higgs.boson", "higgs")]

    assert (made.status_code, made.json()["share"], made.json()["used_slots"]) == (201, 1000, 0)
    answer = put.json()
    assert (answer["share"], answer["quota"], answer["members"]) == (200, 0.5, ["alice"])
    assert child.status_code == 201
    assert [each.status_code for each in deleted] == [409, 204, 204]
    assert not AccountingGroup.objects.exists()
    assert AuditEntry.objects.filter(target="group higgs", reason="new experiment").exists()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "a.b"}, "name"),
        ({"name": "of b"}, "name"),
        ({"name": "b", "quota": 2}, "quota"),
        ({"name": "b", "share": 0}, "share"),
        ({"name": "b", "members": ["nobody"]}, "members.0"),
        ({"name": "b", "frontend": "none"}, "frontend"),
        ({"name": "b", "priority": 2}, "priority"),
    ],
)
def test_a_group_with_a_fault_is_refused_by_its_field(
    olga: APIClient, body: dict[str, object], field: str
) -> None:
    answer = olga.post(GROUPS, body, format="json")

    assert (answer.status_code, AccountingGroup.objects.count()) == (400, 0)
    assert field.partition(".")[0] in {
        each["field"].partition(".")[0] for each in answer.json()["findings"]
    }


def test_a_limit_is_set_and_set_anew_under_its_name(olga: APIClient) -> None:
    made = olga.post(
        LIMITS, {"name": "db.*", "maximum": 5, "note": "connections"}, format="json"
    ).json()
    put = olga.put(f"{LIMITS}db.*/", {"name": "db.*", "maximum": 7}, format="json").json()
    renamed = olga.put(f"{LIMITS}db.*/", {"name": "other", "maximum": 7}, format="json")
    read = olga.get(f"{LIMITS}db.*/").json()
    deleted = olga.delete(f"{LIMITS}db.*/?reason=no+more")

    assert (made["maximum"], made["in_use"]) == (5, [])
    assert (put["maximum"], put["note"]) == (7, "")
    assert renamed.status_code == 400
    assert read == put
    assert (deleted.status_code, ConcurrencyLimit.objects.count()) == (204, 0)


def test_a_factor_is_set_and_gives_the_submitter_its_place(
    olga: APIClient, people: SimpleNamespace
) -> None:
    first, second = (Submitter.objects.create(user=each) for each in (people.alice, people.bob))

    put = olga.put(f"{SUBMITTERS}{first.pk}/?reason=guest", {"factor": 5000}, format="json").json()

    assert (put["user"], put["factor"], put["place"]) == ("alice", 5000, 2)
    assert olga.get(f"{SUBMITTERS}{second.pk}/").json()["place"] == 1
    assert olga.put(f"{SUBMITTERS}{first.pk}/", {"factor": 0.5}, format="json").status_code == 400
    assert olga.get(f"{SUBMITTERS}999/").status_code == 404


def test_a_negotiation_tells_its_matches_and_whom_it_left_over(
    alice: APIClient, people: SimpleNamespace
) -> None:
    factories.site(max_matches=1)
    dags = {factories.dag(people.alice).pk for _ in range(2)}
    factories.turn()

    [cycle] = alice.get("/api/v1/negotiation-cycles/?busy=true").json()["results"]
    told = alice.get(f"/api/v1/negotiation-cycles/{cycle['id']}/").json()

    assert (cycle["requests"], cycle["bound"], cycle["unmatched"]) == (2, 1, 1)
    [match], [left] = told["match_list"], told["left_over"]
    assert (match["site"], {match["dag"], *left["dags"]}) == ("UW", dags)
    assert alice.get("/api/v1/negotiation-cycles/?busy=false").json()["results"] == []
    assert alice.get("/api/v1/negotiation-cycles/999999/").status_code == 404
