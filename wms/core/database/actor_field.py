"""Model field for the name of an actor, which stores that of a pilot or of a busy loop shortly.

Most events are those of pilots, whose UUIDs are stored in 22 characters, and of the two loops that
make jobs, which are a letter. Also the conversion of a name to its stored form and back, in Python
and in SQL.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any
from uuid import UUID

from django.db import models

#: Neither a user's name nor that of a loop begins so.
_MARK = "~"
_PILOT = re.compile(r"pilot:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\Z")
_STORED = re.compile(rf"{_MARK}[A-Za-z0-9_-]{{22}}\Z")
#: What is here stays: rows have it.
_LETTERS = {"system:dag-engine": f"{_MARK}e", "system:job-materialiser": f"{_MARK}m"}
_NAMES = {letter: name for name, letter in _LETTERS.items()}
_NAMES_IN_SQL = f"'{json.dumps(_NAMES, separators=(',', ':'))}'::jsonb"


def stored_actor(name: str) -> str:
    """The name as it is stored: the UUID of a pilot in 22 characters, a busy loop as a letter."""
    pilot = _PILOT.match(name)
    if pilot is None:
        return _LETTERS.get(name, name)
    return _MARK + base64.urlsafe_b64encode(UUID(pilot[1]).bytes).decode().rstrip("=")


def actor_name(stored: str) -> str:
    """The name that is stored so."""
    if not _STORED.match(stored):
        return _NAMES.get(stored, stored)
    return f"pilot:{UUID(bytes=base64.urlsafe_b64decode(stored[1:] + '=='))}"


def loop_name_in_sql(stored: str) -> str:
    """SQL of the name of a person or loop that is stored as this expression gives."""
    return f"coalesce({_NAMES_IN_SQL} ->> {stored}, {stored})"


class ActorField(models.CharField):  # type: ignore[type-arg]
    """An actor's name. To the database it is a text, so that migrations see no other field."""

    def deconstruct(self) -> tuple[str, str, Any, Any]:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.CharField", args, kwargs

    def from_db_value(self, value: str | None, *_: Any) -> str | None:
        return None if value is None else actor_name(value)

    def get_prep_value(self, value: Any) -> Any:
        prepared = super().get_prep_value(value)
        return stored_actor(prepared) if isinstance(prepared, str) else prepared
