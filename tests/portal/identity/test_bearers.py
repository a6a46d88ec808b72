"""Signed tokens of a real issuer open the API, offline and no further than they say."""

from __future__ import annotations

import base64
import hmac
import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
import time_machine
from django.test import Client

from portal.config.identity_providers import token_issuers
from tests import factories
from tests.identity_provider.fixtures import PORTAL
from tests.identity_provider.server import Provider
from wms.core.actors import Actor
from wms.core.identities import link_identity, unlink_identity
from wms.core.identity_models import Identity, IssuerDocument, NamedSubject
from wms.core.models import User

pytestmark = pytest.mark.django_db
ACTOR = Actor.system("tests")


@pytest.fixture
def nora(provider: Provider) -> User:
    account = factories.person("nora")
    link_identity(account, provider.issuer, provider.person("nora"), actor=ACTOR)
    return account


def ask(token: str, path: str = "me/", method: str = "get", **body: Any) -> Any:
    headers = {"Authorization": f"Bearer {token}"}
    ask_by = getattr(Client(), method)
    return ask_by(f"/api/v1/{path}", body, content_type="application/json", headers=headers)


def _part(content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


def refusal(token: str, **asked: Any) -> tuple[int, str]:
    answer = ask(token, **asked)
    return answer.status_code, answer.json().get("type", "").removeprefix("/problems/").rstrip("/")


def test_a_token_of_the_profile_reads_and_steers_as_its_scopes_say(
    provider: Provider, nora: User
) -> None:
    reader = provider.token("nora", scope="compute.read storage.read:/", audience=PORTAL)
    submitter = provider.token("nora", scope="compute.create", audience=PORTAL)

    assert ask(reader).json()["username"] == "nora"
    assert ask(reader, path="jobs/").status_code == 200
    assert refusal(reader, path="dags/", method="post") == (403, "scope-missing")
    assert refusal(submitter, path="jobs/") == (403, "scope-missing")
    # It is let in, and what it sent has faults.
    assert ask(submitter, path="trials/check/", method="post").status_code in (400, 415)
    identity = Identity.objects.get(user=nora)
    assert identity.last_used_from == "127.0.0.1"
    unlink_identity(provider.issuer, identity.subject, actor=ACTOR)
    assert refusal(reader) == (401, "token-subject")


def test_a_token_that_cancels_does_nothing_else(provider: Provider, nora: User) -> None:
    dag = factories.running_dag(nora)
    canceller = provider.token("nora", scope="compute.cancel", audience=PORTAL)
    reason = {"reason": "wrong input"}

    assert refusal(canceller, path=f"dags/{dag.pk}/hold/", method="post", **reason) == (
        403, "scope-missing",
    )  # fmt: skip
    answer = ask(canceller, path=f"dags/{dag.pk}/remove/", method="post", **reason)

    assert (answer.status_code, answer.json()["state"]) == (200, "removed")


def test_each_fault_of_a_token_has_its_own_answer(provider: Provider, nora: User) -> None:
    def told(audience: str = PORTAL, **claims: Any) -> tuple[int, str]:
        return refusal(provider.token("nora", audience=audience, changed=claims))

    now = int(time.time())

    assert told() == (200, "")
    assert told(exp=now - 120) == (401, "token-expired")
    assert told(nbf=now + 120) == (401, "token-too-early")
    assert told(iat=now + 120) == (401, "token-too-early")
    assert told(nbf=now + 30, iat=now + 30) == (200, "")
    assert told(audience="https://other.example.org") == (401, "token-audience")
    assert told(aud=["https://other.example.org", PORTAL]) == (200, "")
    assert told(aud=None) == (401, "token-audience")
    assert told(exp=None) == (401, "token-unreadable")
    assert told(exp=1e300) == (401, "token-unreadable")
    assert told(exp=float("inf")) == (401, "token-unreadable")
    assert told(sub=None) == (401, "token-unreadable")
    assert told(sub="") == (401, "token-unreadable")
    assert told(sub="nobody here") == (401, "token-subject")
    assert told(iss="https://other.example.org/") == (401, "token-issuer")
    assert told(**{"wlcg.ver": None}) == (401, "token-unreadable")
    assert told(**{"wlcg.ver": None, "ver": "scitokens:2.0"}) == (200, "")
    assert told(scope=["compute.read"]) == (401, "token-unreadable")
    User.objects.filter(pk=nora.pk).update(is_active=False)
    assert told() == (401, "account-off")


def test_what_is_not_signed_by_the_issuer_is_refused(provider: Provider, nora: User) -> None:
    good = provider.token("nora", scope="compute.read", audience=PORTAL)
    assert ask(good).status_code == 200
    header, payload, signature = good.split(".")
    claims = jwt.decode(good, options={"verify_signature": False})
    kid = jwt.get_unverified_header(good)["kid"]
    published = json.dumps(IssuerDocument.objects.get(issuer=provider.issuer).keys).encode()
    shared = f"{_part({'alg': 'HS256', 'kid': kid})}.{payload}"
    by_secret = hmac.new(published, shared.encode(), "sha256").digest()
    deep = base64.urlsafe_b64encode(b'{"a":' + b"[" * 5000).decode().rstrip("=")

    forged = [
        jwt.encode(claims, None, algorithm="none", headers={"kid": kid}),
        f"{shared}.{base64.urlsafe_b64encode(by_secret).decode().rstrip('=')}",
        f"{deep}.{payload}.{signature}",
        f"{header}.{payload}.{signature[::-1]}",
        f"{header}.{payload[:-4]}AAAA.{signature}",
        f"{header}.{payload}.",
        f"{good}{'A' * 9000}",
        f"{header}.{deep}.{signature}",
        "eyJ.eyJ.eyJ",
        "eyJ",
    ]

    assert {refusal(text) for text in forged} == {(401, "token-unreadable")}


def test_keys_are_kept_while_the_issuer_is_away_and_renewed_when_it_signs_by_another(
    provider: Provider, nora: User, settings: Any
) -> None:
    old = provider.token("nora", scope="compute.read", audience=PORTAL, changed={"exp": 2**32})
    assert ask(old).status_code == 200
    kept = IssuerDocument.objects.filter(issuer=provider.issuer)
    first = kept.get().keys

    provider.rotate_key()
    new = provider.token("nora", scope="compute.read", audience=PORTAL)
    # Just now it was asked: nobody makes the portal ask again and again.
    assert refusal(new) == (401, "token-unreadable")
    assert kept.get().keys == first
    kept.update(tried_at=datetime.now(UTC) - timedelta(minutes=1))
    assert ask(new).status_code == 200
    assert refusal(old) == (401, "token-unreadable")

    away = "http://127.0.0.1:9/o"
    later = provider.token(
        "nora", scope="compute.read", audience=PORTAL, changed={"iss": away, "exp": 2**32}
    )
    settings.TOKEN_ISSUERS = token_issuers(json.dumps({away: {}}), audience=PORTAL)
    assert refusal(later) == (503, "issuer-away")
    IssuerDocument.objects.filter(issuer=away).delete()
    kept.update(issuer=away)
    subject = Identity.objects.get(user=nora).subject
    link_identity(nora, away, subject, actor=ACTOR)
    with time_machine.travel(datetime.now(UTC) + timedelta(days=6)):
        assert ask(later).status_code == 200
    with time_machine.travel(datetime.now(UTC) + timedelta(days=8)):
        assert refusal(later) == (503, "issuer-away")


def test_the_settings_may_name_an_account_paths_and_other_scopes(
    provider: Provider, nora: User, settings: Any
) -> None:
    subject = Identity.objects.get(user=nora).subject
    factories.person("robot")
    given = {
        "audience": ["https://wlcg.cern.ch/jwt/v1/any"], "base_path": "/atlas/prod",
        "subjects": {subject: "robot"},
        "scopes": {"compute.read": ["read"], "condor:/READ": ["read"]},
    }  # fmt: skip
    settings.TOKEN_ISSUERS = token_issuers(json.dumps({provider.issuer: given}), audience=PORTAL)

    def reads(scope: str) -> bool:
        audience = given["audience"][0]
        token = provider.token("nora", audience=audience, changed={"scope": scope})
        assert ask(token).json()["username"] == "robot"
        return ask(token, path="jobs/").status_code == 200

    assert reads("compute.read")
    assert reads("compute.read:/")
    assert reads("compute.read:/atlas")
    assert reads("storage.read:/ condor:/READ")
    assert not reads("compute.read:/atlas/prod/one")
    assert not reads("compute.read:/atl")
    assert not reads("compute.read:/atlas/../atlas")
    assert not reads("compute.modify")


def test_the_use_by_a_subject_that_the_settings_name_is_kept_to_the_minute(
    provider: Provider, nora: User, settings: Any
) -> None:
    robot, subject = factories.person("robot"), Identity.objects.get(user=nora).subject
    given = {"subjects": {subject: "robot"}}
    settings.TOKEN_ISSUERS = token_issuers(json.dumps({provider.issuer: given}), audience=PORTAL)
    token = provider.token("nora", audience=PORTAL)
    now = datetime.now(UTC).replace(microsecond=0)

    for after_s in (0, 30):
        with time_machine.travel(now + timedelta(seconds=after_s), tick=False):
            assert ask(token).status_code == 200
    kept = NamedSubject.objects.get()
    assert (kept.user, kept.subject, kept.last_used_from) == (robot, subject, "127.0.0.1")
    assert kept.last_used_at == now
    with time_machine.travel(now + timedelta(seconds=90), tick=False):
        assert ask(token).status_code == 200
    kept.refresh_from_db()
    assert kept.last_used_at == now + timedelta(seconds=90)
    assert Identity.objects.get().last_used_at is None

    # It gives no right, and is shown where tokens are.
    browser = Client()
    browser.force_login(robot)
    page = browser.get("/account/?tab=tokens").content.decode()
    assert provider.issuer in page
    settings.TOKEN_ISSUERS = token_issuers(json.dumps({provider.issuer: {}}), audience=PORTAL)
    assert ask(token).json()["username"] == "nora"


@pytest.mark.parametrize("algorithm", [["RS256"], {"RS256": 1}, 256, None])
def test_an_algorithm_that_is_no_text_is_refused(provider: Provider, algorithm: object) -> None:
    claims = {"iss": provider.issuer, "sub": "nobody", "aud": PORTAL}
    header = {"typ": "JWT", "alg": algorithm}

    assert refusal(f"{_part(header)}.{_part(claims)}.AAAA") == (401, "token-unreadable")
