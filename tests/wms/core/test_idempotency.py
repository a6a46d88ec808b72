"""Idempotency keys: one object for a key, whoever comes first, and whatever fails meanwhile."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connections
from django.utils import timezone

from wms.core.errors import Conflict, InvalidInput
from wms.core.idempotency import RequestKey, made_before, only_once
from wms.core.idempotency_models import IdempotencyKey, MadeKind
from wms.core.models import User

pytestmark = pytest.mark.django_db

KEY = RequestKey(MadeKind.DAG, "k", "a" * 64)


def _make(owner: User, number: int, key: RequestKey | None = KEY) -> int | None:
    """Make the object of this number, if there is none; the number of the one that there is."""
    with only_once(owner, key) as creation:
        if creation.found is None:
            creation.made = number
    return creation.found or creation.made


def test_the_first_one_is_found_again(alice: User) -> None:
    assert [_make(alice, 1), _make(alice, 2)] == [1, 1]
    assert made_before(alice, KEY) == 1


def test_without_a_key_each_is_made(alice: User) -> None:
    assert [_make(alice, 1, None), _make(alice, 2, None)] == [1, 2]
    assert not IdempotencyKey.objects.exists()


def test_keys_of_others_and_of_other_kinds_are_others(alice: User, charlie: User) -> None:
    cluster = RequestKey(MadeKind.CLUSTER, KEY.key, KEY.body_sha256)

    assert [_make(alice, 1), _make(charlie, 2), _make(alice, 3, cluster)] == [1, 2, 3]


def test_what_failed_leaves_its_key_free(alice: User) -> None:
    with pytest.raises(RuntimeError), only_once(alice, KEY):
        raise RuntimeError

    assert made_before(alice, KEY) is None
    assert _make(alice, 2) == 2


def test_another_content_is_a_conflict(alice: User) -> None:
    _make(alice, 1)

    with pytest.raises(Conflict):
        _make(alice, 2, RequestKey(KEY.kind, KEY.key, "b" * 64))


@pytest.mark.parametrize("key", ["", "x" * 129, "a\0b", "a\nb"])
def test_a_key_that_cannot_be_kept_is_refused(alice: User, key: str) -> None:
    with pytest.raises(InvalidInput):
        made_before(alice, RequestKey(KEY.kind, key, KEY.body_sha256))


def test_old_keys_are_free_again_and_go(alice: User, charlie: User) -> None:
    _make(alice, 1)
    _make(charlie, 2)
    IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(hours=25))

    assert made_before(alice, KEY) is None
    assert _make(alice, 3) == 3
    assert IdempotencyKey.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_two_at_once_the_second_waits_and_finds_the_first() -> None:
    alice = User.objects.create_user("alice", role="user")
    is_begun = threading.Event()

    def first() -> int | None:
        try:
            with only_once(alice, KEY) as creation:
                is_begun.set()
                creation.made = 1
            return creation.made
        finally:
            connections.close_all()

    def second() -> int | None:
        is_begun.wait(timeout=60)
        try:
            return _make(alice, 2)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        made = [each.result() for each in [pool.submit(first), pool.submit(second)]]

    assert made == [1, 1]


def test_a_key_of_a_token_that_is_not_limited_is_none_of_one_that_is(alice: User) -> None:
    _make(alice, 1)
    limited = alice.within(7)
    unhashed = RequestKey(KEY.kind, "u", "")
    _make(alice, 2, unhashed)

    for key in (KEY, unhashed):
        with pytest.raises(Conflict):
            made_before(limited, key)
    own = RequestKey(KEY.kind, "own", KEY.body_sha256)
    assert [_make(limited, 3, own), _make(limited, 4, own)] == [3, 3]
    for other in (alice, alice.within(8)):
        with pytest.raises(Conflict):
            made_before(other, own)
