"""Files that are fetched: written beside their place, and put there when they are whole."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from ..errors import NoAnswer, UsageError


class FileSink:
    """Sink that is a file; it is at its place once it is kept."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._fresh = place.with_name(f".{place.name}.{os.getpid()}.part")
        self._file: BinaryIO | None = None
        self._digest = hashlib.sha256()
        self._length: int | None = None
        self._written = 0

    def begin(self, length: int | None) -> None:
        """Begin, once more after a piece was lost."""
        self._close()
        self._length, self._written, self._digest = length, 0, hashlib.sha256()
        try:
            self._fresh.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._fresh.open("wb")
        except OSError as error:
            raise UsageError(f"{self._place} cannot be written: {error.strerror}.") from None

    def write(self, piece: bytes) -> None:
        """Take the next piece."""
        assert self._file is not None
        self._file.write(piece)
        self._digest.update(piece)
        self._written += len(piece)

    def keep(self, sha256: str) -> Path:
        """Put the file at its place, if it is whole. Raises NoAnswer."""
        self._close()
        is_cut = self._length is not None and self._written != self._length
        if is_cut or (sha256 and self._digest.hexdigest() != sha256):
            self._fresh.unlink()
            raise NoAnswer(f"{self._place.name} came incomplete or changed: fetch it again.")
        self._fresh.replace(self._place)
        return self._place

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def place_below(folder: Path, name: str) -> Path:
    """Place of a file in a folder. Raises UsageError for a name that leads out of it."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts:
        raise UsageError(f"{name} leads out of {folder}: it is not fetched.")
    place = folder.joinpath(*parts)
    inside = folder.resolve()
    parent = place.parent.resolve()
    if parent != inside and inside not in parent.parents:
        raise UsageError(f"{name} leads out of {folder} by a link: it is not fetched.")
    return place
