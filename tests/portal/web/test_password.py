"""Password tab of the account page."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from django.test import Client

from tests import factories
from wms.core.models import AuditEntry, User

# Wrong passwords are counted there.
pytestmark = pytest.mark.usefixtures("own_cache")

ACCOUNT = "/account/"
BrowserOf = Callable[[User], Client]


def test_the_password_is_changed_and_other_sessions_end(
    people: SimpleNamespace, alice: Client, browser_of: BrowserOf
) -> None:
    other = browser_of(people.alice)
    body = {
        "old_password": factories.PASSWORD,
        "new_password1": "a purple staple",
        "new_password2": "a purple staple",
    }

    answer = alice.post(f"{ACCOUNT}password/", body)

    assert answer.status_code == 302
    assert alice.get(ACCOUNT).status_code == 200
    assert other.get(ACCOUNT).status_code == 302, "its session has ended"
    assert Client().login(username="alice", password="a purple staple")
    entry = AuditEntry.objects.get(action="change password")
    assert "purple" not in f"{entry.facts}{entry.target}"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"old_password": "wrong"}, "old_password"),
        ({"new_password2": "another staple"}, "new_password2"),
        ({"new_password1": "short", "new_password2": "short"}, "new_password2"),
    ],
)
def test_a_bad_change_of_the_password_tells_why(
    people: SimpleNamespace, alice: Client, changes: dict[str, str], field: str
) -> None:
    body = {
        "old_password": factories.PASSWORD,
        "new_password1": "a purple staple",
        "new_password2": "a purple staple",
    }

    answer = alice.post(f"{ACCOUNT}password/", body | changes)

    assert answer.status_code == 400
    assert set(answer.context["password_form"].errors) == {field}
    assert f'id="fault-{field}"' in answer.content.decode()
    people.alice.refresh_from_db()
    assert people.alice.check_password(factories.PASSWORD)


def test_an_account_without_a_password_has_none_to_change(
    people: SimpleNamespace, browser_of: BrowserOf
) -> None:
    people.bob.set_unusable_password()
    people.bob.save()
    bob = browser_of(people.bob)

    alice = browser_of(people.alice)

    for browser, has_form in ((alice, True), (bob, False)):
        page = browser.get(ACCOUNT, {"tab": "password"}).content.decode()
        assert ('name="old_password"' in page) is has_form
    assert bob.post(f"{ACCOUNT}password/", {}).status_code == 409
