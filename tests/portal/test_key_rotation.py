"""Keys change while everything goes on: sessions, pilots, payloads, webhooks, credentials."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.contrib.sessions.models import Session
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from portal.config import env, live_keys
from portal.selftest import facts, keys
from tests import factories
from wms.core import key_rotation
from wms.core.actors import Actor
from wms.core.errors import NotAuthenticated, TokenExpired
from wms.core.key_rotation import KeyKind, former_keys_needed, renew_all
from wms.core.models import AuditEntry
from wms.factories.models import OrderBatch, PilotOrder, RemoteFactory
from wms.factories.orders import order_keys
from wms.factories.sealing import seal, unseal
from wms.jobs import payload_tokens
from wms.jobs.models import Attempt, Job
from wms.notices.models import Channel
from wms.notices.services import add_channel
from wms.notices.signing import secret_of
from wms.pilots.credentials.sealing import new_key
from wms.pilots.credentials.sealing import unseal as unseal_credential
from wms.pilots.protocol.attempt_refs import AttemptRef
from wms.pilots.protocol.registration import attempt_token, authenticate_pilot
from wms.placement.credential_models import PlacementCredential
from wms.placement.credentials import NewCredential, set_credential

pytestmark = pytest.mark.django_db

OLD, NEW = "the-former-key-" * 4, "the-new-key-" * 5
ACTOR = Actor.system("test")
SECRET = frozenset({KeyKind.SECRET})


@pytest.fixture(autouse=True)
def change_key(settings: Any) -> Callable[..., None]:
    """Change the secret key, as another environment would; the former ones behind it."""
    settings.SECRET_KEY_FILES = {"SECRET_KEY": None, "FALLBACKS": None}

    def change(key: str, *former: str) -> None:
        settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = key, list(former)

    change(OLD)
    return change


def run(*words: str) -> str:
    said = StringIO()
    call_command("rotate_keys", *words, stdout=said)
    return said.getvalue()


def test_who_is_logged_in_stays_so_when_the_former_key_has_gone(change_key: Any) -> None:
    browser = Client()
    browser.force_login(factories.person("alice"))
    stored = Session.objects.get().session_data
    change_key(NEW, OLD)
    assert browser.get("/api/v1/me/").status_code == 200

    Session.objects.update(session_data=stored)
    browser.cookies["sessionid"] = Session.objects.get().pk
    renew_all(SECRET, actor=ACTOR)
    change_key(NEW)

    assert browser.get("/api/v1/me/").status_code == 200
    assert renew_all(SECRET, actor=ACTOR)[0].renewed == 0


def test_a_running_attempt_keeps_its_tokens_as_long_as_the_former_key_is_there(
    change_key: Any,
) -> None:
    factories.job(factories.person("alice"))
    claimed = factories.claim(factories.pilot())
    assert claimed is not None
    factories.describe(Job.objects.all(), directives={"has_token": True})
    ref = AttemptRef(claimed.job.pk, claimed.number)
    now = timezone.now()
    token = attempt_token(claimed.pilot, ref)
    payloads = payload_tokens.token_for(Attempt.objects.get(), now=now)
    assert payloads is not None

    change_key(NEW, OLD)
    renew_all(SECRET, actor=ACTOR)

    assert authenticate_pilot(claimed.pilot.uuid, token, attempt=ref, now=now)
    assert payload_tokens.authenticate_payload(payloads.text, now=now).job == claimed.job
    assert [each.what for each in former_keys_needed(now + timedelta(days=2))] == [
        "tokens of running attempts"
    ]
    change_key(NEW)
    with pytest.raises(NotAuthenticated):
        authenticate_pilot(claimed.pilot.uuid, token, attempt=ref, now=now)
    with pytest.raises(TokenExpired):
        payload_tokens.authenticate_payload(payloads.text, now=now)


def test_a_webhook_has_the_same_secret_when_the_former_key_has_gone(
    change_key: Any, settings: Any
) -> None:
    notices = settings.PILOTAGE["NOTICES"] | {"PLAIN_HTTP": True}
    settings.PILOTAGE = settings.PILOTAGE | {"NOTICES": notices}
    alice = Actor.person(factories.person("alice"))
    made = add_channel("webhook", url="https://hooks.example.org/", pace="now", actor=alice)

    for key, former in ((NEW, OLD), ("a-third-key-" * 5, NEW)):
        change_key(key, former)
        assert secret_of(Channel.objects.get()) == made.secret
        renew_all(SECRET, actor=ACTOR)
        change_key(key)
        assert secret_of(Channel.objects.get()) == made.secret

    assert made.secret not in Channel.objects.get().sealed_secret
    change_key(OLD, NEW)
    assert secret_of(Channel.objects.get()) is None


def test_what_is_ordered_of_a_factory_is_opened_by_the_new_key_alone(change_key: Any) -> None:
    factory = RemoteFactory.objects.create(name="south")
    batch = OrderBatch.objects.create(
        name="b", factory=factory, entry="e", script="", cores=1, memory_mb=1, gpus=0, minutes=1
    )
    sealed = seal(order_keys()[0], "uuid:secret")
    for index, text in enumerate((sealed, "of another key", "")):
        PilotOrder.objects.create(batch=batch, index=index, uuid=f"{index:032x}", sealed=text)

    change_key(NEW, OLD)
    renew_all(SECRET, actor=ACTOR)
    change_key(NEW)

    first, *rest = PilotOrder.objects.order_by("index").values_list("sealed", flat=True)
    assert unseal(order_keys(), first) == "uuid:secret"
    assert rest == ["of another key", ""]


def test_an_equal_request_under_the_same_key_is_the_same_under_another_secret_key(
    change_key: Any,
) -> None:
    headers = {
        "Authorization": f"Token {factories.token_for(factories.person('alice'))}",
        "Idempotency-Key": "once",
    }
    body = {"endpoint": "davs://s.example.org", "user": "alice", "password": "open sesame"}

    def ask() -> Any:
        return Client(headers=headers).post(
            "/api/v1/placement-credentials/", body, content_type="application/json"
        )

    assert ask().status_code == 201
    change_key(NEW, OLD)
    repeated = ask()

    assert repeated.headers["Idempotency-Replayed"] == "true"
    change_key(NEW)
    assert ask().status_code == 409


def test_a_rotation_that_was_killed_is_finished_by_the_next_one(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setattr(key_rotation, "_BATCH", 1)
    keys = [new_key(), new_key()]
    settings.PILOTAGE = settings.PILOTAGE | {"CREDENTIAL_KEYS": keys[0]}
    alice = factories.person("alice")
    for host in "abc":
        new = NewCredential(f"ftp://{host}.example.org", "alice", "secret")
        set_credential(new, owner=alice, actor=Actor.person(alice))
    settings.PILOTAGE = settings.PILOTAGE | {"CREDENTIAL_KEYS": f"{keys[1]} {keys[0]}"}

    def killed(what: str, done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        renew_all({KeyKind.CREDENTIALS}, actor=ACTOR, tell=killed)
    assert not AuditEntry.objects.filter(target="credential keys").exists()
    results = renew_all({KeyKind.CREDENTIALS}, actor=ACTOR)

    assert sum(each.renewed for each in results) == 1
    settings.PILOTAGE = settings.PILOTAGE | {"CREDENTIAL_KEYS": keys[1]}
    sealed = PlacementCredential.objects.values_list("sealed", flat=True)
    assert {unseal_credential(each) for each in sealed} == {"secret"}
    assert AuditEntry.objects.get(target="credential keys").facts["lost"] == []


def test_keys_in_files_change_while_programs_run(tmp_path: Path, settings: Any) -> None:
    files = {"SECRET_KEY": tmp_path / "key", "FALLBACKS": tmp_path / "former"}
    files["SECRET_KEY"].write_text(f"{OLD}\n")
    settings.SECRET_KEY_FILES = files
    settings.PILOTAGE = settings.PILOTAGE | {
        "CREDENTIAL_KEYS": "", "CREDENTIAL_KEYS_FILE": str(tmp_path / "sealing"),
    }  # fmt: skip
    browser = Client()
    browser.force_login(factories.person("alice"))

    said = run("--new")

    assert [files[each].stat().st_mode & 0o077 for each in files] == [0, 0]
    assert files["FALLBACKS"].read_text().split() == [OLD]
    assert files["SECRET_KEY"].read_text().strip() == settings.SECRET_KEY
    assert settings.SECRET_KEY not in {OLD, *said.split()}
    assert browser.get("/api/v1/me/").status_code == 200
    with pytest.raises(CommandError):
        run("--drop-old")
    assert settings.SECRET_KEY_FALLBACKS


def test_a_key_that_somebody_else_has_put_first_is_not_lost(tmp_path: Path, settings: Any) -> None:
    files = {"SECRET_KEY": tmp_path / "key", "FALLBACKS": tmp_path / "former"}
    files["SECRET_KEY"].write_text(OLD)
    settings.SECRET_KEY_FILES = files
    live_keys.follow_files()
    files["SECRET_KEY"].write_text(NEW)
    files["FALLBACKS"].write_text(OLD)

    live_keys.add_secret_key()

    assert files["FALLBACKS"].read_text().split() == [NEW, OLD]


def test_former_secret_keys_go_when_nothing_needs_them(tmp_path: Path, settings: Any) -> None:
    files = {"SECRET_KEY": tmp_path / "key", "FALLBACKS": tmp_path / "former"}
    files["SECRET_KEY"].write_text("k" * 50)
    settings.SECRET_KEY_FILES = files
    live_keys.follow_files()
    run("--new", "--only", "secret-key")
    assert settings.SECRET_KEY_FALLBACKS == ["k" * 50]
    Session.objects.all().delete()

    with time_machine.travel(timezone.now() + timedelta(hours=25)):
        run("--drop-old", "--only", "secret-key")

    assert files["FALLBACKS"].read_text() == ""
    assert settings.SECRET_KEY_FALLBACKS == []
    settings.SECRET_KEY_FILES = {"SECRET_KEY": None, "FALLBACKS": None}
    with pytest.raises(CommandError):
        run("--new", "--only", "secret-key")


def test_a_key_file_that_cannot_be_read_leaves_the_key_as_it_was(
    tmp_path: Path, settings: Any
) -> None:
    file = tmp_path / "key"
    settings.SECRET_KEY_FILES = {"SECRET_KEY": file, "FALLBACKS": None}
    for content in (b"", b"\xff\xfe"):
        file.write_bytes(content)
        live_keys.follow_files()
        assert settings.SECRET_KEY == OLD
    file.unlink()
    live_keys.follow_files()
    assert settings.SECRET_KEY == OLD


def test_the_self_test_tells_of_keys_that_open_nothing(settings: Any) -> None:
    def codes() -> list[str]:
        return [
            each.code for each in keys.keys(facts.credential_keys_trouble(), facts.lost_secrets())
        ]

    alice = factories.person("alice")
    new = NewCredential("ftp://s.example.org", "alice", "secret")
    set_credential(new, owner=alice, actor=Actor.person(alice))
    assert codes() == ["keys"]

    settings.PILOTAGE = settings.PILOTAGE | {"CREDENTIAL_KEYS": new_key()}
    assert codes() == ["keys-wrong"]
    settings.PILOTAGE = settings.PILOTAGE | {"CREDENTIAL_KEYS": "no key"}
    assert codes() == ["keys-missing", "keys-wrong"]


@pytest.mark.parametrize("value", ["x", "a" * 43 + "\u00e9", "a" * 45])
def test_a_key_that_is_none_stops_the_start_and_is_not_told(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PILOTAGE_CREDENTIAL_KEYS", f"{new_key()}, {value}")

    with pytest.raises(ImproperlyConfigured) as fault:
        env.check_sealing_keys("PILOTAGE_CREDENTIAL_KEYS")

    assert value not in str(fault.value).split()
