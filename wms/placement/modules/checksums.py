"""Checksums of files on their way: made of pieces, or of a file while it is being written."""

from __future__ import annotations

import hashlib
import os
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

#: A buffer that stays in the cache of a core.
_BUFFER_BYTES: Final = 256 * 1024
#: A file is read again in steps of so many bytes, and by a thread of its own from so many on.
_STEP_BYTES: Final = 8 * 1024 * 1024
#: So long at most whoever waits for the checksums does nothing else.
_WAIT_S: Final = 0.5


@dataclass(slots=True)
class Digests:
    """SHA-256 of what was read, and the other checksums if they are asked for."""

    has_md5: bool
    has_adler32: bool
    _sha256: hashlib._Hash = field(default_factory=hashlib.sha256)
    _md5: hashlib._Hash = field(default_factory=lambda: hashlib.md5(usedforsecurity=False))
    _adler32: int = 1

    def update(self, piece: bytes | memoryview) -> None:
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


class WrittenFile:
    """A file that is being written; its checksums are made of what is read from it again.

    Of a large one a thread makes them behind the writer, and has the system write to the disk what
    was read: at the end little is left to do.
    """

    def __init__(self, descriptor: int, digests: Digests) -> None:
        self._descriptor, self._digests = descriptor, digests
        self._is_there, self._at = 0, 0
        self._changed = threading.Condition()
        self._has_all = self._is_given_up = False
        self._fault: OSError | None = None
        self._thread: threading.Thread | None = None

    def reach(self, size_bytes: int) -> None:
        """So many bytes of it are there."""
        if size_bytes - self._is_there < _STEP_BYTES:
            return
        with self._changed:
            self._is_there = size_bytes
            self._changed.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._follow, daemon=True)
            self._thread.start()

    def finish(self, size_bytes: int, pulse: Callable[[], None]) -> None:
        """Have the checksums of all of it, and all of it on the disk. Raises OSError."""
        with self._changed:
            self._is_there, self._has_all = size_bytes, True
            self._changed.notify()
        if self._thread is None:
            self._read_on(size_bytes)
        else:
            while self._thread.is_alive():
                self._thread.join(_WAIT_S)
                pulse()
        if self._fault is not None:
            raise self._fault
        os.fsync(self._descriptor)

    def give_up(self) -> None:
        """End the thread, if there is one: the descriptor may be closed then."""
        with self._changed:
            self._has_all = self._is_given_up = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _follow(self) -> None:
        try:
            while not self._is_given_up:
                with self._changed:
                    self._changed.wait_for(lambda: self._has_all or self._at < self._is_there)
                    until, is_end = self._is_there, self._has_all
                self._read_on(until)
                if is_end:
                    return
        except OSError as error:
            self._fault = error

    def _read_on(self, until: int) -> None:
        """Take in what is there up to an offset."""
        buffer = memoryview(bytearray(min(_BUFFER_BYTES, max(until - self._at, 1))))
        began = self._at
        while self._at < until and not self._is_given_up:
            size = os.preadv(self._descriptor, [buffer[: until - self._at]], self._at)
            if not size:
                return
            self._digests.update(buffer[:size])
            self._at += size
            if self._at - began >= _STEP_BYTES:
                # Begins to write it: what the file's end waits for is short then.
                os.posix_fadvise(self._descriptor, began, self._at - began, os.POSIX_FADV_DONTNEED)
                began = self._at
