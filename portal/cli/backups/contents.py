"""Contents of files in a backup: copied from the store, listed, compared, and put back.

Contents have their hashes for names and never change, so a backup shares them with the one before
by hard links. Files that grow are copied. Nothing is linked to the store itself: what spoils a file
there would spoil its backup, and a growing file with two names is taken for one that has ended.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from django.db.models import QuerySet

from portal.cli.backups.manifest import (
    CONTENTS,
    NAMED,
    OTHERS,
    BackupFault,
    Manifest,
    files_below,
    sha256_of,
)
from portal.cli.backups.progress import Progress, Tell
from wms.core.storage.copying import Copied, copy_folder
from wms.core.storage.folder import FolderStore
from wms.core.storage.protocol import ObjectStore

_HASHED: Final = re.compile("[0-9a-f]{2}")
_LINE: Final = re.compile(r"([0-9a-f]{64}) (\d{1,19})")
_OTHER_LINE: Final = re.compile(rf"([0-9a-f]{{64}})  ({CONTENTS}/[\w./-]+)")
_ROWS_AT_ONCE = 5000


@dataclass(frozen=True, slots=True)
class Named:
    """A content that the database names: its hash, its size, and its file in a backup."""

    sha256: str
    size_bytes: int

    @property
    def key(self) -> str:
        """Its key in a store."""
        return f"{self.sha256[:2]}/{self.sha256}"


def write_named(folder: Path, rows: QuerySet[object]) -> None:
    """List the contents that rows of `sha256` and `size_bytes` name, in their order."""
    found = rows.order_by("pk").values_list("pk", "size_bytes")
    with (folder / NAMED).open("w", encoding="ascii") as file:
        for sha256, size_bytes in found.iterator(chunk_size=_ROWS_AT_ONCE):
            file.write(f"{sha256} {size_bytes}\n")


def read_named(folder: Path) -> Iterator[Named]:
    """Contents that a backup's database names. Raises BackupFault."""
    with (folder / NAMED).open(encoding="ascii") as file:
        for line in file:
            if (found := _LINE.fullmatch(line.strip())) is None:
                raise BackupFault(f"{folder / NAMED} has a line that makes no sense.")
            yield Named(found[1], int(found[2]))


def copy_contents(
    source: ObjectStore, folder: Path, *, former: Path | None, tell: Tell
) -> tuple[Copied, int]:
    """Copy all contents of a store into a backup; the account, and how many were linked.

    `former` is the backup before, in the same file system, whose files are shared.
    """
    target = FolderStore(folder / CONTENTS)
    scratch = target.base / "incoming"
    scratch.mkdir(parents=True, mode=0o700, exist_ok=True)
    copied, linked, progress = Copied(), 0, Progress("contents", tell)
    for name in sorted(each for each in source.folders() if _HASHED.fullmatch(each)):
        if former is not None:
            linked += _link(source, name, former / CONTENTS, target.base)
        before, bytes_before = copied.objects + copied.known, copied.size_bytes
        copy_folder(source, target, name, copied, scratch=scratch, hashed=True)
        progress.add(copied.size_bytes - bytes_before, count=copied.objects + copied.known - before)
    scratch.rmdir()
    return copied, linked


def _link(source: ObjectStore, name: str, former: Path, target: Path) -> int:
    """Link the contents of a folder that the backup before has, too; their number."""
    linked = 0
    for each in source.listed(name):
        known = former / each.key
        if not known.is_file() or known.stat().st_size != each.size_bytes:
            continue
        (target / each.key).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            os.link(known, target / each.key)
        except OSError:
            # Another file system, or one that has no links, or no more of this file.
            continue
        linked += 1
    return linked


def sizes_of(folder: Path) -> tuple[int, int, list[str]]:
    """Number and bytes of the contents of a backup, and those that its database names in vain.

    One that is not as long as it was counts as missing.
    """
    missing: list[str] = []
    count = size_bytes = 0
    for named in read_named(folder):
        path = folder / CONTENTS / named.key
        if path.is_file() and path.stat().st_size == named.size_bytes:
            count, size_bytes = count + 1, size_bytes + named.size_bytes
        else:
            missing.append(named.sha256)
    return count, size_bytes, missing


def write_others(folder: Path) -> int:
    """List the files that are no contents under their hashes: those that grow; their number."""
    count = 0
    with (folder / OTHERS).open("w", encoding="utf-8") as file:
        for path in files_below(folder / CONTENTS):
            place = path.relative_to(folder / CONTENTS)
            if len(place.parts) > 1 and not _HASHED.fullmatch(place.parts[0]):
                file.write(f"{sha256_of(path)}  {path.relative_to(folder)}\n")
                count += 1
    return count


def read_others(folder: Path) -> Iterator[tuple[str, str]]:
    """Hashes and paths of those files. Raises BackupFault."""
    with (folder / OTHERS).open(encoding="utf-8") as file:
        for line in file:
            found = _OTHER_LINE.fullmatch(line.rstrip("\n"))
            if found is None or ".." in found[2].split("/"):
                raise BackupFault(f"{folder / OTHERS} has a line that makes no sense.")
            yield found[1], found[2]


def faults_of_contents(folder: Path, manifest: Manifest, *, reads: bool, tell: Tell) -> list[str]:
    """Contents that are not as they were; with `reads` they are read and not only looked at."""
    faults, progress, known_missing = [], Progress("contents", tell), set(manifest.missing)
    for named in read_named(folder):
        path = folder / CONTENTS / named.key
        if not path.is_file() or path.stat().st_size != named.size_bytes:
            if named.sha256 not in known_missing:
                faults.append(f"{CONTENTS}/{named.key} is not there, or not whole")
        elif reads and sha256_of(path) != named.sha256:
            faults.append(f"{CONTENTS}/{named.key} is spoilt")
        progress.add(named.size_bytes)
    for sha256, place in read_others(folder):
        path = folder / place
        if not path.is_file() or (reads and sha256_of(path) != sha256):
            faults.append(f"{place} is not there, or spoilt")
    return faults


def put_contents_back(folder: Path, target: FolderStore, *, scratch: Path, tell: Tell) -> Copied:
    """Copy the contents of a backup into a store, each compared with its hash.

    What is there already stays: also what has grown since.
    """
    source, copied = FolderStore(folder / CONTENTS), Copied()
    progress = Progress("contents", tell)
    for name in sorted(each for each in source.folders() if _HASHED.fullmatch(each)):
        before, bytes_before = copied.objects, copied.size_bytes
        copy_folder(source, target, name, copied, scratch=scratch, hashed=True)
        progress.add(copied.size_bytes - bytes_before, count=copied.objects - before)
    for _, place in read_others(folder):
        _put_back(folder / place, target.base / Path(place).relative_to(CONTENTS), scratch)
    return copied


def _put_back(source: Path, target: Path, scratch: Path) -> None:
    if target.exists() and target.stat().st_size >= source.stat().st_size:
        return
    fresh = scratch / "put-back"
    with source.open("rb") as read, fresh.open("wb") as write:
        shutil.copyfileobj(read, write)
        write.flush()
        os.fsync(write.fileno())
    fresh.chmod(0o600)
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh.rename(target)
