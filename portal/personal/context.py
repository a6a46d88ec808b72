"""Template context processor that gives templates the user's display preferences."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from portal.personal.selectors import preferences_of


def preferences(request: HttpRequest) -> dict[str, Any]:
    """The user's preferences, read when a template asks for them."""
    user = SimpleLazyObject(lambda: getattr(request, "user", None))
    return {"preferences": SimpleLazyObject(lambda: preferences_of(user))}
