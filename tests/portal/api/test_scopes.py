"""Scopes of tokens: each address that changes something has its line, and tokens keep to theirs."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.urls import get_resolver
from rest_framework.test import APIClient

from portal.api.scopes import OF_WRITES, scopes_for
from tests import factories
from tests.portal import permissions
from tests.portal.routes import routes
from wms.core.actors import Actor
from wms.core.errors import InvalidInput
from wms.core.models import ApiToken, AuditEntry, Scope, User
from wms.core.tokens import create_token, issue_token

DAGS = "/api/v1/dags/"


@pytest.fixture
def with_scopes(people: SimpleNamespace) -> Callable[..., APIClient]:
    def make(*scopes: str, user: User = people.olga) -> APIClient:
        text = create_token(user, name="t", actor=Actor.person(user), scopes=scopes)
        client = APIClient()
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
        return client

    return make


def _writes() -> set[str]:
    tables = (permissions.POST, permissions.PUT, permissions.DELETE)
    return {
        route.name.removeprefix("api:")
        for route in routes()
        if route.name.startswith("api:")
        and any(permissions.rule_of(table, route) for table in tables)
    }


def _bulk(of: str, action: str) -> dict[str, Any]:
    return {"list": of, "action": action, "filter": {}, "reason": "look", "dry_run": True}


def test_each_address_that_changes_something_needs_scopes_of_its_own() -> None:
    writes = _writes()

    assert len(writes) > 60
    assert [name for name in writes if scopes_for("POST", name) == set(Scope)] == []
    assert set(OF_WRITES) - writes == set()


def test_a_new_address_is_closed_to_narrow_tokens() -> None:
    assert scopes_for("POST", "something-new") == set(Scope)
    assert scopes_for("GET", "something-new") == {Scope.READ}
    assert get_resolver() is not None


@pytest.mark.parametrize(
    ("scopes", "address", "body", "missing"),
    [
        (["submit"], "", None, ["read"]),
        (["read"], "1/hold/", {"reason": "look"}, ["control"]),
        (["read", "submit"], "1/rematch/", {"reason": "look"}, ["control"]),
        (["read", "control"], "1/rescue/", {"reason": "look"}, ["submit"]),
        (["control"], "../sites/UW/ban/", {"reason": "look"}, ["site"]),
        (["site"], "../bulk/", {}, ["control"]),
        (["control"], "../bulk/", _bulk("sites", "ban"), ["site"]),
        (["control"], "../bulk/", _bulk("dags", "rescue"), ["submit"]),
        (["site"], "../quotas/", {}, ["admin"]),
    ],
)
def test_a_token_is_refused_what_it_is_not_for(
    with_scopes: Any, scopes: list[str], address: str, body: Any, missing: list[str]
) -> None:
    client = with_scopes(*scopes)
    address = DAGS + address if not address.startswith("..") else f"/api/v1{address[2:]}"

    answer = client.get(address) if body is None else client.post(address, body, format="json")

    told = answer.json()
    assert (answer.status_code, told["type"]) == (403, "/problems/scope-missing/")
    assert told["scopes"] == missing


def test_a_token_that_steers_dags_steers_many(with_scopes: Any, people: SimpleNamespace) -> None:
    factories.dag(people.alice)
    client = with_scopes("control")

    preview = client.post("/api/v1/bulk/", _bulk("dags", "hold"), format="json")

    assert preview.status_code == 201, preview.content


def test_a_preview_is_confirmed_only_by_whom_its_action_is_for(with_scopes: Any) -> None:
    factories.site()
    made = with_scopes(*Scope.values).post("/api/v1/bulk/", _bulk("sites", "ban"), format="json")
    token = made.json()["operation_token"]
    body = {"operation_token": token, "expected_count": 1, "dry_run": False}

    refused = with_scopes("control").post("/api/v1/bulk/", body, format="json")

    assert (made.status_code, refused.status_code) == (201, 403), made.content
    assert refused.json()["scopes"] == ["site"]


def test_a_token_does_what_it_is_for(with_scopes: Any, people: SimpleNamespace) -> None:
    dag = factories.dag(people.alice)
    client = with_scopes("control", user=people.alice)

    answer = client.post(f"{DAGS}{dag.pk}/hold/", {"reason": "look"}, format="json")

    assert (answer.status_code, answer.json()["state"]) == (200, "held")


def test_a_scope_gives_nothing_that_the_user_may_not(
    with_scopes: Any, people: SimpleNamespace
) -> None:
    client = with_scopes("admin", user=people.alice)

    answer = client.post("/api/v1/quotas/", {"max_clusters": 1}, format="json")

    assert (answer.status_code, answer.json()["type"]) == (403, "/problems/not-permitted/")


def test_any_token_is_told_what_it_is(with_scopes: Any) -> None:
    told = with_scopes("submit").get("/api/v1/me/").json()

    assert told["token"]["scopes"] == ["submit"]


def test_the_address_of_the_last_use_is_kept(with_scopes: Any) -> None:
    with_scopes("read").get(DAGS, REMOTE_ADDR="192.0.2.7")

    assert ApiToken.objects.get().last_used_from == "192.0.2.7"


def test_an_address_that_is_none_is_left_out(with_scopes: Any) -> None:
    answer = with_scopes("read").get(DAGS, REMOTE_ADDR="unix:")

    assert (answer.status_code, ApiToken.objects.get().last_used_from) == (200, None)


@pytest.mark.parametrize("scopes", [[], ["read", "fly"]])
def test_scopes_that_there_are_not_are_refused(people: SimpleNamespace, scopes: list[str]) -> None:
    with pytest.raises(InvalidInput):
        issue_token(people.alice, name="t", actor=Actor.person(people.alice), scopes=scopes)

    assert not ApiToken.objects.exists()


def test_the_trail_tells_the_scopes(people: SimpleNamespace) -> None:
    issue_token(people.alice, name="t", actor=Actor.person(people.alice), scopes=["submit", "read"])

    assert AuditEntry.objects.get(action="create token").facts["scopes"] == ["read", "submit"]


def test_a_token_of_before_has_all_scopes(people: SimpleNamespace) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO core_apitoken (user_id, name, prefix, secret_sha256)"
            " VALUES (%s, 'old', 'x', 'y')",
            [people.alice.pk],
        )

    assert ApiToken.objects.get().scopes == Scope.values
