"""The cache keeps values that cannot run code."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from django.conf import settings
from django.core.cache import cache
from redis.exceptions import RedisError

from portal.shared import drawings
from tests import factories


@pytest.fixture
def key() -> Iterator[str]:
    """A name that is free before and after the test."""
    cache.delete("a-test")
    yield "a-test"
    cache.delete("a-test")


def _put(key: str, content: bytes) -> None:
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        client.set(cache.make_key(key), content)


@pytest.mark.parametrize(
    "value",
    [0, -7, 10**30, True, None, 1.5, "text", b"", b"\x80\x04", {"a": [1, None, "b"]}, [], ""],
)
def test_what_is_kept_comes_back(key: str, value: Any) -> None:
    cache.set(key, value)

    found = cache.get(key, "missing")

    assert found == value
    assert type(found) is type(value)
    assert cache.get_many([key]) == {key: value}


@pytest.mark.parametrize("value", [{1, 2}, object(), float("nan")])
def test_what_json_does_not_know_is_refused(key: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        cache.set(key, value)

    assert cache.get(key) is None


class _Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return (_trapped.append, ("loaded",))


_trapped: list[str] = []


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps(_Trap()), pickle.dumps("text"), b"", b"j:{", b"j:\xff", b"text",
        b"j:" + b"[" * 100_000, b" 1", b"1_000", b"9" * 5000,
    ],
    ids=["trap", "pickle", "empty", "cut", "no-text", "word", "deep", "blank", "odd", "endless"],
)  # fmt: skip
def test_what_somebody_else_wrote_is_as_if_it_was_not_there(key: str, content: bytes) -> None:
    _put(key, content)

    assert cache.get(key) is None
    assert cache.get(key, "missing") == "missing"
    assert cache.get_many([key]) == {}
    assert _trapped == []


def test_numbers_are_counted_and_times_are_changed(key: str) -> None:
    assert cache.add(key, 0, timeout=60)
    assert not cache.add(key, 5, timeout=60)

    assert [cache.incr(key), cache.incr(key, 4), cache.decr(key)] == [1, 5, 4]
    assert cache.touch(key, 120)
    assert cache.touch(key, None)
    assert cache.get(key) == 4
    cache.set_many({key: 9}, timeout=60)
    assert cache.get_or_set(key, 1) == 9
    assert cache.delete(key)
    with pytest.raises(ValueError, match="not found"):
        cache.incr(key)


@pytest.mark.django_db
def test_a_drawing_that_was_tampered_with_is_made_anew() -> None:
    dag = factories.dag(factories.person("alice"), node_count=3, is_chain=True)
    drawings._drawing.cache_clear()
    made = drawings.drawing_of(dag)
    _put(drawings._key(dag.pk, dag.created_at.isoformat()), pickle.dumps(_Trap()))
    drawings._drawing.cache_clear()

    assert drawings.drawing_of(dag) == made
    assert _trapped == []


def test_a_full_cache_is_an_error_that_its_users_expect() -> None:
    assert issubclass(redis.exceptions.OutOfMemoryError, RedisError)
    assert issubclass(redis.exceptions.NoPermissionError, RedisError)
