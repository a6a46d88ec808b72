"""URLs of files in a submit description: which are known, and what files they are of.

The pilot of a job moves these itself. Anything else that looks like a URL is a fault: it names no
file of a workspace either.
"""

from __future__ import annotations

import posixpath
import re
from typing import Final
from urllib.parse import SplitResult, quote, unquote, urlsplit

from wms.core.conf import conf
from wms.core.public_addresses import is_refused
from wms.jobs.content.paths import checked_path

#: The schemes that pilots read.
READ: Final = ("http", "https", "s3", "lfn")
#: Those that they write.
WRITTEN: Final = ("http", "https", "s3")
MAX_URL: Final = 2048
#: Most URLs of one job.
MOST_URLS: Final = 100
#: Most logical names that one job reads where they are.
MOST_INPUT_DATA: Final = 500
_SHOWN = 200
_MOST_BYTES_OF_NAME = 1000
#: The scheme may name whose credentials are meant: `box.token+https`.
_URL = re.compile(r"\b[A-Za-z][A-Za-z0-9+._-]*://[^\s,;\"']*")
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252}[A-Za-z0-9_])?|[0-9A-Fa-f:.]{2,45}")


def has_url(text: str) -> bool:
    """Whether there is a URL, or a logical name, in a text."""
    return _URL.search(text) is not None or _is_logical(text)


def _is_logical(text: str) -> bool:
    return text[:5].lower() == "lfn:/"


def url_fault(text: str) -> str:
    """Reason why a text with a URL cannot name files; empty if it has no URL."""
    url = _URL.search(text)
    if url is None:
        return ""
    return (
        f"{url[0][:_SHOWN]} is a URL, and no file of the workspace: pilots read URLs"
        f" ({', '.join(READ)}) in transfer_input_files and write them ({', '.join(WRITTEN)}) by"
        " transfer_output_remaps; let a DATA node bring or take it, or the payload itself"
    )


def without_secrets(url: str) -> str:
    """The URL as it is told in reasons: without its query, which may be signed."""
    return url.partition("?")[0][:_SHOWN]


def checked_logical(name: str) -> str:
    """The logical name of input data as it is stored. Raises ValueError."""
    if not _is_logical(name):
        raise ValueError(
            f"input_data has logical names, such as lfn:/production/run7, not {name[:_SHOWN]}"
        )
    return _checked_logical(name)


def input_of_url(url: str) -> tuple[str, str]:
    """Name under which a payload finds the file of a URL, and the URL. Raises ValueError.

    The name is the last part of its path.
    """
    checked = _checked_logical(url) if _is_logical(url) else _checked(url, READ)
    name = posixpath.basename(unquote(urlsplit(checked).path))
    if not name or name in (".", ".."):
        raise ValueError(f"{without_secrets(checked)} does not end with the name of a file")
    return checked_path(name), checked


def url_of_output(url: str, name: str) -> str:
    """URL to which an output is sent; one that ends with a slash is a folder. Raises ValueError."""
    checked = _checked(url, WRITTEN)
    path = urlsplit(checked).path
    if path and not path.endswith("/"):
        return checked
    if "?" in checked:
        raise ValueError(f"{without_secrets(checked)} is a folder, which has no query")
    return f"{checked.rstrip('/')}/{quote(posixpath.basename(name))}"


def _checked_logical(url: str) -> str:
    """A logical name of the catalogue, a path behind `lfn:`. Raises ValueError."""
    try:
        path = unquote(url[4:], errors="strict")
        length = len(path.encode())
    except UnicodeError:
        raise ValueError(f"{url[:_SHOWN]} is no text in UTF-8") from None
    parts = path.split("/")[1:]
    if not all(parts) or {".", ".."} & set(parts) or not path.isprintable():
        raise ValueError(f"{url[:_SHOWN]}: a logical name is a path such as lfn:/production/run7")
    if length > _MOST_BYTES_OF_NAME:
        raise ValueError(f"{url[:_SHOWN]}: a logical name has {_MOST_BYTES_OF_NAME} bytes at most")
    return f"lfn:{quote(path)}"


def _checked(url: str, schemes: tuple[str, ...]) -> str:
    """The URL with its scheme in small letters. Raises ValueError."""
    scheme, _, rest = url.partition(":")
    told = without_secrets(url)
    if scheme.lower() not in schemes:
        known = ", ".join(schemes)
        raise ValueError(
            f"{told} is a URL that pilots do not move, they know {known}: let a DATA node move it,"
            " or the payload itself"
        )
    if len(url) > MAX_URL:
        raise ValueError(f"{told} is longer than {MAX_URL} characters")
    if not (rest.isascii() and rest.isprintable()) or any(each in rest for each in " \"'<>\\"):
        raise ValueError(f"{told}: write spaces, quotes and letters that are not ASCII as %XX")
    try:
        parts = urlsplit(f"x:{rest}")
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError as error:
        raise ValueError(f"{told}: {error}") from None
    if not _HOST.fullmatch(host) or port == 0:
        raise ValueError(f"{told} names no host")
    _check_place(scheme.lower(), host, told, parts)
    return f"{scheme.lower()}:{rest}"


def _check_place(scheme: str, host: str, told: str, parts: SplitResult) -> None:
    """Raise ValueError for a URL that is fit for no pilot, or for no other eyes."""
    if parts.username is not None or parts.fragment:
        # URLs are shown to everybody who sees the job.
        raise ValueError(f"{host}: a URL must hold neither a user nor a fragment")
    if scheme == "s3":
        _check_object(told, parts.query, parts.port)
    elif is_refused(host, allowed=conf().allowed_addresses):
        raise ValueError(f"{told}: {host} is no public address (PILOTAGE_PLACEMENT_ALLOWED)")


def _check_object(told: str, query: str, port: int | None) -> None:
    """Raise ValueError for the URL of an object that is none, or of no store."""
    if query or port is not None:
        raise ValueError(f"{told}: an object is s3://bucket/key, without a port and a query")
    if not conf().has_s3_store:
        raise ValueError(f"{told}: no S3 store is set (PILOTAGE_PLACEMENT_S3_URL)")
