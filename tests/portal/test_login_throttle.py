from __future__ import annotations

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client, RequestFactory

from portal.embedded.ports import free_ports
from portal.middleware import login_throttle
from portal.middleware.login_throttle import (
    FAILURES_PER_ACCOUNT,
    TooManyWrongPasswords,
    throttled_check,
)
from tests import factories
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
    monkeypatch.setattr(login_throttle, "FAILURES_PER_ADDRESS", 5)
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


def test_of_guesses_that_come_at_once_no_more_are_looked_at_than_one_after_another(
    address: str,
) -> None:
    request = RequestFactory(REMOTE_ADDR=address).post("/login/")
    # None is answered before as many as are allowed are under way.
    together = Barrier(FAILURES_PER_ACCOUNT, timeout=60)

    def guess(_: int) -> bool:
        try:
            return throttled_check(request, "alice", lambda: bool(together.wait() < 0)) is False
        except TooManyWrongPasswords:
            return False

    with ThreadPoolExecutor(4 * FAILURES_PER_ACCOUNT) as threads:
        looked_at = sum(threads.map(guess, range(4 * FAILURES_PER_ACCOUNT)))

    assert looked_at == FAILURES_PER_ACCOUNT


def test_right_passwords_do_not_count(alice: User, address: str) -> None:
    codes = {login(address, alice.username, "right") for _ in range(FAILURES_PER_ACCOUNT + 1)}

    assert codes == {302}


def test_a_count_that_was_forgotten_while_it_grew_ends_all_the_same(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache may forget a count between the two commands that make and raise it."""
    request = RequestFactory(REMOTE_ADDR=address).post("/login/")
    key, _ = login_throttle._keys(request, "alice")
    cache.set(key, 0, timeout=None)

    throttled_check(request, "alice", lambda: False)

    client = cache._cache.get_client()
    # True where there was an end to take away.
    assert client.persist(cache.make_key(key))


def test_without_a_cache_nobody_is_locked_out(alice: User, address: str, settings: Any) -> None:
    """An operator who repairs the portal has to get in."""
    location = f"redis://127.0.0.1:{free_ports(1)[0]}"
    settings.CACHES = {"default": settings.CACHES["default"] | {"LOCATION": location}}

    for _ in range(FAILURES_PER_ACCOUNT + 1):
        assert login(address, alice.username, "wrong") == 200
    assert login(address, alice.username, "right") == 302


def _change_on_own_page(browser: Client, old: str) -> int:
    form = {"old_password": old, "new_password1": "a purple staple"}
    return browser.post(
        "/account/password/", form | {"new_password2": "a purple staple"}
    ).status_code


def _change_in_administration(browser: Client, old: str) -> int:
    form = {"old_password": old, "new_password1": "a purple staple"}
    return browser.post(
        "/admin/password_change/", form | {"new_password2": "a purple staple"}
    ).status_code


@pytest.mark.parametrize("change", [_change_on_own_page, _change_in_administration])
def test_a_wrong_old_password_is_a_guess(
    change: Callable[[Client, str], int], address: str
) -> None:
    """Whoever holds a session only cannot find the password out by the form that changes it."""
    olga = factories.people().olga
    olga.username = f"olga-{secrets.token_hex(4)}"
    olga.save()
    browser = Client(REMOTE_ADDR=address)
    browser.force_login(olga)
    for _ in range(FAILURES_PER_ACCOUNT):
        assert change(browser, "wrong") in {200, 400}

    assert change(browser, factories.PASSWORD) == 429
    assert login(address, olga.username, factories.PASSWORD) == 429
    olga.refresh_from_db()
    assert olga.check_password(factories.PASSWORD)
