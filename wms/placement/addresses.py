"""Addresses of files in placement: their check, scheme and host, and the path that `file:` names.

The check refuses passwords, which all who see a request would see; logical names are addresses too.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

from wms.core.errors import InvalidInput
from wms.jobs.content.paths import checked_path
from wms.placement.catalogue.names import checked_name, is_logical, url_of

#: The longest address.
MAX_URL: Final = 2048
#: The host of `file:` addresses.
THIS_HOST: Final = "localhost"

SCHEME: Final = re.compile(r"[a-z][a-z0-9+.]{0,30}")
CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_URL = re.compile(rf"({SCHEME.pattern}):(\S(?:.*\S)?)", re.IGNORECASE)
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252}[A-Za-z0-9_])?|[0-9A-Fa-f:.]{2,45}")


def scheme_of(url: str) -> str:
    """The scheme of an address, in small letters."""
    return url.partition(":")[0].lower()


def with_scheme(url: str, scheme: str) -> str:
    """The address under another scheme; host and path stay."""
    return f"{scheme}:{url.partition(':')[2]}"


def host_of(url: str) -> str:
    """The host of an address in small letters, that of files of this host included."""
    if scheme_of(url) == "file":
        return THIS_HOST
    return (urlsplit(url).hostname or "").lower()


def is_host(text: str) -> bool:
    """Whether a text is a name or an address of a host."""
    return _HOST.fullmatch(text) is not None


def checked_url(text: str) -> str:
    """The address with its scheme in small letters. Raises InvalidInput for one that is none."""
    if not _URL.fullmatch(text) or CONTROL.search(unquote(text)):
        raise InvalidInput.of(f"no address such as file:data/x or http://host/x: {text}")
    scheme, rest = scheme_of(text), text.partition(":")[2]
    if is_logical(text):
        return url_of(checked_name(text))
    if scheme != "file":
        _check_place(text, rest)
    return with_scheme(text, scheme)


def _check_place(url: str, rest: str) -> None:
    """Raise InvalidInput for an address of another host without a host, or with a password."""
    if not rest.isascii() or " " in rest:
        raise InvalidInput.of(f"{url}: write spaces and letters that are not ASCII as %XX")
    try:
        parts = urlsplit(f"x:{rest}")
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise InvalidInput.of(f"{url}: {error}") from None
    if not rest.startswith("//") or not is_host(host):
        raise InvalidInput.of(f"{url} names no host")
    if parts.password is not None:
        # Addresses are shown to everybody who sees the request.
        raise InvalidInput.of("an address must not hold a password")


@dataclass(frozen=True, slots=True)
class FileLocation:
    """Target of a `file:` address: a path in the workspace, or an absolute one of the host."""

    path: str
    is_absolute: bool
    #: It ends with a slash: the file keeps its name below it.
    is_directory: bool = False


def file_location(url: str, *, directory: str) -> FileLocation:
    """Location that a `file:` address names. Raises InvalidInput for one that names none.

    Without a slash after the colon it is relative to the directory of the workspace.
    """
    rest = url.partition(":")[2]
    if rest.startswith("/"):
        parts = urlsplit(f"file:{rest}")
        if parts.netloc not in ("", THIS_HOST):
            raise InvalidInput.of(f"{url}: a file is on this host, not on {parts.netloc}")
        path = unquote(rest[2 + len(parts.netloc) :] if rest.startswith("//") else rest)
        if not path.startswith("/"):
            raise InvalidInput.of(f"{url} names no path")
        if CONTROL.search(path) or ".." in path.split("/"):
            raise InvalidInput.of(f"{url}: `..` and control characters are not allowed")
        # The slashes of `file:////data` are those of `/data`.
        return FileLocation("/" + posixpath.normpath(path).lstrip("/"), True, path.endswith("/"))
    path = unquote(rest)
    is_directory = path.endswith("/") or path in (".", "..") or path.endswith(("/.", "/.."))
    joined = posixpath.normpath(posixpath.join(directory, path))
    if joined == "." and is_directory:
        return FileLocation("", False, True)
    return FileLocation(checked_path(joined, field="url"), False, is_directory)
