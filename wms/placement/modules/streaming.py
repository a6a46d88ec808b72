"""Pieces of a file on their way: size and checksums are made of them and compared at the end.

What came before a transfer broke off is kept beside its destination, and the next attempt goes on
behind it if the source is still the same.
"""

from __future__ import annotations

import http.client
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol, cast, runtime_checkable

from wms.placement.modules.checksums import Digests, WrittenFile
from wms.placement.modules.protocol import (
    FAILED,
    Interrupted,
    ModuleFailed,
    TransferResult,
    TransferTask,
)

CHUNK_BYTES = 1024 * 1024
#: A buffer that stays in the cache of a core between what fills it and what empties it.
_BUFFER_BYTES: Final = 256 * 1024


@runtime_checkable
class Pieces(Protocol):
    """Pieces of a file that can be had in a buffer of the reader's, too, one after the other."""

    def __iter__(self) -> Iterator[bytes]: ...

    def into(self, buffer: memoryview) -> Iterator[memoryview]:
        """The pieces, each in the place of the one before."""


@dataclass(slots=True)
class Source:
    """An opened file.

    `begin` gives the pieces from so many bytes on, and where they begin: at the start, where the
    source cannot do otherwise. Without a `version` nobody can tell later that it is the same file.
    """

    begin: Callable[[int], tuple[int, Iterable[bytes] | Pieces]]
    name: str
    size_bytes: int | None = None
    sha256: str = ""
    version: str = ""
    #: How it was read, where there is more than one way.
    note: str = ""


class Reading:
    """The pieces of a file; its size and checksums are known when all have been read."""

    def __init__(self, task: TransferTask, source: Source) -> None:
        self.task, self.source = task, source
        self.size_bytes = 0
        self._digests = Digests(bool(task.checksums.md5), bool(task.checksums.adler32))

    def __iter__(self) -> Iterator[bytes]:
        """All pieces. Raises ModuleFailed for a file that is not what the request tells of.

        The last one is given when the file was compared: a server that was promised so many bytes
        would have a whole file before.
        """
        last = b""
        for piece in self._pieces(0, lambda: None):
            self._digests.update(piece)
            if last:
                yield last
            # Without a buffer each is one of its own.
            last = cast("bytes", piece)
        self._check()
        yield last

    def body(self) -> Iterable[bytes]:
        """The pieces for a request that tells the size: nothing is promised of an empty file.

        Raises ModuleFailed.
        """
        return self if self.source.size_bytes != 0 else list(self)

    def write_to(self, descriptor: int) -> None:
        """Write what is missing of a file; one that has begun otherwise is cut. It is on the disk.

        Raises ModuleFailed for a file that is not what the request tells of, and OSError.
        """
        begun = os.fstat(descriptor).st_size
        written = WrittenFile(descriptor, self._digests)
        buffer = memoryview(bytearray(_BUFFER_BYTES))
        try:
            for piece in self._pieces(begun, lambda: os.ftruncate(descriptor, 0), buffer):
                _write_all(descriptor, piece, self.size_bytes - len(piece))
                written.reach(self.size_bytes)
            written.finish(self.size_bytes, self.task.pulse)
            if os.fstat(descriptor).st_size != self.size_bytes:
                raise ModuleFailed(FAILED, "the copy is not what was read")
        finally:
            written.give_up()
        self._check()

    def _pieces(
        self, begun: int, begin_anew: Callable[[], None], buffer: memoryview | None = None
    ) -> Iterator[bytes | memoryview]:
        """The pieces behind what there is; from the start, where the source cannot go on there.

        With a buffer they may come in it: each is over when the next one comes.
        """
        most = self._room()
        try:
            self.size_bytes, pieces = self.source.begin(begun)
            if self.size_bytes != begun:
                begin_anew()
            for piece in _pieces_in(pieces, buffer):
                self.task.pulse()
                self.size_bytes += len(piece)
                self._refuse_larger(self.size_bytes, most)
                yield piece
        except TimeoutError:
            told = f"nothing came for {self.task.conf.stall_s:g} s"
            raise Interrupted(f"{told}, after {self.size_bytes} bytes") from None
        except (http.client.HTTPException, ConnectionError, EOFError) as error:
            told = f"the connection broke after {self.size_bytes} bytes"
            raise Interrupted(f"{told}: {type(error).__name__}") from None
        self._require_whole()

    def _room(self) -> int:
        """Bytes that the file may have. Raises ModuleFailed where it is known to have more."""
        most = self.task.conf.file_bytes
        self._refuse_larger(self.source.size_bytes or 0, most)
        return min(most, self.task.hold(self.source.size_bytes, most))

    @property
    def sha256(self) -> str:
        """SHA-256 of what was read."""
        return self._digests.sha256

    def _refuse_larger(self, size_bytes: int, most: int) -> None:
        if size_bytes > most:
            raise ModuleFailed(FAILED, f"the file is larger than {most} bytes")

    def _require_whole(self) -> None:
        announced = self.source.size_bytes
        if announced is not None and self.size_bytes < announced:
            told = f"the connection ended after {self.size_bytes} of {announced} bytes"
            raise Interrupted(told)
        for expected in (self.task.expected_bytes, announced):
            if expected is not None and self.size_bytes != expected:
                raise ModuleFailed(FAILED, f"the file has {self.size_bytes} bytes, not {expected}")

    def _check(self) -> None:
        task, found = self.task, self._digests
        compared = (
            ("SHA-256", found.sha256, task.checksums.sha256),
            ("SHA-256", found.sha256, self.source.sha256),
            ("MD5", found.md5, task.checksums.md5),
            ("Adler-32", found.adler32, task.checksums.adler32),
        )
        for kind, made, wanted in compared:
            if wanted and made != wanted:
                raise ModuleFailed(FAILED, f"the file has {kind} {made}, not {wanted}")


#: What opens the file at the source address, writes one at the destination, does other work.
Reader = Callable[[TransferTask], AbstractContextManager[Source]]
Writer = Callable[[Reading], TransferResult]
Worker = Callable[[TransferTask], TransferResult]


def _pieces_in(
    pieces: Iterable[bytes] | Pieces, buffer: memoryview | None
) -> Iterator[bytes | memoryview]:
    """The pieces in the buffer, if they can be had so."""
    if buffer is not None and isinstance(pieces, Pieces):
        return pieces.into(buffer)
    return iter(pieces)


def _write_all(descriptor: int, piece: bytes | memoryview, offset: int) -> None:
    """Write a piece at its place, all of it."""
    left = memoryview(piece)
    while left:
        size = os.pwrite(descriptor, left, offset)
        left, offset = left[size:], offset + size
