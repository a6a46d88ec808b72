"""Logical names, `lfn:/production/run7`: names of files wherever they are."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, unquote

from wms.core.errors import InvalidInput

SCHEME: Final = "lfn"
MAX_NAME_BYTES: Final = 1000
#: With %XX for what is no ASCII, so that an address holds it.
_MAX_QUOTED: Final = 1900


def is_logical(url: str) -> bool:
    """Whether an address is a logical name."""
    return url.partition(":")[0].lower() == SCHEME


def checked_name(url: str) -> str:
    """The name that a logical address stands for, a path. Raises InvalidInput."""
    rest = url.partition(":")[2]
    name = unquote(rest, errors="strict") if _is_text(rest) else ""
    parts = name.split("/")
    if not name.startswith("/") or parts[0] or not all(parts[1:]):
        raise InvalidInput.of(f"a logical name is a path such as lfn:/production/run7: {url}")
    if {".", ".."} & set(parts) or not name.isprintable():
        raise InvalidInput.of(f"{url}: `.`, `..` and control characters are not allowed")
    if len(name.encode()) > MAX_NAME_BYTES or len(quote(name)) > _MAX_QUOTED:
        raise InvalidInput.of(f"a logical name has {MAX_NAME_BYTES} bytes at most")
    return name


def _is_text(text: str) -> bool:
    try:
        unquote(text, errors="strict").encode()
    except UnicodeError:
        return False
    return True


def url_of(name: str) -> str:
    """The address of a logical name, as it is stored in requests."""
    return f"{SCHEME}:{quote(name)}"
