"""Credentials of frontends: what is stored, who is submitted and asked for with which."""

from __future__ import annotations

import json
import subprocess
from base64 import urlsafe_b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from django.core.management import CommandError, call_command
from django.utils import timezone

from matching.task_queues.needs import Needs
from tests.wms.pilots.claiming import submit
from tests.wms.pilots.directing import direct, poll
from tests.wms.pilots.fake_element import FakeElement
from wms.accounting.models import AccountingGroup, Frontend
from wms.core.actors import Actor
from wms.core.errors import Conflict, InvalidInput, NotPermitted
from wms.core.models import AuditEntry, User
from wms.elements import registry
from wms.elements.logins import Login, LoginKind
from wms.elements.protocol import Unreachable
from wms.explain.needs import explain_needs
from wms.pilots.credential_models import Credential
from wms.pilots.credentials.choice import element_with
from wms.pilots.credentials.sealing import NoKey, new_key, unseal
from wms.pilots.credentials.secrets import read_secret
from wms.pilots.credentials.selectors import ending_credentials, visible_credentials
from wms.pilots.credentials.services import delete_credential, save_credential
from wms.pilots.models import Pilot
from wms.pilots.pressure_models import ElementContact, PressureRequest
from wms.sites.frontends.models import FrontendEntry
from wms.sites.models import Queue

pytestmark = pytest.mark.django_db


def token(**claims: object) -> str:
    """An unsigned token with these claims."""
    parts = ({"alg": "none"}, claims)
    words = (urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    return ".".join([*words, "c2ln"])


@pytest.fixture
def logins(monkeypatch: pytest.MonkeyPatch, elements: dict[str, FakeElement]) -> list[Login]:
    """Logins shown to fake elements, which then are named by their secrets."""
    shown: list[Login] = []

    def build(settings: Any, login: Login) -> FakeElement:
        shown.append(login)
        return elements.setdefault(login.secret, FakeElement())

    monkeypatch.setitem(registry._LOGIN_KINDS, "fake", (LoginKind.BEARER_TOKEN,))
    monkeypatch.setitem(registry._WITH_LOGINS, "fake", build)
    return shown


@pytest.fixture
def give(olga: User) -> Callable[..., Credential]:
    def made(secret: str, **fields: Any) -> Credential:
        credential = Credential(**{"kind": "bearer-token"} | fields)
        credential.new_secret = secret
        save_credential(credential, actor=Actor.person(olga))
        return credential

    return made


@pytest.fixture
def shared(make_queue: Any, alice: User) -> tuple[Queue, Frontend]:
    """A queue at which the frontend `lsst` has an entry beside the default one."""
    queue = make_queue()
    lsst = Frontend.objects.create(name="lsst")
    AccountingGroup.objects.create(name="lsst", frontend=lsst).members.add(alice)
    FrontendEntry.objects.create(frontend=lsst, queue=queue)
    return queue, lsst


def test_a_secret_is_stored_sealed_and_told_nowhere(
    shared: Any, logins: Any, give: Any, olga: User, alice: User, caplog: Any, capsys: Any
) -> None:
    queue, lsst = shared
    secret = token(sub="lsst", iss="pool", exp=4_102_444_800)

    credential = give(secret, name="lsst-token", frontend=lsst, queue=queue)

    stored = Credential.objects.get()
    assert secret not in stored.sealed
    assert unseal(stored.sealed) == secret
    assert (stored.subject, stored.expires_at) == ("lsst@pool", datetime(2100, 1, 1, tzinfo=UTC))
    assert stored.fingerprint.startswith("SHA256:")
    [entry] = AuditEntry.objects.filter(target="credential lsst-token")
    told = [json.dumps(entry.facts), repr(credential), str(stored)]
    assert secret not in repr(vars(credential))
    told.append(repr(Login(LoginKind.BEARER_TOKEN, secret, "mark")))
    element_with(queue, stored.pk)
    told += [caplog.text, *capsys.readouterr()]
    assert not any(part in text for text in told for part in (secret, stored.sealed))

    stored.account = "x"
    with pytest.raises(InvalidInput) as fault:
        save_credential(stored, actor=Actor.person(olga))
    assert [each.field for each in fault.value.findings] == ["account"]
    with pytest.raises(NotPermitted):
        save_credential(Credential.objects.get(), actor=Actor.person(alice))
    assert visible_credentials(olga).count() == 1
    assert not visible_credentials(alice).exists()


def test_a_renewed_secret_takes_the_place_of_the_old_one_and_no_secret_keeps_it(
    shared: Any, logins: Any, give: Any, olga: User
) -> None:
    queue, lsst = shared
    credential = give(token(sub="lsst"), name="t", frontend=lsst, queue=queue)
    first = Credential.objects.get().sealed

    credential.valid_until = timezone.now() + timedelta(days=30)
    save_credential(credential, actor=Actor.person(olga))
    assert Credential.objects.get().sealed == first

    credential.new_secret = token(sub="lsst", jti="2")
    save_credential(credential, actor=Actor.person(olga))
    assert unseal(Credential.objects.get().sealed) == token(sub="lsst", jti="2")
    assert credential.new_secret == ""


@pytest.mark.parametrize(
    ("fields", "secret", "field"),
    [
        ({"kind": "ssh-key"}, "x", "kind"),
        ({}, "", "secret"),
        ({}, "two words", "secret"),
        ({}, token(exp=1_000_000_000), "secret"),
        ({"valid_until": datetime(2001, 1, 1, tzinfo=UTC)}, token(), "valid_until"),
        ({"queue": None}, token(), "queue"),
        ({"directory": "/home/x"}, token(), "directory"),
        ({"name": "a b"}, token(), "name"),
    ],
)
def test_a_credential_that_is_of_no_use_is_refused_at_its_field_and_stores_nothing(
    shared: Any, logins: Any, give: Any, fields: dict[str, Any], secret: str, field: str
) -> None:
    queue, lsst = shared

    with pytest.raises(InvalidInput) as fault:
        give(secret, **{"name": "t", "frontend": lsst, "queue": queue} | fields)

    assert field in [each.field for each in fault.value.findings]
    assert not Credential.objects.exists()


def test_each_frontend_is_submitted_asked_for_and_removed_with_its_own_credential(
    shared: Any, logins: Any, give: Any, elements: Any, alice: User, olga: User
) -> None:
    queue, lsst = shared
    now = timezone.now()
    credential = give(token(sub="lsst"), name="t", frontend=lsst, queue=queue)
    submit(alice, "lsst")
    submit(alice)

    direct(now)

    mine = Pilot.objects.get(frontend=lsst)
    assert mine.credential == credential
    assert Pilot.objects.get(frontend=None).credential is None
    own, theirs = elements["site-a"], elements[token(sub="lsst")]
    assert (len(own.states), len(theirs.states)) == (1, 1)

    own.fail_with = Unreachable("time-out")
    assert poll(now)["site-a/main"].polled == 1
    mine.refresh_from_db()
    assert mine.batch_state == "queued"
    [failing] = ElementContact.objects.filter(failures__gt=0)
    assert failing.credential is None

    own.fail_with = None
    credential.account = ""
    for change in ({"queue": None, "site": queue.site}, {"frontend": None}):
        for name, value in change.items():
            setattr(credential, name, value)
        with pytest.raises(InvalidInput):
            save_credential(credential, actor=Actor.person(olga))
        credential.refresh_from_db()
    credential.new_secret = token(sub="somebody else")
    with pytest.raises(InvalidInput) as fault:
        save_credential(credential, actor=Actor.person(olga))
    assert [each.field for each in fault.value.findings] == ["secret"]
    credential.refresh_from_db()
    with pytest.raises(Conflict):
        delete_credential(credential, actor=Actor.person(olga))

    Pilot.objects.filter(pk=mine.pk).update(state="done", token_sha256="x", ended_at=now)
    delete_credential(credential, actor=Actor.person(olga))
    mine.refresh_from_db()
    assert (mine.credential, mine.is_forgotten) == (None, True)


def test_one_that_has_expired_or_is_off_closes_its_entry_only_and_the_reason_is_told(
    shared: Any, logins: Any, give: Any, alice: User
) -> None:
    queue, lsst = shared
    now = timezone.now()
    credential = give(token(sub="lsst"), name="t", frontend=lsst, site=queue.site)
    submit(alice, "lsst")
    submit(alice)

    for change in ({"expires_at": now}, {"expires_at": None, "is_enabled": False}):
        Credential.objects.filter(pk=credential.pk).update(**change)
        direct(now)
        request = PressureRequest.objects.get(frontend=lsst)
        assert (request.granted, request.demand_gone_at) == (0, None)
        assert any("t" in text for text in request.reasons)
        assert Pilot.objects.filter(frontend=lsst).count() == 0
        told = explain_needs(Needs.of("alice", owner_group="lsst"), now=now)
        assert told.queues[0].closed in request.reasons
    assert Pilot.objects.filter(frontend=None).count() == 1

    Credential.objects.filter(pk=credential.pk).update(is_enabled=True)
    direct(now)
    assert Pilot.objects.get(frontend=lsst).credential == credential


def test_a_credential_without_its_key_makes_its_frontend_wait_and_nobody_else(
    shared: Any, logins: Any, give: Any, alice: User, settings: Any
) -> None:
    queue, lsst = shared
    now = timezone.now()
    give(token(sub="lsst"), name="t", frontend=lsst, queue=queue)
    submit(alice, "lsst")
    submit(alice)
    settings.PILOTAGE = {**settings.PILOTAGE, "CREDENTIAL_KEYS": new_key()}

    direct(now)

    assert not Pilot.objects.filter(frontend=lsst).exists()
    assert Pilot.objects.filter(frontend=None).count() == 1
    [failing] = ElementContact.objects.filter(failures__gt=0)
    assert failing.credential is not None


def test_the_end_of_a_credential_is_told_ahead(
    shared: Any, logins: Any, give: Any, olga: User
) -> None:
    queue, lsst = shared
    now = timezone.now()
    give(token(), name="t", frontend=lsst, queue=queue, valid_until=now + timedelta(days=30))
    give(token(), name="u", queue=queue, valid_until=now + timedelta(hours=4))

    def told(after: timedelta) -> list[str]:
        return [each.name for each in ending_credentials(olga, now + after)]

    assert told(timedelta()) == []
    assert told(timedelta(hours=3, minutes=30)) == ["u"]
    assert told(timedelta(days=24)) == ["u", "t"]


def rotate(*options: str, said: StringIO | None = None) -> None:
    call_command("rotate_keys", "--only", "credential-keys", *options, stdout=said or StringIO())


def test_keys_are_changed_without_a_stop(
    shared: Any, logins: Any, give: Any, settings: Any, tmp_path: Path
) -> None:
    queue, lsst = shared
    keys = tmp_path / "keys"
    keys.write_text(f"{new_key()}\n")
    settings.PILOTAGE = {
        **settings.PILOTAGE,
        "CREDENTIAL_KEYS": "",
        "CREDENTIAL_KEYS_FILE": str(keys),
    }
    give("opaque", name="t", frontend=lsst, queue=queue)
    before, old = Credential.objects.get().sealed, keys.read_text()
    said = StringIO()

    rotate("--new", said=said)

    stored = Credential.objects.get()
    assert stored.sealed != before
    assert [unseal(before), unseal(stored.sealed)] == ["opaque", "opaque"]
    assert keys.read_text().endswith(old)
    assert keys.stat().st_mode & 0o077 == 0
    assert not any(key in said.getvalue() for key in keys.read_text().split())

    keys.write_text(f"{new_key()}\n")
    with pytest.raises(NoKey):
        unseal(stored.sealed)
    with pytest.raises(CommandError):
        rotate("--drop-old", said=said)
    assert Credential.objects.get().sealed == stored.sealed


def test_old_keys_are_dropped_when_nothing_is_sealed_with_them(
    shared: Any,
    logins: Any,
    give: Any,
    settings: Any,
    tmp_path: Path,
    django_capture_on_commit_callbacks: Any,
) -> None:
    queue, lsst = shared
    keys = tmp_path / "keys"
    settings.PILOTAGE = {
        **settings.PILOTAGE,
        "CREDENTIAL_KEYS": "",
        "CREDENTIAL_KEYS_FILE": str(keys),
    }
    with pytest.raises(InvalidInput) as fault:
        give("opaque", name="t", frontend=lsst, queue=queue)
    assert [each.field for each in fault.value.findings] == ["secret"]
    rotate("--new")
    give("opaque", name="t", frontend=lsst, queue=queue)

    with django_capture_on_commit_callbacks(execute=True):
        rotate("--new", "--drop-old")

    assert len(keys.read_text().split()) == 1
    assert unseal(Credential.objects.get().sealed) == "opaque"


def _pem(key: Any) -> bytes:
    written: bytes = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return written


@pytest.mark.process
def test_keys_and_certificates_are_known_by_what_they_are(tmp_path: Path) -> None:
    key, other = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "robot")])
    ends = datetime(2100, 1, 1, tzinfo=UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(ends)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    whole = read_secret(LoginKind.CERTIFICATE, (certificate + _pem(key)).decode())
    assert (whole.subject, whole.expires_at) == ("CN=robot", ends)
    written = tmp_path / "key"
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(written)]
    subprocess.run(argv, check=True, timeout=30)
    listed = subprocess.run(
        ["ssh-keygen", "-l", "-f", str(written)], capture_output=True, check=True, timeout=30
    )
    told = read_secret(LoginKind.SSH_KEY, written.read_text().replace("\n", "\r\n"))
    assert told.fingerprint == listed.stdout.decode().split()[1]
    assert told.secret == written.read_text()

    protected = tmp_path / "protected"
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "word1", "-f", str(protected)]
    subprocess.run(argv, check=True, timeout=30)
    for kind, text in (
        (LoginKind.CERTIFICATE, certificate),
        (LoginKind.CERTIFICATE, _pem(key)),
        (LoginKind.CERTIFICATE, certificate + _pem(other)),
        (LoginKind.SSH_KEY, protected.read_bytes()),
        (LoginKind.SSH_KEY, written.with_suffix(".pub").read_bytes()),
        (LoginKind.HTCONDOR_TOKEN, b"opaque"),
        (LoginKind.BEARER_TOKEN, b"x" * 100_000),
    ):
        with pytest.raises(InvalidInput) as fault:
            read_secret(kind, text.decode())
        assert text.decode() not in str(fault.value)
        assert [each.field for each in fault.value.findings] == ["secret"]
