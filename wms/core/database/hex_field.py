"""Model field for a key of 32 hexadecimal digits, which it stores in 23 characters.

Any other text is stored as it is, and so are keys of before. Also the conversion of a key to its
stored form and back.
"""

from __future__ import annotations

import base64
import re
from typing import Any

from django.db import models

#: No digit, so that no stored key is that of another text of digits.
_MARK = "~"
_KEY = re.compile(r"[0-9a-f]{32}\Z")
_STORED = re.compile(rf"{_MARK}[A-Za-z0-9_-]{{22}}\Z")


def stored_key(key: str) -> str:
    """The key as it is stored."""
    if not _KEY.match(key):
        return key
    return _MARK + base64.urlsafe_b64encode(bytes.fromhex(key)).decode().rstrip("=")


def key_of(stored: str) -> str:
    """The key that is stored so."""
    if not _STORED.match(stored):
        return stored
    return base64.urlsafe_b64decode(f"{stored[1:]}==").hex()


class HexField(models.CharField):  # type: ignore[type-arg]
    """A key. To the database it is a text, so that migrations see no other field."""

    def deconstruct(self) -> tuple[str, str, Any, Any]:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.CharField", args, kwargs

    def from_db_value(self, value: str | None, *_: Any) -> str | None:
        return None if value is None else key_of(value)

    def get_prep_value(self, value: Any) -> Any:
        prepared = super().get_prep_value(value)
        return stored_key(prepared) if isinstance(prepared, str) else prepared
