"""Pieces of a file on their way: size and checksums are made of them and compared at the end."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from wms.placement.modules.protocol import FAILED, ModuleFailed, TransferTask

CHUNK_BYTES = 1024 * 1024


@dataclass(slots=True)
class Source:
    """An opened file: its pieces, its name, and its size and SHA-256 where these are known."""

    pieces: Iterable[bytes]
    name: str
    size_bytes: int | None = None
    sha256: str = ""


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
        self._digests = Digests(bool(task.checksums.md5), bool(task.checksums.adler32))

    def __iter__(self) -> Iterator[bytes]:
        """The pieces. Raises ModuleFailed for a file that is not what the request tells of."""
        known = self.source.size_bytes
        most = self.task.conf.file_bytes
        self._refuse_larger(known or 0, most)
        most = min(most, self.task.hold(known, most))
        for piece in self.source.pieces:
            self.task.pulse()
            self.size_bytes += len(piece)
            self._refuse_larger(self.size_bytes, most)
            self._digests.update(piece)
            yield piece
        self._check()

    @property
    def sha256(self) -> str:
        """SHA-256 of what was read."""
        return self._digests.sha256

    def _refuse_larger(self, size_bytes: int, most: int) -> None:
        if size_bytes > most:
            raise ModuleFailed(FAILED, f"the file is larger than {most} bytes")

    def _check(self) -> None:
        task, found = self.task, self._digests
        for expected in (task.expected_bytes, self.source.size_bytes):
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
