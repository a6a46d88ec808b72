"""Model field for the name of a state in an event, which stores the frequent ones as one letter.

Each event has two, and there are several events of each job and node. Rows of before have the
names, and are read as they are. Also the conversion of a name to its stored form and back, in
Python and in SQL.
"""

from __future__ import annotations

import json
from typing import Any

from django.db import models

#: No state has a name of one letter. What is here stays: rows have it.
_LETTERS = {
    "received": "c",
    "waiting": "w",
    "matched": "m",
    "running": "r",
    "done": "d",
    "failed": "f",
    "killed": "k",
    "held": "h",
    "stalled": "l",
    "ready": "y",
    "pre_running": "b",
    "submitted": "s",
    "post_running": "a",
    "futile": "u",
    "skipped": "p",
}
_NAMES = {letter: name for name, letter in _LETTERS.items()}
_LETTERS_IN_SQL = f"'{json.dumps(_LETTERS, separators=(',', ':'))}'::jsonb"


def stored_state(name: str) -> str:
    """The name as it is stored: one letter for a frequent one."""
    return _LETTERS.get(name, name)


def state_name(stored: str) -> str:
    """The name that is stored so."""
    return _NAMES.get(stored, stored)


def stored_in_sql(name: str) -> str:
    """SQL of the stored form of the name that this expression gives."""
    return f"coalesce({_LETTERS_IN_SQL} ->> {name}, {name})"


class StateField(models.CharField):  # type: ignore[type-arg]
    """The name of a state. To the database it is a text, so that migrations see no other field."""

    def deconstruct(self) -> tuple[str, str, Any, Any]:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.CharField", args, kwargs

    def from_db_value(self, value: str | None, *_: Any) -> str | None:
        return None if value is None else state_name(value)

    def get_prep_value(self, value: Any) -> Any:
        prepared = super().get_prep_value(value)
        return stored_state(prepared) if isinstance(prepared, str) else prepared
