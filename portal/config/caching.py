"""Cache backend with plain values: numbers, bytes and JSON instead of pickles.

Nothing that is read from the cache can run code, whoever wrote it. A value of another form counts
as missing. Also counts of what happens in windows of time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import structlog
from django.core.cache.backends.redis import RedisCache, RedisCacheClient

log = structlog.get_logger(__name__)
_MISSING = object()
#: What a kept value begins with; a number has nothing before its digits, so that it can be counted.
_BYTES, _JSON = b"b:", b"j:"
_NUMBER = re.compile(rb"-?[0-9]{1,1000}")


class PlainValues:
    """Serializer of cache values; raises TypeError for a value that cannot be stored."""

    def dumps(self, value: Any) -> int | bytes:
        if type(value) is int:
            return value
        if isinstance(value, bytes):
            return _BYTES + value
        return _JSON + json.dumps(value, allow_nan=False, separators=(",", ":")).encode()

    def loads(self, kept: bytes) -> Any:
        try:
            return _read(kept)
        except (ValueError, RecursionError):
            log.warning("cached_value_unreadable", begins_with=repr(kept[:8]))
            return _MISSING


def _read(kept: bytes) -> Any:
    if kept.startswith(_BYTES):
        return kept[len(_BYTES) :]
    if kept.startswith(_JSON):
        return json.loads(kept[len(_JSON) :])
    if _NUMBER.fullmatch(kept):
        return int(kept)
    raise ValueError("neither a number, nor bytes, nor JSON")


class _Client(RedisCacheClient):
    def get(self, key: str, default: Any) -> Any:
        value = super().get(key, _MISSING)
        return default if value is _MISSING else value

    def get_many(self, keys: Iterable[str]) -> dict[str, Any]:
        found = super().get_many(keys)
        return {key: value for key, value in found.items() if value is not _MISSING}

    def count(self, counters: Sequence[tuple[str, str, int]]) -> list[tuple[int, int]]:
        pipe = self.get_client(None, write=True).pipeline(transaction=False)
        for current, before, lifetime_s in counters:
            pipe.incr(current)
            pipe.expire(current, lifetime_s)
            pipe.get(before)
        told = pipe.execute()
        return [
            (int(count), int(before or 0))
            for count, before in zip(told[::3], told[2::3], strict=True)
        ]

    def take_back(self, keys: Iterable[str]) -> None:
        pipe = self.get_client(None, write=True).pipeline(transaction=False)
        for key in keys:
            # The account of the broker has no command of its own for this.
            pipe.incrby(key, -1)
        pipe.execute()


class PlainCache(RedisCache):
    """Django's cache in Redis, without pickles."""

    def __init__(self, server: Any, params: dict[str, Any]) -> None:
        params["OPTIONS"] = {"serializer": PlainValues} | params.get("OPTIONS", {})
        super().__init__(server, params)
        self._class = _Client

    def count_in_windows(self, windows: Iterable[tuple[str, int, int]]) -> list[tuple[int, int]]:
        """Count one more in each window, in one trip: its count, and that of the one before.

        A window has a name, a number and, in seconds, its lifetime here. Raises RedisError.
        """
        return self._cache.count(
            [
                (self._window(name, number), self._window(name, number - 1), lifetime_s)
                for name, number, lifetime_s in windows
            ]
        )

    def take_back(self, windows: Iterable[tuple[str, int]]) -> None:
        """Count one less in each window. Raises RedisError."""
        self._cache.take_back([self._window(name, number) for name, number in windows])

    def _window(self, name: str, number: int) -> str:
        key: str = self.make_and_validate_key(f"{name}:{number}")
        return key
