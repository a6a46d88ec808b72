"""Who is let in, and how the others are told."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest
import time_machine
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from portal.config.version import product_version
from tests import factories
from wms.core.actors import Actor
from wms.core.models import ApiToken, User
from wms.core.tokens import create_token, revoke_tokens

URL = "/api/v1/dags/"


def _get(credential: str) -> int:
    answer = APIClient().get(URL, HTTP_AUTHORIZATION=credential)
    if answer.status_code == 401:
        assert answer["Content-Type"] == "application/problem+json"
        assert answer["WWW-Authenticate"] == "Bearer"
        assert answer.json()["title"] == "Unauthorized"
    return answer.status_code


def test_a_visitor_gets_a_problem_and_the_challenge(db: None) -> None:
    answer = APIClient().get(URL)

    assert answer.status_code == 401
    assert answer["WWW-Authenticate"] == "Bearer"
    told = answer.json()
    assert set(told) == {"type", "title", "status", "detail", "findings", "request_id"}
    assert "`Authorization: Bearer <token>`" in told["detail"]


def test_a_token_lets_its_user_in(people: SimpleNamespace) -> None:
    assert _get(f"Token {factories.token_for(people.alice)}") == 200


@pytest.mark.parametrize(
    "credential",
    [
        "Token",
        "Token ",
        "Token x",
        "Token plt_0000000000_x",
        "Token a b",
        "Token \xff",
        "Token plt_\0_\0",
    ],
)
def test_what_is_no_token_lets_nobody_in(people: SimpleNamespace, credential: str) -> None:
    assert _get(credential) == 401


def test_the_secret_must_be_the_one_of_the_prefix(people: SimpleNamespace) -> None:
    one, other = factories.token_for(people.alice), factories.token_for(people.alice)
    kind, prefix, _ = one.split("_", 2)

    assert _get(f"Token {kind}_{prefix}_{other.split('_', 2)[2]}") == 401


def test_a_revoked_token_lets_nobody_in(people: SimpleNamespace) -> None:
    text = factories.token_for(people.alice)

    revoke_tokens(
        ApiToken.objects.values_list("pk", flat=True), actor=factories.SYSTEM, reason="lost"
    )

    assert _get(f"Token {text}") == 401


def test_an_expired_token_lets_nobody_in(people: SimpleNamespace) -> None:
    end = timezone.now() + timedelta(hours=1)
    text = create_token(people.alice, name="short", actor=factories.SYSTEM, expires_at=end)

    assert _get(f"Token {text}") == 200
    with time_machine.travel(end + timedelta(seconds=1)):
        assert _get(f"Token {text}") == 401


def test_the_token_of_a_switched_off_account_lets_nobody_in(people: SimpleNamespace) -> None:
    text = factories.token_for(people.alice)
    people.alice.is_active = False
    people.alice.save()

    assert _get(f"Token {text}") == 401


def test_a_session_may_read(people: SimpleNamespace, client: Client) -> None:
    client.force_login(people.alice)

    assert client.get(URL).status_code == 200


def test_a_session_changes_nothing_without_the_csrf_token(people: SimpleNamespace) -> None:
    dag = factories.dag(people.alice)
    client = Client(enforce_csrf_checks=True)
    client.force_login(people.alice)

    answer = client.post(f"{URL}{dag.pk}/hold/", {"reason": "look"}, "application/json")

    assert answer.status_code == 403
    assert "CSRF" in answer.json()["detail"]
    dag.refresh_from_db()
    assert dag.state == "idle"


@pytest.mark.parametrize("scheme", ["Token", "token", "Bearer", "bearer"])
def test_both_schemes_let_a_token_in(people: SimpleNamespace, scheme: str) -> None:
    assert _get(f"{scheme} {factories.token_for(people.alice)}") == 200


def _refusal(credential: str) -> str:
    answer = APIClient().get(URL, HTTP_AUTHORIZATION=credential)
    assert answer.status_code == 401
    return str(answer.json()["type"])


def test_the_type_tells_what_is_wrong_with_a_token(people: SimpleNamespace) -> None:
    text = factories.token_for(people.alice)
    row = ApiToken.objects.get()

    assert _refusal("Bearer plt_0000000000_x") == "/problems/token-unknown/"
    assert _refusal(f"Bearer {text}x") == "/problems/token-unknown/"
    assert _refusal("Bearer plj_1_1_1_0") == "/problems/token-unknown/"
    assert _refusal("Basic x") == "/problems/not-authenticated/"
    User.objects.filter(pk=people.alice.pk).update(is_active=False)
    assert _refusal(f"Bearer {text}") == "/problems/account-off/"
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(hours=1))
    assert _refusal(f"Bearer {text}") == "/problems/token-expired/"
    ApiToken.objects.update(revoked_at=timezone.now())
    assert _refusal(f"Bearer {text}") == "/problems/token-revoked/"
    assert row.last_used_at is None


def test_a_caller_is_told_who_it_is(people: SimpleNamespace) -> None:
    group = factories.accounting(people.olga)
    site = factories.site()
    site.administrators.add(people.olga)
    text = create_token(people.olga, name="nightly", actor=Actor.person(people.olga))

    told = APIClient().get("/api/v1/me/", HTTP_AUTHORIZATION=f"Bearer {text}").json()

    assert (told["username"], told["role"]) == ("olga", "operator")
    assert told["permissions"] == ["viewer", "user", "site_admin", "shifter", "operator"]
    assert (told["groups"], told["administered_sites"]) == ([group.name], [site.name])
    assert (told["token"]["name"], told["token"]["expires_at"]) == ("nightly", None)
    assert "secret" not in str(told)


def test_a_session_has_no_token(people: SimpleNamespace, client: Client) -> None:
    client.force_login(people.alice)

    assert client.get("/api/v1/me/").json()["token"] is None


def test_the_version_names_the_portal(people: SimpleNamespace, client: Client) -> None:
    client.force_login(people.alice)

    told = client.get("/api/v1/version/").json()

    assert (told["product"], told["version"], told["api"]) == ("Pilotage", product_version(), "v1")
    assert told["portal"] == client.get("/health/live").json()["portal"]
