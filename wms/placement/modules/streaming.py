"""Pieces of a file on their way: size and checksums are made of them and compared at the end.

What came before a transfer broke off is kept beside its destination, and the next attempt goes on
behind it if the source is still the same.
"""

from __future__ import annotations

import hashlib
import http.client
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from wms.placement.modules.protocol import FAILED, Interrupted, ModuleFailed, TransferTask

CHUNK_BYTES = 1024 * 1024


@dataclass(slots=True)
class Source:
    """An opened file.

    `begin` gives the pieces from so many bytes on, and where they begin: at the start, where the
    source cannot do otherwise. Without a `version` nobody can tell later that it is the same file.
    """

    begin: Callable[[int], tuple[int, Iterable[bytes]]]
    name: str
    size_bytes: int | None = None
    sha256: str = ""
    version: str = ""


@dataclass(slots=True)
class Digests:
    """SHA-256 of what was read, and the other checksums if they are asked for."""

    has_md5: bool
    has_adler32: bool
    _sha256: hashlib._Hash = field(default_factory=hashlib.sha256)
    _md5: hashlib._Hash = field(default_factory=lambda: hashlib.md5(usedforsecurity=False))
    _adler32: int = 1

    def update(self, piece: bytes) -> None:
        """Take in the next piece."""
        self._sha256.update(piece)
        if self.has_md5:
            self._md5.update(piece)
        if self.has_adler32:
            self._adler32 = zlib.adler32(piece, self._adler32)

    @property
    def sha256(self) -> str:
        """In hexadecimal, as the others."""
        return self._sha256.hexdigest()

    @property
    def md5(self) -> str:
        """Of nothing, unless it was asked for."""
        return self._md5.hexdigest()

    @property
    def adler32(self) -> str:
        """Of nothing, unless it was asked for."""
        return f"{self._adler32:08x}"


class Reading:
    """The pieces of a file; its size and checksums are known when all have been read."""

    def __init__(self, task: TransferTask, source: Source) -> None:
        self.task, self.source = task, source
        self.size_bytes = 0
        #: So much of it was there before.
        self.kept_bytes = 0
        self._digests = self._fresh()

    def _fresh(self) -> Digests:
        return Digests(bool(self.task.checksums.md5), bool(self.task.checksums.adler32))

    def __iter__(self) -> Iterator[bytes]:
        """All pieces. Raises ModuleFailed for a file that is not what the request tells of."""
        return self._pieces(0)

    def behind(self, partial: BinaryIO) -> Iterator[bytes]:
        """The pieces that are missing of a file, which is read, and cut if it is of no use."""
        partial.seek(0)
        while piece := partial.read(CHUNK_BYTES):
            self.task.pulse()
            self._digests.update(piece)
            self.size_bytes += len(piece)
        return self._pieces(self.size_bytes, partial)

    def _pieces(self, offset: int, partial: BinaryIO | None = None) -> Iterator[bytes]:
        most = self._room()
        try:
            begins_at, pieces = self.source.begin(offset)
            if begins_at != offset:
                self.size_bytes, self._digests = 0, self._fresh()
                if partial is not None:
                    partial.seek(0)
                    partial.truncate()
            self.kept_bytes = self.size_bytes
            for piece in pieces:
                self.task.pulse()
                self.size_bytes += len(piece)
                self._refuse_larger(self.size_bytes, most)
                self._digests.update(piece)
                yield piece
        except TimeoutError:
            told = f"nothing came for {self.task.conf.stall_s:g} s"
            raise Interrupted(f"{told}, after {self.size_bytes} bytes") from None
        except (http.client.HTTPException, ConnectionError, EOFError) as error:
            told = f"the connection broke after {self.size_bytes} bytes"
            raise Interrupted(f"{told}: {type(error).__name__}") from None
        self._check()

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

    def _check(self) -> None:
        task, found = self.task, self._digests
        announced = self.source.size_bytes
        if announced is not None and self.size_bytes < announced:
            told = f"the connection ended after {self.size_bytes} of {announced} bytes"
            raise Interrupted(told)
        for expected in (task.expected_bytes, announced):
            if expected is not None and self.size_bytes != expected:
                raise ModuleFailed(FAILED, f"the file has {self.size_bytes} bytes, not {expected}")
        compared = (
            ("SHA-256", found.sha256, task.checksums.sha256),
            ("SHA-256", found.sha256, self.source.sha256),
            ("MD5", found.md5, task.checksums.md5),
            ("Adler-32", found.adler32, task.checksums.adler32),
        )
        for kind, made, wanted in compared:
            if wanted and made != wanted:
                raise ModuleFailed(FAILED, f"the file has {kind} {made}, not {wanted}")
