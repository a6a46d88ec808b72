"""Files of a log, plain ones and those that rotation has packed (`.gz`), read by their content.

A packed file that is not whole, as while it is being written, is as good as empty. Uses the
standard library only.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

PACKED = ".gz"
_CHUNK_BYTES = 1024 * 1024
#: What reading a packed file raises that is cut off, or none.
_NOT_WHOLE = (EOFError, gzip.BadGzipFile, zlib.error)
#: What tells that a file is the same as before.
_Key = tuple[str, int, int, int]


class LogFiles:
    """Reader of the files of one log; packed ones are unpacked once, as long as they stay."""

    def __init__(self) -> None:
        self._sizes: dict[_Key, int] = {}
        #: The packed file that was read last, where it was left.
        self._open: tuple[_Key, BinaryIO] | None = None

    def size(self, path: Path) -> int:
        """Bytes of the content; 0 for a file that is not there, or packed and not whole."""
        try:
            stat = path.stat()
        except FileNotFoundError:
            return 0
        if path.suffix != PACKED:
            return stat.st_size
        key = _key(path, stat)
        if key not in self._sizes:
            self._sizes = {known: n for known, n in self._sizes.items() if known[0] != key[0]}
            self._sizes[key] = _unpacked_size(path)
        return self._sizes[key]

    def head(self, path: Path, length: int) -> str:
        """Digest of the first bytes of the content; empty for a file that is not there."""
        try:
            with _opened(path) as file:
                return hashlib.sha256(file.read(length)).hexdigest()
        except (FileNotFoundError, *_NOT_WHOLE):
            return ""

    def read(self, path: Path, at: int, count: int) -> bytes:
        """Bytes of the content from `at` on, at most `count`. Raises OSError."""
        if path.suffix != PACKED:
            with path.open("rb") as file:
                file.seek(at)
                return file.read(count)
        key = _key(path, path.stat())
        if self._open is None or self._open[0] != key:
            self.close()
            self._open = key, _opened(path)
        # Forward, nothing is unpacked a second time.
        opened = self._open[1]
        try:
            opened.seek(at)
            return opened.read(count)
        except _NOT_WHOLE as error:
            raise OSError(f"{path} cannot be unpacked: {error}") from error

    def close(self) -> None:
        """Close what is open."""
        if self._open is not None:
            self._open[1].close()
            self._open = None


def _opened(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path)) if path.suffix == PACKED else path.open("rb")


def _key(path: Path, stat: os.stat_result) -> _Key:
    return str(path), stat.st_ino, stat.st_mtime_ns, stat.st_size


def _unpacked_size(path: Path) -> int:
    size = 0
    with suppress(FileNotFoundError, *_NOT_WHOLE), gzip.open(path) as file:
        while piece := file.read(_CHUNK_BYTES):
            size += len(piece)
        return size
    return 0
