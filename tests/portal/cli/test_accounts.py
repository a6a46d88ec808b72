from __future__ import annotations

import io
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from tests import factories
from wms.core.models import ApiToken, AuditEntry, Role, User
from wms.core.tokens import authenticate_token

pytestmark = pytest.mark.django_db
PASSPHRASE = "a long pass phrase"


def _run(*words: str) -> str:
    out = io.StringIO()
    call_command("accounts", *words, stdout=out)
    return out.getvalue().strip()


def test_the_first_administrator_is_made_with_a_password_that_works() -> None:
    password = _run("add", "root", "--role", "admin")

    user = User.objects.get(username="root")
    assert user.check_password(password)
    assert (user.role, user.is_staff) == (Role.ADMIN, True)
    assert AuditEntry.objects.get(action="create account").actor == "system:command line"


def test_what_the_printed_word_is_stands_beside_it_on_the_error_stream() -> None:
    out, beside = io.StringIO(), io.StringIO()

    call_command("accounts", "add", "root", stdout=out, stderr=beside)

    assert len(out.getvalue().split()) == 1
    assert "password" in beside.getvalue()


def test_a_given_password_is_not_printed(monkeypatch: Any) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{PASSPHRASE}\n"))

    assert _run("add", "alice", "--password", "stdin") == ""
    assert User.objects.get(username="alice").check_password(PASSPHRASE)


@pytest.mark.parametrize(
    ("username", "password"),
    [("alice", "12345678"), ("a b", "a long pass phrase"), ("x" * 151, "a long pass phrase")],
)
def test_an_account_that_could_not_log_in_or_be_stored_is_refused(
    monkeypatch: Any, username: str, password: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(password + "\n"))

    with pytest.raises(CommandError):
        _run("add", username, "--password", "stdin")
    assert not User.objects.exists()


def test_an_account_that_exists_keeps_its_password() -> None:
    alice = factories.people().alice

    with pytest.raises(CommandError, match="already"):
        _run("add", "alice")
    assert User.objects.get(pk=alice.pk).password == alice.password


def test_a_token_is_printed_and_ends() -> None:
    alice = factories.people().alice

    text = _run("token", "alice", "--name", "laptop", "--days", "7")

    assert authenticate_token(text, now=timezone.now()) == alice
    until = ApiToken.objects.get().expires_at
    assert until is not None
    assert timedelta(days=6) < until - timezone.now() <= timedelta(days=7)


@pytest.mark.parametrize(
    "words", [("nobody",), ("alice", "--days", "0"), ("alice", "--days", "9999")]
)
def test_no_token_without_an_account_or_an_end(words: list[str]) -> None:
    factories.people()

    with pytest.raises(CommandError):
        _run("token", *words, "--name", "x")
    assert not ApiToken.objects.exists()


def test_a_service_gets_an_account_and_its_tokens_are_listed_and_revoked() -> None:
    group = factories.accounting(factories.people().alice)
    _run("service", "robot", "--group", group.name, "--reason", "nightly")
    text = _run("token", "robot", "--name", "nightly", "--scopes", "read")

    robot = User.objects.get(username="robot")
    assert (robot.is_service, robot.has_usable_password()) == (True, False)
    assert list(robot.accounting_groups.all()) == [group]
    prefix = text.split("_")[1]
    assert _run("tokens", "robot").split("\t")[:4] == [prefix, "robot", "nightly", "read"]
    _run("revoke", text, "--reason", "leaked")
    assert _run("tokens", "robot") == ""
    assert AuditEntry.objects.get(action="revoke token").reason == "leaked"
    with pytest.raises(CommandError):
        _run("revoke", prefix, "--reason", "again")
    with pytest.raises(CommandError):
        _run("service", "other", "--group", "nothing")


def test_an_identity_is_linked_once_and_unlinked_with_its_reason(db: None) -> None:
    alice = factories.person("alice")
    named = ["--issuer", "https://iam.example.org/", "--subject", "7b2e", "--reason", "by mail"]

    call_command("accounts", "link", "alice", *named)

    assert alice.identities.get().subject == "7b2e"
    line = _run("identities", "alice").split("\t")
    assert [*line[:3], line[-1].strip()] == [
        "alice", "7b2e", "https://iam.example.org/", "never used",
    ]  # fmt: skip
    assert _run("identities", "nobody").strip() == ""
    for wrong in (["link", "alice", *named], ["link", "nobody", *named]):
        with pytest.raises(CommandError):
            call_command("accounts", *wrong)
    call_command("accounts", "unlink", *named)
    with pytest.raises(CommandError):
        call_command("accounts", "unlink", *named)
    assert not alice.identities.exists()
    trail = AuditEntry.objects.filter(target="user alice", reason="by mail")
    assert set(trail.values_list("action", flat=True)) == {"link identity", "unlink identity"}
