"""Endpoints of storages: prefixes of addresses, and the storage in which an address lies."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from wms.core.errors import InvalidInput
from wms.placement.addresses import THIS_HOST, checked_url, file_location, scheme_of
from wms.placement.modules.ports import port_of

MAX_ENDPOINTS: Final = 20


@dataclass(frozen=True, slots=True)
class Place:
    """An address in parts, so that two spellings of it are equal."""

    scheme: str
    host: str
    port: int
    #: Decoded, without a slash at its end.
    path: str

    def holds(self, other: Place) -> bool:
        """Whether the other address is this one, or lies below it."""
        here = (self.scheme, self.host, self.port)
        return here == (other.scheme, other.host, other.port) and (
            other.path == self.path or other.path.startswith(f"{self.path}/")
        )


def place_of(url: str) -> Place | None:
    """The place that an address names; None for a file of a workspace, or what is no address."""
    scheme = scheme_of(url)
    try:
        if scheme == "file":
            located = file_location(url, directory="")
            if not located.is_absolute:
                return None
            return Place(scheme, THIS_HOST, 0, located.path.rstrip("/"))
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port
    except (InvalidInput, ValueError):
        return None
    if not host:
        return None
    # A path that leads up again is of no storage: who knows where the server takes it.
    path = unquote(parts.path)
    if ".." in path.split("/"):
        return None
    return Place(scheme, host, port or port_of(scheme), _plain(path))


def _plain(path: str) -> str:
    found = "/" + posixpath.normpath(path or "/").lstrip("/")
    return "" if found == "/" else found


def endpoint_lines(text: str) -> list[str]:
    """The endpoints of a text, one a line, each with a slash at its end."""
    lines = (line.strip() for line in text.splitlines())
    return [line if line.endswith("/") else f"{line}/" for line in lines if line]


def checked_endpoints(text: str, schemes: Iterable[str]) -> list[str]:
    """The endpoints of a text, in order. Raises InvalidInput for those that are none."""
    lines = endpoint_lines(text)
    known = sorted(schemes)
    if not lines or len(lines) > MAX_ENDPOINTS:
        message = f"give one prefix of addresses a line, {MAX_ENDPOINTS} at most"
        raise InvalidInput.of(message, field="endpoints")
    for number, line in enumerate(lines, 1):
        fault = _fault_of(line, known)
        if fault:
            raise InvalidInput.of(f"line {number}: {fault}", field="endpoints")
    if len({place_of(line) for line in lines}) < len(lines):
        raise InvalidInput.of("an endpoint is given twice", field="endpoints")
    return [checked_url(line) for line in lines]


def _fault_of(line: str, schemes: Sequence[str]) -> str:
    try:
        url = checked_url(line)
    except InvalidInput as error:
        return error.findings[0].message
    if scheme_of(url) not in schemes:
        return f"no module serves {scheme_of(url)}; schemes are {', '.join(schemes)}"
    if "?" in url or "#" in url or "@" in url:
        return "an endpoint has neither a query nor a fragment nor a user"
    if place_of(url) is None:
        return f"{url} is no absolute path of a host"
    return ""


def url_below(endpoint: str, path: str) -> str:
    """The address of a path below an endpoint."""
    return endpoint + quote(path.lstrip("/"))


class StorageMap:
    """Storages by the addresses that are theirs; of nested endpoints the inner one counts."""

    def __init__(self, endpoints: Iterable[tuple[int, str]]) -> None:
        self._by_host: dict[tuple[str, str, int], list[tuple[Place, int]]] = defaultdict(list)
        for storage_id, text in endpoints:
            for line in endpoint_lines(text):
                place = place_of(line)
                if place is not None:
                    key = (place.scheme, place.host, place.port)
                    self._by_host[key].append((place, storage_id))
        for places in self._by_host.values():
            places.sort(key=lambda each: -len(each[0].path))

    def storage_of(self, url: str) -> int | None:
        """The storage in which an address lies, by its id."""
        place = place_of(url) if url else None
        if place is None:
            return None
        near = self._by_host.get((place.scheme, place.host, place.port), ())
        return next((found for each, found in near if each.holds(place)), None)


def hosts_of(text: str) -> set[str]:
    """The hosts of endpoints, that of files included."""
    return {place.host for line in endpoint_lines(text) if (place := place_of(line)) is not None}
