"""Kept from one transfer to the next ones: connections, folders to be written to the disk."""

from __future__ import annotations

import http.client
import os
import select
import time
from typing import Final

#: Servers end connections that say nothing for longer; the shortest usual time is 5 s.
_IDLE_S: Final = 2.0


class KeptConnections:
    """Connections to checked addresses, one for each endpoint, whose last answer was read whole.

    They are for the transfers of one owner. What is kept shows no credential by itself: that goes
    with each request.
    """

    def __init__(self) -> None:
        self._idle: dict[tuple[str, str, int], tuple[http.client.HTTPConnection, float]] = {}

    def take(self, place: tuple[str, str, int]) -> http.client.HTTPConnection | None:
        """A connection to a scheme, host and port, on which nothing is under way."""
        found = self._idle.pop(place, None)
        if found is None:
            return None
        connection, since_s = found
        if time.monotonic() - since_s > _IDLE_S or not _is_quiet(connection):
            connection.close()
            return None
        return connection

    def keep(self, place: tuple[str, str, int], connection: http.client.HTTPConnection) -> None:
        """Keep a connection for the next transfer, in place of the one there is."""
        other = self._idle.pop(place, None)
        if other is not None:
            other[0].close()
        self._idle[place] = connection, time.monotonic()

    def close(self) -> None:
        """End all of them."""
        while self._idle:
            _, (connection, _) = self._idle.popitem()
            connection.close()


def _is_quiet(connection: http.client.HTTPConnection) -> bool:
    """Whether the other side has neither ended the connection nor said what nobody asked for."""
    if connection.sock is None:
        return False
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return not poll.poll(0)


class FoldersToSync:
    """Folders in which files have their names, but whose entries are not on the disk yet.

    Of files that are placed together each folder is written once, before any end is told.
    """

    def __init__(self) -> None:
        self._descriptors: dict[tuple[int, int], int] = {}

    def add(self, descriptor: int) -> None:
        """Note an open folder, which the caller may close."""
        facts = os.fstat(descriptor)
        if (facts.st_dev, facts.st_ino) not in self._descriptors:
            self._descriptors[facts.st_dev, facts.st_ino] = os.dup(descriptor)

    def sync(self) -> None:
        """Have all of them on the disk. Raises OSError."""
        try:
            for descriptor in self._descriptors.values():
                os.fsync(descriptor)
        finally:
            self.forget()

    def forget(self) -> None:
        """Close all of them."""
        while self._descriptors:
            os.close(self._descriptors.popitem()[1])
