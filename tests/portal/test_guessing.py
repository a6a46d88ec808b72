from __future__ import annotations

import secrets
from typing import Any

import pytest
from django.test import Client

from portal import guessing
from portal.guessing import FAILURES_PER_ACCOUNT
from wms.core.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice() -> User:
    """An account of a new name each time: failures are counted in a cache that tests share."""
    return User.objects.create_user(f"alice-{secrets.token_hex(4)}", password="right")


@pytest.fixture
def address() -> str:
    """An address of the range for documentation, random for the same reason."""
    return f"2001:db8::{secrets.token_hex(2)}:{secrets.token_hex(2)}"


def login(address: str, username: str, password: str, **headers: Any) -> int:
    form = {"username": username, "password": password}
    return Client(REMOTE_ADDR=address, headers=headers).post("/login/", form).status_code


def test_guessing_a_password_locks_the_account_out_for_that_address(
    alice: User, address: str
) -> None:
    for _ in range(FAILURES_PER_ACCOUNT):
        assert login(address, alice.username, "wrong") == 200

    assert login(address, alice.username, "right") == 429
    assert login(address, f"not-{alice.username}", "wrong") == 200
    assert login(f"{address}1", alice.username, "right") == 302


@pytest.mark.parametrize("spelling", [" {}", "{}  ", "\uff41{}", "{}"])
def test_another_spelling_of_the_name_is_the_same_account(
    alice: User, address: str, spelling: str
) -> None:
    # A full-width letter in front stands for the first letter of the name.
    rest = alice.username[1:] if "\uff41" in spelling else alice.username
    for _ in range(FAILURES_PER_ACCOUNT):
        login(address, alice.username, "wrong")

    assert login(address, spelling.format(rest), "right") == 429


def test_many_guesses_from_one_address_end_whatever_the_accounts(
    alice: User, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guessing, "FAILURES_PER_ADDRESS", 5)
    for number in range(5):
        assert login(address, f"{alice.username}-{number}", "wrong") == 200

    assert login(address, alice.username, "right") == 429


def test_who_is_logged_in_is_not_concerned_by_the_guesses_of_others(
    alice: User, address: str
) -> None:
    inside = Client(REMOTE_ADDR=address)
    inside.force_login(alice)
    for _ in range(FAILURES_PER_ACCOUNT):
        login(address, alice.username, "wrong")

    assert inside.post("/logout/").status_code == 302


def test_behind_a_proxy_the_address_is_the_one_that_the_proxy_saw(
    alice: User, address: str, settings: Any
) -> None:
    settings.BEHIND_PROXY = True
    for _ in range(FAILURES_PER_ACCOUNT):
        login("127.0.0.1", alice.username, "wrong", x_forwarded_for=f"1.2.3.4, {address}")

    assert login("127.0.0.1", alice.username, "right", x_forwarded_for=address) == 429
    assert login("127.0.0.1", alice.username, "right", x_forwarded_for=f"{address}1") == 302


def test_without_a_proxy_nobody_believes_the_header(alice: User, address: str) -> None:
    for number in range(FAILURES_PER_ACCOUNT):
        login(address, alice.username, "wrong", x_forwarded_for=f"10.0.0.{number}")

    assert login(address, alice.username, "right", x_forwarded_for="10.0.0.99") == 429
