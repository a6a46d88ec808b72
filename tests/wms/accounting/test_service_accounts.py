"""Accounts of services: who makes them, and that nobody logs in as one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.db import IntegrityError, transaction
from django.utils import timezone

from tests import factories
from wms.accounting.models import Frontend
from wms.accounting.service_accounts import save_service_account, visible_service_accounts
from wms.accounting.walls import walls_of
from wms.core.accounts import change_password, save_account
from wms.core.actors import Actor
from wms.core.errors import AccountOff, Conflict, InvalidInput, NotPermitted
from wms.core.models import AuditEntry, Role, ServiceAccount, User
from wms.core.tokens import authenticate_token, create_token

pytestmark = pytest.mark.django_db


@pytest.fixture
def people() -> SimpleNamespace:
    return factories.people()


@pytest.fixture
def ada(people: SimpleNamespace) -> Actor:
    return Actor.person(people.ada)


def _make(actor: Actor, *groups: Any, **values: Any) -> ServiceAccount:
    account = ServiceAccount(username="robot", **values)
    save_service_account(account, groups=groups, actor=actor, reason="nightly")
    return account


def test_it_has_tokens_and_no_login(people: SimpleNamespace, ada: Actor) -> None:
    robot = _make(ada)
    text = create_token(robot, name="nightly", actor=ada)

    assert authenticate_token(text, now=timezone.now()).pk == robot.pk
    assert authenticate(username="robot", password="") is None
    assert AuditEntry.objects.get(target="user robot").reason == "nightly"
    for act in (
        lambda: save_account(robot, actor=ada, password="a purple staple"),
        lambda: change_password(robot, "a purple staple", actor=ada),
    ):
        with pytest.raises(Conflict):
            act()


def test_its_tokens_end_when_it_is_switched_off(people: SimpleNamespace, ada: Actor) -> None:
    robot = _make(ada)
    text = create_token(robot, name="nightly", actor=ada)
    robot.is_active = False
    save_service_account(robot, groups=[], actor=ada)

    with pytest.raises(AccountOff):
        authenticate_token(text, now=timezone.now())


def test_it_sees_what_its_group_s_frontend_has(people: SimpleNamespace, ada: Actor) -> None:
    group = factories.accounting(people.alice)
    group.frontend = Frontend.objects.create(name="atlas")
    group.save()
    robot = _make(ada, group)

    assert walls_of(robot).own_names == (group.name,)
    assert not walls_of(robot).sees_default


@pytest.mark.parametrize("name", ["alice", "sam", "olga"])
def test_administrators_alone_make_and_see_them(people: SimpleNamespace, name: str) -> None:
    user: User = getattr(people, name)
    _make(Actor.person(people.ada))

    with pytest.raises(NotPermitted):
        save_service_account(ServiceAccount(username="x"), groups=[], actor=Actor.person(user))
    assert not visible_service_accounts(user).exists()
    assert visible_service_accounts(people.ada).get().username == "robot"


def test_what_cannot_be_one_is_refused(people: SimpleNamespace, ada: Actor) -> None:
    with pytest.raises(Conflict):
        _make(ada, role=Role.ADMIN)
    with pytest.raises(InvalidInput):
        save_service_account(ServiceAccount(username="alice"), groups=[], actor=ada)
    with pytest.raises(InvalidInput):
        save_service_account(ServiceAccount(username="a b"), groups=[], actor=ada)
    assert not visible_service_accounts(people.ada).exists()


def test_a_person_does_not_become_a_service(people: SimpleNamespace, ada: Actor) -> None:
    people.bob.is_service = True
    with pytest.raises(Conflict):
        save_account(people.bob, actor=ada)


def test_the_database_keeps_a_service_from_a_password(people: SimpleNamespace, ada: Actor) -> None:
    robot = _make(ada)

    for change in ({"password": "md5$x$y"}, {"is_staff": True}, {"role": Role.ADMIN}):
        with pytest.raises(IntegrityError), transaction.atomic():
            User.objects.filter(pk=robot.pk).update(**change)
