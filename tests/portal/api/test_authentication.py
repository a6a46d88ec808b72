"""Who is let in, and how the others are told."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest
import time_machine
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from tests import factories
from wms.core.models import ApiToken
from wms.core.tokens import create_token, revoke_tokens

URL = "/api/v1/dags/"


def _get(credential: str) -> int:
    answer = APIClient().get(URL, HTTP_AUTHORIZATION=credential)
    if answer.status_code == 401:
        assert answer["Content-Type"] == "application/problem+json"
        assert answer["WWW-Authenticate"] == "Token"
        assert answer.json()["title"] == "Unauthorized"
    return answer.status_code


def test_a_visitor_gets_a_problem_and_the_challenge(db: None) -> None:
    answer = APIClient().get(URL)

    assert answer.status_code == 401
    assert answer["WWW-Authenticate"] == "Token"
    told = answer.json()
    assert set(told) == {"type", "title", "status", "detail", "findings", "request_id"}
    assert "`Authorization: Token <token>`" in told["detail"]


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

    revoke_tokens(ApiToken.objects.values_list("pk", flat=True), actor=factories.SYSTEM)

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
