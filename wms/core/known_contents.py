"""Stream of a stored file whose size and SHA-256 are known, so that nobody has to read it for them.

Its file is open only while it is read: thousands of them hold no descriptors.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any, BinaryIO

_BUFFER_BYTES = 64 * 1024


class _FileByPath(io.RawIOBase):
    def __init__(self, path: Path, size_bytes: int) -> None:
        super().__init__()
        self._path, self._size_bytes, self._at = path, size_bytes, 0

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
        with self._path.open("rb", buffering=0) as file:
            file.seek(self._at)
            count = file.readinto(buffer) or 0
        self._at += count
        return count


class KnownContent(io.BufferedReader):
    """A stored file as a stream, with its SHA-256; `upload_id` names the upload that it came by."""

    def __init__(
        self, path: Path, *, size_bytes: int, sha256: str, upload_id: int | None = None
    ) -> None:
        super().__init__(_FileByPath(path, size_bytes), _BUFFER_BYTES)
        self.size_bytes, self.sha256, self.upload_id = size_bytes, sha256, upload_id


def known_sha256(stream: BinaryIO) -> str | None:
    """SHA-256 of a stream where it is known; None where somebody has to read it."""
    return stream.sha256 if isinstance(stream, KnownContent) else None
