"""Contents with random access: an object of the store, or a file there that grows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from wms.core.storage.current import current_store
from wms.core.storage.folder import read_file
from wms.core.storage.protocol import Growing


class Readable(Protocol):
    """Bytes of any number; each reading takes the memory of what it gives."""

    def read(self, start: int, length: int) -> bytes:
        """Bytes from `start` on; fewer at the end. Raises NotFound when they are gone."""


@dataclass(frozen=True, slots=True)
class ObjectContent:
    """An object of the store."""

    key: str

    def read(self, start: int, length: int) -> bytes:
        """Bytes from `start` on. Raises NotFound."""
        return current_store().read(self.key, start, length)


@dataclass(frozen=True, slots=True)
class GrowingContent:
    """A growing file of the store."""

    file: Growing

    def read(self, start: int, length: int) -> bytes:
        """Bytes from `start` on. Raises NotFound."""
        return current_store().read_grown(self.file, start, length)


@dataclass(frozen=True, slots=True)
class FileContent:
    """A file of this host."""

    path: Path

    def read(self, start: int, length: int) -> bytes:
        """Bytes from `start` on. Raises NotFound."""
        return read_file(self.path, start, length)
