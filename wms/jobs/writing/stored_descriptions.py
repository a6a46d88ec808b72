"""Rows of the descriptions that jobs share: ids by their keys; missing ones are written."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping

from django.db import connection

from wms.jobs.specs import SharedValues
from wms.jobs.sql import CLAIM_KEYS, FIND_DESCRIPTIONS, INSERT_DESCRIPTIONS


def ids_by_key(shared: Iterable[SharedValues]) -> dict[bytes, int]:
    """The ids of these descriptions; those that are missing are written.

    Nobody waits for another who writes the same at this moment: then both write it, and only one
    of the rows is found later. The caller has opened a transaction.
    """
    by_key = {each.key: each for each in shared}
    if not by_key:
        return {}
    found = _found(by_key)
    missing = {key: each for key, each in by_key.items() if key not in found}
    if missing:
        found |= _written(missing)
        # Somebody else has written and committed these since the first look.
        found |= _found(key for key in missing if key not in found)
    return found


def _found(keys: Iterable[bytes]) -> dict[bytes, int]:
    wanted = list(keys)
    if not wanted:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(FIND_DESCRIPTIONS, [wanted])
        return {bytes(key): pk for key, pk in cursor.fetchall()}


def _written(missing: Mapping[bytes, SharedValues]) -> dict[bytes, int]:
    keys = sorted(missing)
    with connection.cursor() as cursor:
        cursor.execute(CLAIM_KEYS, [keys])
        is_ours = {bytes(key): flag for key, flag in cursor.fetchall()}
        stored = {key if is_ours[key] else secrets.token_bytes(32): key for key in keys}
        contents = [json.dumps(missing[key].content) for key in stored.values()]
        cursor.execute(INSERT_DESCRIPTIONS, [list(stored), contents])
        return {stored[bytes(key)]: pk for key, pk in cursor.fetchall()}
