"""Accounts: made, changed and protected, with every change in the audit trail."""

from __future__ import annotations

import pytest

from tests import factories
from wms.core.accounts import change_password, ensure_account, save_account
from wms.core.actors import Actor
from wms.core.errors import Conflict, NotPermitted
from wms.core.models import AuditEntry, Role, User
from wms.core.policy import enters_administration

pytestmark = pytest.mark.django_db


def test_an_account_that_is_there_stays_as_it_is() -> None:
    alice = factories.person("alice")

    again = ensure_account("alice", password="other", role=Role.ADMIN, actor=factories.SYSTEM)

    assert again == alice
    assert again.role == Role.USER
    assert again.check_password(factories.PASSWORD)


@pytest.mark.parametrize("name", ["vera", "alice", "sam", "olga"])
def test_only_an_administrator_changes_accounts(name: str) -> None:
    somebody, bob = factories.person(name), factories.person("bob")
    bob.role = Role.OPERATOR

    with pytest.raises(NotPermitted):
        save_account(bob, actor=Actor.person(somebody))

    assert User.objects.get(username="bob").role == Role.USER


def test_a_change_without_a_difference_leaves_no_trace() -> None:
    ada, bob = factories.person("ada"), factories.person("bob")
    before = AuditEntry.objects.count()

    save_account(bob, actor=Actor.person(ada))

    assert AuditEntry.objects.count() == before


@pytest.mark.parametrize("change", [{"role": Role.OPERATOR}, {"is_active": False}])
def test_the_last_administrator_cannot_step_down(change: dict[str, object]) -> None:
    ada = factories.person("ada")
    User.objects.filter(pk=ada.pk).update(is_superuser=False)
    stepping_down = User.objects.get(pk=ada.pk)
    for name, value in change.items():
        setattr(stepping_down, name, value)

    with pytest.raises(Conflict, match="last administrator"):
        save_account(stepping_down, actor=Actor.person(ada))

    factories.person("adam", Role.ADMIN)
    save_account(stepping_down, actor=Actor.person(ada))


def test_everybody_changes_their_own_password_and_nobody_elses() -> None:
    alice, bob = factories.person("alice"), factories.person("bob")

    change_password(alice, "a new long secret", actor=Actor.person(alice))
    with pytest.raises(NotPermitted):
        change_password(bob, "a new long secret", actor=Actor.person(alice))

    assert User.objects.get(pk=alice.pk).check_password("a new long secret")
    assert User.objects.get(pk=bob.pk).check_password(factories.PASSWORD)
    entry = AuditEntry.objects.get(action="change password")
    assert (entry.actor, entry.target) == ("alice", "user alice")


def test_the_name_of_an_account_cannot_be_changed(alice: User) -> None:
    alice.username = "alison"

    with pytest.raises(Conflict, match="The name alice cannot be changed"):
        save_account(alice, actor=Actor.system("test"))

    alice.refresh_from_db()
    assert alice.username == "alice"


def test_the_standard_people_of_tests_are_as_the_service_makes_them() -> None:
    known = factories.people()

    for name, role in factories.ROLES.items():
        user = getattr(known, name)
        assert (user.role, user.is_staff) == (role, enters_administration(user)), name
        assert user.check_password(factories.PASSWORD)
