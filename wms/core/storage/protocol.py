"""Protocol of stores: whole objects under keys, and files that grow at their ends, in parts.

An object is there whole or not at all, whoever is killed while it is written; who writes the same
key twice at once leaves one of the two whole. Every read names its range, so that memory is
bounded whatever the size.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, Final, NamedTuple, Protocol

from wms.core.errors import NotFound, PilotageError

#: No headers.
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class ObjectLost(NotFound):
    """The store has no such object, or no longer."""


class StoreFailed(PilotageError):
    """The store of contents cannot be reached, or refuses: try again later."""

    status = 503
    code = "unavailable"
    retry_after_s = 5


class Listed(NamedTuple):
    """An object of a listing."""

    key: str
    size_bytes: int
    modified_at: datetime


@dataclass(frozen=True, slots=True)
class Growing:
    """A file that is appended to. Whoever appends has locked the row that tells how much counts.

    A folder keeps it in files of `file_bytes` each (0: in one), a bucket in objects of
    `object_bytes`: of these the last is written anew with each piece.
    """

    key: str
    file_bytes: int
    object_bytes: int


@dataclass(frozen=True, slots=True)
class Link:
    """An address that is good for one request and a short time, and the headers it needs.

    Whoever has it can do that request: it belongs in no log and no event.
    """

    url: str
    headers: dict[str, str]

    def __repr__(self) -> str:
        return f"Link(headers={sorted(self.headers)})"


class ReadableStore(Protocol):
    """A store of contents, for those who only read there."""

    @property
    def name(self) -> str:
        """Name of the store, for people."""

    @property
    def has_links(self) -> bool:
        """Whether others can read and write objects by links."""

    def size_of(self, key: str) -> int | None:
        """Size of an object; None where there is none."""

    def read(self, key: str, start: int, length: int) -> bytes:
        """Bytes of an object from `start` on; fewer at its end. Raises ObjectLost."""

    def open(self, key: str) -> BinaryIO:
        """An object as a stream with a position. Raises ObjectLost."""

    def listed(self, folder: str) -> Iterator[Listed]:
        """Objects whose keys begin with `folder` and a slash, those of folders below too."""

    def folders(self) -> Collection[str]:
        """Folders of objects that there are, those that are in no other."""

    def read_grown(self, file: Growing, start: int, length: int) -> bytes:
        """Bytes of a growing file; fewer at its end. Raises ObjectLost where they are gone."""

    def counts_path(self, key: str) -> Path:
        """Local file for what was counted of an object or growing file; lost, that is done anew."""

    @property
    def serves_people(self) -> bool:
        """Whether browsers and programs of people reach the store by its links."""

    def read_link(self, key: str, *, answer: Mapping[str, str] = NOTHING) -> Link:
        """Link by which an object is read. Only where the store `has_links`.

        `answer`: headers that the store is to send with it, of those that HTTP has for contents.
        """

    def seen(self, key: str, *, sha256: str, size_bytes: int) -> str:
        """Mark of an object that came by a link, if it has this size and SHA-256; else empty."""


class ObjectStore(ReadableStore, Protocol):
    """A store of contents."""

    def put(self, key: str, path: Path) -> None:
        """Take a file of the scratch folder over as an object, durably; it is gone there."""

    def put_new(self, key: str, content: bytes) -> bool:
        """Write a small object, durably, if there is none of this key; whether it was written.

        Some servers look and write in two steps: a caller reads afterwards what is there.
        """

    def delete(self, keys: Collection[str]) -> None:
        """Delete objects; those that are gone are passed over."""

    def append(self, file: Growing, content: bytes, *, at: int, is_durable: bool = False) -> None:
        """Write a piece at a byte; what was behind it counts no more.

        A first piece (at 0) begins a new file. With `is_durable` it outlives a power cut.
        """

    def keep_grown(self, file: Growing, key: str, *, size_bytes: int) -> bool:
        """Make the first bytes of a growing file an object, too; False where they are not its own.

        Nothing may be appended to it any more.
        """

    def remove_within(self, file: Growing, start: int, end: int) -> None:
        """Remove the parts of a growing file that lie whole between two bytes."""

    def remove_grown(self, files: Iterable[tuple[Growing, int]]) -> None:
        """Remove growing files, given with their sizes; those that are gone are passed over."""

    def sweep(self, *, now: datetime) -> int:
        """Remove what was left by those that were killed a day ago or earlier; the number."""

    def write_link(self, key: str, *, sha256: str, size_bytes: int) -> Link:
        """Link by which an object of this size and SHA-256 is written, and no other."""

    def move(self, source: str, key: str, *, mark: str, size_bytes: int) -> bool:
        """Make what was seen, if it still is what it was, another object; it is gone there."""
