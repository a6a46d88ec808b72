"""Groups, submitters, limits and the matchmaking policy in the administration."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from tests import factories
from wms.accounting.models import AccountingGroup, ConcurrencyLimit, Submitter
from wms.core.models import AuditEntry
from wms.dags.models import MatchmakingPolicy

GROUPS = "/admin/accounting/accountinggroup/"
LIMITS = "/admin/accounting/concurrencylimit/"
SUBMITTERS = "/admin/accounting/submitter/"
POLICY = "/admin/dags/matchmakingpolicy/1/change/"
GROUP = {
    "name": "physics.higgs",
    "quota_kind": "dynamic",
    "quota": "0.25",
    "accepts_surplus": "on",
    "share": "1000",
}
SETTINGS = {
    "rematch_expression": "QueuedSeconds > 7200 && NodesRunning == 0",
    "max_rematches": "3",
    "avoid_s": "600",
    "priority_half_life_s": "3600",
}


def _errors(answer: HttpResponse) -> dict[str, list[str]]:
    assert answer.status_code == 200
    return {name: list(errors) for name, errors in answer.context["adminform"].form.errors.items()}


def test_a_group_is_stored_with_its_members_and_an_audit_entry(
    olga: Client, people: SimpleNamespace
) -> None:
    factories.accounting(people.alice)

    answer = olga.post(f"{GROUPS}add/", GROUP | {"members": [people.bob.pk, people.alice.pk]})

    assert answer.status_code == 302, _errors(answer)
    group = AccountingGroup.objects.get(name="physics.higgs")
    assert set(group.members.all()) == {people.alice, people.bob}
    entry = AuditEntry.objects.get(actor="olga")
    assert (entry.action, entry.target) == ("create accounting group", "group physics.higgs")
    assert entry.facts["members"] == [[], ["alice", "bob"]]


def test_a_change_of_members_alone_is_audited(olga: Client, people: SimpleNamespace) -> None:
    group = factories.accounting(people.alice)

    answer = olga.post(
        f"{GROUPS}{group.pk}/change/",
        GROUP | {"name": "physics", "quota": "0.01", "members": [people.bob.pk]},
    )

    assert answer.status_code == 302, _errors(answer)
    assert AuditEntry.objects.get(actor="olga").facts == {"members": [["alice"], ["bob"]]}
    assert list(group.members.all()) == [people.bob]


@pytest.mark.parametrize(
    ("values", "field", "words"),
    [
        ({"name": "chemistry.dyes"}, "name", "there is no group chemistry: make it first"),
        ({"name": "a..b"}, "name", "joined by points"),
        ({"quota": "1.5"}, "quota", "a fraction is at most 1"),
        ({"quota": "-1"}, "quota", "greater than or equal to 0"),
        ({"quota": "nan"}, "quota", "Enter a number"),
    ],
)
def test_a_fault_of_a_group_is_shown_at_its_field(
    olga: Client, people: SimpleNamespace, values: dict[str, str], field: str, words: str
) -> None:
    factories.accounting(people.alice)

    errors = _errors(olga.post(f"{GROUPS}add/", GROUP | values))

    assert list(errors) == [field]
    assert words in errors[field][0]


def test_a_group_is_deleted_unless_a_group_is_below_it(
    olga: Client, people: SimpleNamespace
) -> None:
    parent = factories.accounting(people.alice)
    olga.post(f"{GROUPS}add/", GROUP)
    child = AccountingGroup.objects.get(name="physics.higgs")

    refused = olga.post(f"{GROUPS}{parent.pk}/delete/", {"post": "yes"})
    deleted = olga.post(f"{GROUPS}{child.pk}/delete/", {"post": "yes"})

    assert (refused.status_code, "physics" in refused.content.decode()) == (200, True)
    assert deleted.status_code == 302
    assert list(AccountingGroup.objects.all()) == [parent]
    assert AuditEntry.objects.filter(actor="olga", action="delete accounting group").exists()


def test_submitters_are_listed_best_first_and_only_their_factor_is_changed(
    olga: Client, people: SimpleNamespace
) -> None:
    factories.accounting(people.alice, "first")
    factories.accounting(people.bob, "second")
    better = Submitter.objects.get(user=people.bob)

    answer = olga.post(f"{SUBMITTERS}{better.pk}/change/", {"factor": "10", "used_slots": "999"})

    assert answer.status_code == 302, _errors(answer)
    better.refresh_from_db()
    assert (better.factor, better.used_slots) == (10.0, 2.0)
    listed = olga.get(SUBMITTERS).content.decode()
    assert listed.index("second.bob") < listed.index("first.alice")
    assert ">5.00<" in listed
    assert "500.00" in listed
    assert AuditEntry.objects.get(actor="olga").facts == {"factor": [1000.0, 10.0]}


def test_a_factor_below_one_is_refused(olga: Client, people: SimpleNamespace) -> None:
    factories.accounting(people.alice)
    row = Submitter.objects.get()

    assert list(_errors(olga.post(f"{SUBMITTERS}{row.pk}/change/", {"factor": "0"}))) == ["factor"]


def test_a_limit_is_made_changed_and_deleted(olga: Client) -> None:
    body: dict[str, Any] = {"name": "db.*", "maximum": "10", "note": "one server"}

    assert olga.post(f"{LIMITS}add/", body).status_code == 302
    limit = ConcurrencyLimit.objects.get()
    assert olga.post(f"{LIMITS}{limit.pk}/change/", body | {"maximum": "5"}).status_code == 302
    assert list(_errors(olga.post(f"{LIMITS}add/", body | {"name": "DB"}))) == ["name"]
    assert olga.post(f"{LIMITS}{limit.pk}/delete/", {"post": "yes"}).status_code == 302

    assert not ConcurrencyLimit.objects.exists()
    actions = (
        AuditEntry.objects.filter(actor="olga").order_by("pk").values_list("action", flat=True)
    )
    assert [action.split()[0] for action in actions] == ["create", "change", "delete"]


def test_the_policy_is_changed_on_its_page(olga: Client) -> None:
    assert olga.get("/admin/dags/matchmakingpolicy/", follow=True).status_code == 200
    assert not MatchmakingPolicy.objects.exists()

    first = olga.post(POLICY, SETTINGS)
    second = olga.post(POLICY, SETTINGS | {"max_rematches": "4"})

    assert (first.status_code, second.status_code) == (302, 302), _errors(first)
    policy = MatchmakingPolicy.objects.get()
    assert (policy.pk, policy.max_rematches, policy.priority_half_life_s) == (1, 4, 3600)
    assert policy.rematch_expression == SETTINGS["rematch_expression"]
    entry = AuditEntry.objects.filter(actor="olga").latest("pk")
    assert (entry.target, entry.facts) == ("matchmaking policy", {"max_rematches": [3, 4]})


@pytest.mark.parametrize(
    ("values", "field", "words"),
    [
        ({"rematch_expression": "QueuedSeconds >"}, "rematch_expression", "not a ClassAd"),
        ({"rematch_expression": "7200"}, "rematch_expression", "neither true nor false"),
        ({"rematch_expression": 'eval("x")'}, "rematch_expression", "eval cannot be used"),
        ({"priority_half_life_s": "5"}, "priority_half_life_s", "greater than or equal to 60"),
        ({"max_rematches": "-1"}, "max_rematches", "greater than or equal to 0"),
    ],
)
def test_a_fault_of_the_policy_is_shown_at_its_field(
    olga: Client, values: dict[str, str], field: str, words: str
) -> None:
    errors = _errors(olga.post(POLICY, SETTINGS | values))

    assert list(errors) == [field]
    assert words in errors[field][0]
    assert not MatchmakingPolicy.objects.exists()


def test_there_is_no_second_policy(olga: Client) -> None:
    assert olga.get("/admin/dags/matchmakingpolicy/2/change/").status_code == 404
    assert olga.post("/admin/dags/matchmakingpolicy/add/", SETTINGS).status_code == 403
