"""Reading of a kept archive: rows of a kind from a number on, and the bytes of a member."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from wms.archives import layout
from wms.archives.manifest import Manifest, strict_json
from wms.archives.models import ArchivedDag
from wms.archives.zip_reading import manifest_of, opened, pieces, whole
from wms.core.errors import NotFound
from wms.jobs.content.blobs import open_blob

#: Rows that one page looks through for those that are wanted, some tenths of a second.
MOST_LOOKED_AT: Final = 50_000


@dataclass(frozen=True, slots=True)
class RowPage:
    """Some rows of a kind, and the number of the row to go on with; None after the last one."""

    rows: Sequence[dict[str, Any]]
    following: int | None = None


class ArchiveFile:
    """The opened file of a kept archive. It was checked before it was kept."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.manifest: Manifest = manifest_of(archive)

    def page(
        self, kind: str, *, start: int, most: int, wanted: Callable[[dict[str, Any]], bool]
    ) -> RowPage:
        """The wanted rows of a kind from number `start` on, which counts from 0.

        A page may have fewer than `most` although others follow: it ends when enough was looked at.
        """
        found: list[dict[str, Any]] = []
        for number, row in self._rows(kind, start):
            if len(found) == most or number - start >= MOST_LOOKED_AT:
                return RowPage(found, number)
            if wanted(row):
                found.append(row)
        return RowPage(found)

    def _rows(self, kind: str, start: int) -> Iterator[tuple[int, dict[str, Any]]]:
        number = 0
        for chunk in self.manifest.chunks(kind):
            assert chunk.rows is not None
            if number + chunk.rows > start:
                lines = whole(self._archive, chunk.name)[:-1].split(b"\n")
                for place, line in enumerate(lines, number):
                    if place >= start:
                        yield place, strict_json(line)
            number += chunk.rows

    def size_of(self, name: str) -> int:
        """Unpacked size of a member. Raises NotFound."""
        for each in self.manifest.members:
            if each.name == name:
                return each.size_bytes
        raise NotFound(f"There is no member {name[:100]!r} in the archive.")


@contextmanager
def opened_file(archived: ArchivedDag) -> Iterator[ArchiveFile]:
    """The file of a kept archive. Raises NotFound when the store has lost it."""
    with open_blob(archived.blob_id) as stream, opened(stream) as archive:
        yield ArchiveFile(archive)


def member_size(archived: ArchivedDag, name: str) -> int:
    """Unpacked size of a member of a kept archive. Raises NotFound."""
    if layout.most_bytes_of(name) is None:
        raise NotFound(f"There is no member {name[:100]!r} in the archive.")
    with opened_file(archived) as file:
        return file.size_of(name)


def member_pieces(archived: ArchivedDag, name: str) -> Iterator[bytes]:
    """The unpacked bytes of a member, piece by piece."""
    with open_blob(archived.blob_id) as stream, opened(stream) as archive:
        yield from pieces(archive, name)
