"""Copies from one store to another, in any order and as often as wanted: what is there stays.

An object is compared with its hash where its name is one, so that a spoilt one is told and not
copied. Growing files are copied from their beginning on: what has its last byte is whole. Each of
them is copied and removed under the lock of its row, which whoever appends to it holds too.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

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


@dataclass(frozen=True, slots=True)
class GrowingRows:
    """Rows that say of growing files which bytes count; who appends to one locks its row."""

    rows: Callable[[], QuerySet[Any]]
    extent: Callable[[Any], Extent]


def copy_folder(
    source: ObjectStore, target: ObjectStore, folder: str, copied: Copied, *,
    scratch: Path, hashed: bool, removes: bool = False,
) -> None:  # fmt: skip
    """Copy the objects of a folder; of a `hashed` one those whose names are hashes, and hold.

    With `removes`, those that both stores have with the same content are removed from the source.
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
        if removes and not _are_same(source, target, each.key):
            copied.tell_spoilt(each.key)
        elif removes:
            done.append(each.key)
    if done:
        source.delete(done)
        copied.removed += len(done)


def _are_same(source: ObjectStore, target: ObjectStore, key: str) -> bool:
    """Whether the target has the content of an object, read anew from both."""
    try:
        return _digest(source, key) == _digest(target, key)
    except ObjectLost:
        return False


def _digest(store: ObjectStore, key: str) -> tuple[int, bytes]:
    digest, size_bytes = hashlib.sha256(), 0
    with store.open(key) as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
            size_bytes += len(chunk)
    return size_bytes, digest.digest()


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
    source: ObjectStore, target: ObjectStore, growing: GrowingRows, copied: Copied, *,
    removes: bool = False,
) -> None:  # fmt: skip
    """Copy growing files; with `removes`, they are removed from the source.

    One stays there, and is told, that the target has not with the same bytes, or that has more
    there than its row tells. While a file is removed, its row is locked.
    """
    for pk in growing.rows().order_by("pk").values_list("pk", flat=True).iterator():
        # Whoever writes waits for a removal; what is only copied is copied again by the next run.
        with transaction.atomic() if removes else nullcontext():
            rows = growing.rows().select_for_update() if removes else growing.rows()
            row = rows.filter(pk=pk).first()
            # One that is gone was removed, or became an object.
            if row is not None and (extent := growing.extent(row)).size_bytes:
                _copy_extent(source, target, extent, copied, removes=removes)


def _copy_extent(
    source: ObjectStore, target: ObjectStore, extent: Extent, copied: Copied, *, removes: bool
) -> None:
    if _has_end(target, extent):
        copied.known += 1
    elif _has_end(source, extent):
        try:
            for start, end in extent.spans:
                _copy_span(source, target, extent.file, start, end)
        except ObjectLost:
            copied.tell_spoilt(extent.file.key)
            return
        copied.add(extent.size_bytes)
    else:
        # Moved by a run before this, or lost by both.
        return
    if removes:
        _remove_original(source, target, extent, copied)


def _remove_original(
    source: ObjectStore, target: ObjectStore, extent: Extent, copied: Copied
) -> None:
    if not _has_any(source, extent):
        # Moved by a run before this, and perhaps gone on with since then.
        return
    if _is_copied(source, target, extent) and not _has_grown(source, extent):
        source.remove_grown([(extent.file, extent.size_bytes)])
        copied.removed += 1
    else:
        copied.tell_spoilt(extent.file.key)


def _has_any(store: ObjectStore, extent: Extent) -> bool:
    """Whether a store has the beginning of one of the parts that count."""
    for start, _ in extent.spans:
        try:
            if store.read_grown(extent.file, start, 1):
                return True
        except ObjectLost:
            pass
    return False


def _is_copied(source: ObjectStore, target: ObjectStore, extent: Extent) -> bool:
    """Whether the target has all bytes that count, and those that the source has are the same.

    The source has fewer where the file has grown in the target since it was copied.
    """
    try:
        for start, end in extent.spans:
            for at in range(start, end, _CHUNK_BYTES):
                wanted = min(_CHUNK_BYTES, end - at)
                moved = target.read_grown(extent.file, at, wanted)
                if len(moved) != wanted or not moved.startswith(_piece(source, extent, at, wanted)):
                    return False
    except ObjectLost:
        return False
    return True


def _piece(store: ObjectStore, extent: Extent, start: int, length: int) -> bytes:
    """Bytes that a store has there, none behind its end."""
    try:
        return store.read_grown(extent.file, start, length)
    except ObjectLost:
        return b""


def _has_grown(store: ObjectStore, extent: Extent) -> bool:
    """Whether a store has bytes behind the end that was read from the row."""
    return bool(_piece(store, extent, extent.size_bytes, 1))


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
