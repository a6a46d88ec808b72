"""Tokens and service accounts by the API."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from tests import factories
from wms.core.actors import Actor
from wms.core.models import ApiToken, AuditEntry, User
from wms.core.tokens import create_token, revoke_tokens

TOKENS, SERVICES = "/api/v1/tokens/", "/api/v1/service-accounts/"
AsUser = Callable[[User], APIClient]


@pytest.fixture
def ada(people: SimpleNamespace, as_user: AsUser) -> APIClient:
    return as_user(people.ada)


def test_a_token_is_made_shown_once_and_listed(alice: APIClient) -> None:
    made = alice.post(TOKENS, {"name": "night", "scopes": ["read"]}, format="json")

    assert made.status_code == 201, made.json()
    text = made.json()["token"]
    with_it = APIClient()
    with_it.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
    assert with_it.get("/api/v1/me/").json()["token"]["scopes"] == ["read"]
    listed = alice.get(TOKENS).json()["results"]
    assert listed[0]["name"] == "night"
    assert listed[0]["last_used_from"] == "127.0.0.1"
    assert text.split("_", 2)[2] not in alice.get(TOKENS).content.decode()


def test_a_repeated_request_makes_no_other_token(alice: APIClient) -> None:
    def ask() -> tuple[int, object]:
        answer = alice.post(TOKENS, {"name": "n"}, format="json", HTTP_IDEMPOTENCY_KEY="one")
        return answer.status_code, answer.json()["token"]

    first, again = ask(), ask()

    assert (first[0], again) == (201, (200, None))
    assert ApiToken.objects.filter(name="n").count() == 1


def test_a_token_makes_none_that_is_good_for_more(people: SimpleNamespace) -> None:
    end = timezone.now() + timedelta(days=1)
    text = create_token(
        people.alice, name="t", actor=factories.SYSTEM, expires_at=end, scopes=["read", "admin"]
    )
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")

    def ask(**body: object) -> int:
        return client.post(TOKENS, {"name": "n", **body}, format="json").status_code

    assert ask(expires_at=end) == 403
    assert ask(scopes=["read", "submit"], expires_at=end) == 403
    assert ask(scopes=["read"]) == 400
    assert ask(scopes=["read"], expires_at=end + timedelta(days=1)) == 400
    assert ask(scopes=["read"], expires_at=end - timedelta(hours=1)) == 201


def test_others_tokens_are_made_and_revoked_by_administrators(
    alice: APIClient, ada: APIClient, people: SimpleNamespace
) -> None:
    refused = alice.post(TOKENS, {"name": "x", "user": "bob"}, format="json")
    made = ada.post(TOKENS, {"name": "x", "user": "bob"}, format="json").json()
    path = f"{TOKENS}{made['id']}/"

    assert refused.status_code == 403
    assert alice.get(path).status_code == 404
    assert ada.get(f"{TOKENS}?user=bob&fields=name").json()["results"] == [{"name": "x"}]
    assert alice.post(f"{path}revoke/", {}, format="json").status_code == 404
    assert ada.post(f"{path}revoke/", {}, format="json").status_code == 400
    gone = ada.post(f"{path}revoke/", {"reason": "leaked"}, format="json")
    assert gone.json()["revoked_at"] is not None
    assert ada.get(f"{TOKENS}?is_revoked=false&user=bob").json()["results"] == []
    assert AuditEntry.objects.get(action="revoke token").reason == "leaked"


def test_a_service_account_gets_groups_and_a_token(
    alice: APIClient, ada: APIClient, people: SimpleNamespace
) -> None:
    factories.accounting(people.alice)
    body = {"username": "robot", "groups": ["physics"], "email": "who@example.org"}

    assert alice.post(SERVICES, body, format="json").status_code == 403
    made = ada.post(f"{SERVICES}?reason=nightly", body, format="json")
    assert made.status_code == 201, made.json()
    token = ada.post(TOKENS, {"name": "n", "user": "robot", "scopes": ["read"]}, format="json")
    robot = APIClient()
    robot.credentials(HTTP_AUTHORIZATION=f"Bearer {token.json()['token']}")
    assert robot.get("/api/v1/me/").json()["groups"] == ["physics"]
    assert ada.get(f"{TOKENS}?is_service=true&fields=user").json()["results"] == [{"user": "robot"}]
    [row] = ada.get(SERVICES).json()["results"]
    assert (row["groups"], row["last_used_at"] is None) == (["physics"], False)

    path = f"{SERVICES}{row['id']}/"
    off = ada.put(path, {"username": "robot", "is_active": False}, format="json")
    assert (off.status_code, off.json()["groups"]) == (200, [])
    assert robot.get("/api/v1/me/").status_code == 401
    assert alice.get(path).status_code == 404


def test_what_cannot_be_a_service_is_refused(ada: APIClient) -> None:
    def ask(**body: object) -> int:
        return ada.post(SERVICES, body, format="json").status_code

    assert ask(username="alice") == 400
    assert ask(username="robot", role="admin") == 400
    assert ask(username="robot", groups=["nothing"]) == 400
    assert ask(username="a b") == 400
    assert not User.objects.filter(is_service=True).exists()


def test_the_owner_of_a_token_reads_who_ended_it_and_why(
    alice: APIClient, people: SimpleNamespace
) -> None:
    _, other = factories.token_for(people.alice), ApiToken.objects.order_by("pk").last()
    assert other is not None
    revoke_tokens([other.pk], actor=Actor.person(people.ada), reason="leaked")

    [entry] = alice.get("/api/v1/audit/?action=revoke token").json()["results"]
    assert (entry["actor"], entry["reason"]) == ("ada", "leaked")
