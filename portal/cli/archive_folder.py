"""Folder of archives: writes that of a DAG once, under a hidden name until it is whole.

Any number of processes may write into one folder; one that was killed is gone on after by the next.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import IO

from portal.config.version import product_version
from wms.archives.manifest import Manifest
from wms.archives.writing import require_archivable, stream_archive
from wms.archives.zip_reading import manifest_of, opened
from wms.core.errors import Conflict
from wms.core.storage.folder import sync_path
from wms.dags.models import Dag


class Outcome(StrEnum):
    """Outcome for one DAG."""

    WRITTEN = "written"
    THERE = "was there"
    BUSY = "is being written by another"


def write_into(folder: Path, dag: Dag) -> tuple[Path, Outcome]:
    """Write the archive of a DAG into a folder; one that is there whole is left alone.

    Raises Conflict for a DAG that cannot be archived and for a file of its name that is not its
    archive, and OSError; then the folder is as it was.
    """
    require_archivable(dag)
    target = folder / f"dag-{dag.pk}.zip"
    if _is_there(target, dag):
        return target, Outcome.THERE
    with _part_of(target) as part:
        if part is None:
            return target, Outcome.BUSY
        # Another one may have ended between the look above and the lock.
        if _is_there(target, dag):
            return target, Outcome.THERE
        for piece in stream_archive(dag, product_version=product_version()):
            part.write(piece)
        part.flush()
        os.fsync(part.fileno())
        os.rename(part.name, target)
    sync_path(folder)
    return target, Outcome.WRITTEN


def _is_there(target: Path, dag: Dag) -> bool:
    """Whether the archive is there: under its own name a file is whole. Raises Conflict."""
    if not target.exists():
        return False
    with target.open("rb") as file, opened(file) as archive:
        found: Manifest = manifest_of(archive)
    if (found.dag["id"], found.submitted_at) != (dag.pk, dag.created_at):
        raise Conflict(f"{target} is the archive of another DAG, {found.dag['name']}.")
    return True


@contextmanager
def _part_of(target: Path) -> Iterator[IO[bytes] | None]:
    """The hidden file of an archive, empty and locked; None while another process has it."""
    path = target.with_name(f".{target.name}.part")
    with path.open("ab") as part:
        try:
            fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        # Who had the lock may have renamed the file: then this is it, under its own name.
        if not _is_at(path, part):
            yield None
            return
        try:
            part.truncate(0)
            yield part
        finally:
            # Renamed when all went well, and then the name may be another's already.
            if _is_at(path, part):
                path.unlink()


def _is_at(path: Path, file: IO[bytes]) -> bool:
    """Whether an opened file has this name."""
    return path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno()))
