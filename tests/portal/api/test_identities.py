"""Identities at providers by the API: administrators link and unlink, everybody sees their own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from tests import factories
from wms.core.actors import Actor
from wms.core.identities import link_identity
from wms.core.identity_models import Identity
from wms.core.models import AuditEntry, Scope, User
from wms.core.tokens import create_token

IDENTITIES, MINE = "/api/v1/identities/", "/api/v1/me/identities/"
ISSUER = "https://iam.example.org/"
BODY = {"user": "alice", "issuer": ISSUER, "subject": "7b2e", "reason": "asked by mail"}
AsUser = Callable[[User], APIClient]


@pytest.fixture
def ada(people: SimpleNamespace, as_user: AsUser) -> APIClient:
    return as_user(people.ada)


def _code(answer: object) -> tuple[int, str]:
    return answer.status_code, answer.json()["type"].strip("/").rpartition("/")[2]  # type: ignore[attr-defined]


def test_an_identity_is_linked_listed_and_unlinked(
    ada: APIClient, alice: APIClient, people: SimpleNamespace
) -> None:
    made = ada.post(IDENTITIES, BODY, format="json")
    link_identity(people.ada, ISSUER, "of ada", actor=factories.SYSTEM)

    assert made.status_code == 201, made.json()
    told = made.json()
    assert (told["user"], told["linked_by"], told["last_used_at"]) == ("alice", "ada", None)
    assert [each["subject"] for each in ada.get(IDENTITIES).json()["results"]] == ["of ada", "7b2e"]
    assert len(ada.get(IDENTITIES, {"user": "alice"}).json()["results"]) == 1
    assert [each["subject"] for each in ada.get(MINE).json()["results"]] == ["of ada"]
    for address in (IDENTITIES, MINE):
        assert [each["id"] for each in alice.get(address).json()["results"]] == [told["id"]]

    one = f"{IDENTITIES}{told['id']}/"
    assert _code(alice.delete(f"{one}?reason=mine")) == (403, "not-permitted")
    assert _code(ada.delete(one)) == (400, "reason-required")
    assert ada.delete(f"{one}?reason=left").status_code == 204
    assert _code(ada.delete(f"{one}?reason=left")) == (404, "not-found")
    trail = AuditEntry.objects.filter(target="user alice", actor="ada")
    assert list(trail.order_by("pk").values_list("action", "reason")) == [
        ("link identity", "asked by mail"), ("unlink identity", "left"),
    ]  # fmt: skip


def test_what_cannot_be_linked_is_refused_with_its_place_and_changes_nothing(
    ada: APIClient, alice: APIClient, people: SimpleNamespace
) -> None:
    link_identity(people.bob, ISSUER, "7b2e", actor=factories.SYSTEM)

    def places(**changed: object) -> list[str]:
        answer = ada.post(IDENTITIES, {**BODY, "subject": "new", **changed}, format="json")
        assert answer.status_code == 400
        return [each["field"] for each in answer.json().get("findings", ())]

    assert places(user="nobody") == ["user"]
    assert places(issuer="iam.example.org") == ["issuer"]
    assert places(issuer="https://[") == ["issuer"]
    assert places(subject=" ") == ["subject"]
    assert places(reason="") == []
    assert _code(ada.post(IDENTITIES, BODY, format="json")) == (409, "conflict")
    assert _code(alice.post(IDENTITIES, BODY, format="json")) == (403, "not-permitted")
    assert Identity.objects.get().user == people.bob


def test_an_administrator_keeps_the_last_way_in(people: SimpleNamespace, as_user: AsUser) -> None:
    User.objects.filter(pk=people.ada.pk).update(password="!")
    only = link_identity(people.ada, ISSUER, "of ada", actor=factories.SYSTEM)
    of_bob = link_identity(people.bob, ISSUER, "of bob", actor=Actor.system("tests"))
    ada = as_user(User.objects.get(pk=people.ada.pk))

    assert _code(ada.delete(f"{IDENTITIES}{only.pk}/?reason=x")) == (409, "conflict")
    assert ada.delete(f"{IDENTITIES}{of_bob.pk}/?reason=x").status_code == 204
    assert list(Identity.objects.all()) == [only]


def test_a_token_that_is_good_for_less_than_a_login_links_nothing(people: SimpleNamespace) -> None:
    def ask(**token: object) -> tuple[int, str]:
        text = create_token(people.ada, name="t", actor=factories.SYSTEM, **token)  # type: ignore[arg-type]
        client = APIClient()
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
        return _code(client.post(IDENTITIES, BODY, format="json"))

    narrower = [scope for scope in Scope.values if scope != Scope.CONTROL]
    assert ask(scopes=["admin"]) == (403, "scope-missing")
    assert ask(scopes=narrower) == (403, "scope-missing")
    assert ask(expires_at=timezone.now() + timedelta(days=900)) == (403, "not-permitted")
    assert not Identity.objects.exists()
