"""Files by links: from and to the store of contents itself, where the server gives a link.

A link is good for one request and some minutes, without any credential: it is never written down,
nor told in an error. Where links do not work from this node, files go through the server.
"""

from __future__ import annotations

import http.client
import urllib.parse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from .http_route import HttpRoute

#: Smaller files go through the server: that takes one request less or two.
LINKED_BYTES = 256 * 1024
#: Header of a request whose answer may be a link, and the status of that answer.
ASKS_FOR_LINK = {"Pilotage-Links": "1"}
LINK = 307
#: So often links may fail, one after the other.
_MOST_FAILURES = 3

T = TypeVar("T")


class LinkFailed(Exception):
    """The store did not give or take the file; ask for another link."""


class Links:
    """Use of links by one pilot, all of its threads and jobs."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._failures = 0
        self._are_given = True

    @property
    def are_tried(self) -> bool:
        """Whether to ask for links: none are known to be of no use."""
        return self._are_given and self._failures < _MOST_FAILURES

    def note_failure(self) -> None:
        """Note that a link was of no use."""
        self._failures += 1

    def note_success(self) -> None:
        """Note that a file went by a link."""
        self._failures = 0

    def give_up(self) -> None:
        """Note that the server gives no links."""
        self._are_given = False

    def fetch(self, url: str, receive: Callable[[http.client.HTTPResponse], T]) -> T:
        """Result of `receive` for the file at a link. Raises LinkFailed."""
        result = self._exchange("GET", url, {}, None, receive)
        self.note_success()
        return result

    def send(self, url: str, headers: Mapping[str, str], source: Path) -> None:
        """Send a file to a link, with the headers that belong to it. Raises LinkFailed."""
        self._exchange("PUT", url, headers, source, lambda response: response.read())

    def _exchange(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        source: Path | None,
        receive: Callable[[http.client.HTTPResponse], T],
    ) -> T:
        try:
            return _asked(method, url, headers, source, receive, self._timeout_s)
        except (http.client.HTTPException, OSError, ValueError) as error:
            self.note_failure()
            # Its text may have the address.
            raise LinkFailed(f"the store of contents: {type(error).__name__}") from None
        except LinkFailed:
            self.note_failure()
            raise


def _asked(
    method: str,
    url: str,
    headers: Mapping[str, str],
    source: Path | None,
    receive: Callable[[http.client.HTTPResponse], T],
    timeout_s: float,
) -> T:
    parts = urllib.parse.urlsplit(url)
    route = HttpRoute(f"{parts.scheme}://{parts.netloc}")
    connection = route.connect(timeout_s)
    try:
        target = route.target(f"{parts.path}?{parts.query}")
        connection.putrequest(method, target, skip_accept_encoding=True)
        for name, value in {"Connection": "close", **headers}.items():
            connection.putheader(name, value)
        _send(connection, source)
        response = connection.getresponse()
        if response.status != 200:
            raise LinkFailed(f"the store of contents answered {response.status}")
        return receive(response)
    finally:
        connection.close()


def _send(connection: http.client.HTTPConnection, source: Path | None) -> None:
    connection.endheaders()
    if source is None:
        return
    with source.open("rb") as content:
        try:
            connection.send(content)
        except (BrokenPipeError, ConnectionResetError):
            return  # a store that refuses answers before it has read all of it
