"""Stale forms: each says what it was made from, and nothing is done if that is not so any more."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from django.http import HttpRequest

from wms.core.errors import Conflict

#: The field of a form that says it.
FIELD = "seen"


def require_seen(request: HttpRequest, now: str, *, what: str) -> None:
    """Raise Conflict when the form was made from another state than that of now.

    A form that does not say from what it was made is one of a program, which decides by itself.
    """
    seen = request.POST.get(FIELD, "")
    if seen and seen != now:
        raise Conflict(
            f"Nothing was done: {what} was {_told(seen)} when this form was loaded, and is "
            f"{_told(now)} now. Decide again."
        )


def version_of(*values: Any) -> str:
    """A version of values that are not told in a word: the same for the same values."""
    text = json.dumps(values, sort_keys=True, default=str)
    return f"v{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def require_version(request: HttpRequest, now: str, *, what: str) -> None:
    """Raise Conflict when what the form shows was changed meanwhile."""
    seen = request.POST.get(FIELD, "")
    if seen and seen != now:
        raise Conflict(
            f"Nothing was done: {what} changed since this form was loaded. What is shown now is "
            "how it is; enter your change again."
        )


def _told(state: str) -> str:
    return state[:60].replace("_", " ")
