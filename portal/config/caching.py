"""Cache backend with plain values: numbers, bytes and JSON instead of pickles.

Nothing that is read from the cache can run code, whoever wrote it. A value of another form counts
as missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
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


class PlainCache(RedisCache):
    """Django's cache in Redis, without pickles."""

    def __init__(self, server: Any, params: dict[str, Any]) -> None:
        params["OPTIONS"] = {"serializer": PlainValues} | params.get("OPTIONS", {})
        super().__init__(server, params)
        self._class = _Client
