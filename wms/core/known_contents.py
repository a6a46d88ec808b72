"""Stream of a stored content with known size and SHA-256: nobody has to read it for them.

It is open only while it is read: thousands of them hold no descriptors.
"""

from __future__ import annotations

import io
import os
from typing import Any, BinaryIO

from wms.core.storage.contents import Readable

_BUFFER_BYTES = 64 * 1024


class _Content(io.RawIOBase):
    def __init__(self, content: Readable, size_bytes: int) -> None:
        super().__init__()
        self._content, self._size_bytes, self._at = content, size_bytes, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size_bytes}[whence]
        self._at = max(0, start + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        piece = self._content.read(self._at, min(len(buffer), self._size_bytes - self._at))
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


class KnownContent(io.BufferedReader):
    """A stored content as a stream, with its SHA-256; `upload_id`: the upload that it came by."""

    def __init__(
        self, content: Readable, *, size_bytes: int, sha256: str, upload_id: int | None = None
    ) -> None:
        super().__init__(_Content(content, size_bytes), _BUFFER_BYTES)
        self.size_bytes, self.sha256, self.upload_id = size_bytes, sha256, upload_id


def known_sha256(stream: BinaryIO) -> str | None:
    """SHA-256 of a stream where it is known; None where somebody has to read it."""
    return stream.sha256 if isinstance(stream, KnownContent) else None
