"""Copies from one store to another, in any order and as often as wanted: what is there stays.

An object is compared with its hash where its name is one, so that a spoilt one is told and not
copied. Growing files are copied from their beginning on: what has its last byte is whole.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from wms.core.storage.protocol import Growing, ObjectLost, ObjectStore

_CHUNK_BYTES = 1024 * 1024
_SHA256 = re.compile("[0-9a-f]{64}")
#: All other names of objects that are copied; none leads out of a folder.
_NAME = re.compile("[0-9A-Za-z_-]+")
#: So many faults are told by their names.
_MOST_TOLD = 100


@dataclass(slots=True)
class Copied:
    """Account of what was copied, and what could not be."""

    objects: int = 0
    size_bytes: int = 0
    #: There before.
    known: int = 0
    removed: int = 0
    #: Objects that are not what their names say, and files that lack a part; the first of them.
    spoilt: list[str] = field(default_factory=list)

    def add(self, size_bytes: int) -> None:
        """Count a copy."""
        self.objects += 1
        self.size_bytes += size_bytes

    def tell_spoilt(self, key: str) -> None:
        """Note an object that was not copied."""
        if len(self.spoilt) < _MOST_TOLD:
            self.spoilt.append(key)


@dataclass(frozen=True, slots=True)
class Extent:
    """A growing file, and the bytes of it that count: from, to."""

    file: Growing
    spans: tuple[tuple[int, int], ...]

    @property
    def size_bytes(self) -> int:
        """Its end."""
        return max((end for _, end in self.spans), default=0)


def copy_folder(
    source: ObjectStore, target: ObjectStore, folder: str, copied: Copied, *,
    scratch: Path, hashed: bool, removes: bool = False,
) -> None:  # fmt: skip
    """Copy the objects of a folder; of a `hashed` one those whose names are hashes, and hold.

    With `removes`, those that are in both stores are removed from the source.
    """
    there = {each.key: each.size_bytes for each in target.listed(folder)}
    done = []
    for each in list(source.listed(folder)):
        name = each.key.removeprefix(f"{folder}/")
        if not (_SHA256 if hashed else _NAME).fullmatch(name):
            continue
        if there.get(each.key) == each.size_bytes:
            copied.known += 1
        elif _copy(source, target, each.key, name if hashed else "", scratch):
            copied.add(each.size_bytes)
        else:
            copied.tell_spoilt(each.key)
            continue
        done.append(each.key)
    if removes and done:
        source.delete(done)
        copied.removed += len(done)


def _copy(source: ObjectStore, target: ObjectStore, key: str, sha256: str, scratch: Path) -> bool:
    """Copy an object; False where it has not the hash, or is gone meanwhile and was none."""
    digest = hashlib.sha256()
    with tempfile.NamedTemporaryFile(dir=scratch, delete=False) as file:
        path = Path(file.name)
        try:
            with source.open(key) as stream:
                while chunk := stream.read(_CHUNK_BYTES):
                    digest.update(chunk)
                    file.write(chunk)
            if sha256 and digest.hexdigest() != sha256:
                path.unlink()
                return False
            file.flush()
            os.fsync(file.fileno())
            target.put(key, path)
        except ObjectLost:
            # Nothing needed it any more.
            path.unlink(missing_ok=True)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    return True


def copy_growing(
    source: ObjectStore, target: ObjectStore, extents: Iterable[Extent], copied: Copied, *,
    removes: bool = False,
) -> None:  # fmt: skip
    """Copy growing files; with `removes`, they are removed from the source."""
    for each in extents:
        if not each.size_bytes:
            continue
        if _has_end(target, each):
            copied.known += 1
        elif _has_end(source, each):
            try:
                for start, end in each.spans:
                    _copy_span(source, target, each.file, start, end)
            except ObjectLost:
                copied.tell_spoilt(each.file.key)
                continue
            copied.add(each.size_bytes)
        else:
            # Removed meanwhile, or moved by a run before this.
            continue
        if removes and _has_end(target, each):
            source.remove_grown([(each.file, each.size_bytes)])
            copied.removed += 1


def _has_end(store: ObjectStore, extent: Extent) -> bool:
    try:
        return len(store.read_grown(extent.file, extent.size_bytes - 1, 1)) == 1
    except ObjectLost:
        return False


def _copy_span(
    source: ObjectStore, target: ObjectStore, file: Growing, start: int, end: int
) -> None:
    while start < end:
        # Up to where an object ends: each is written once.
        stop = min(end, (start // file.object_bytes + 1) * file.object_bytes)
        piece = source.read_grown(file, start, stop - start)
        target.append(file, piece, at=start, is_durable=True)
        if len(piece) < stop - start:
            return
        start = stop
