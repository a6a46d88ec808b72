"""Files of uploads that are under way, below the store of contents: paths, writing, removal."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from wms.core.conf import conf
from wms.jobs.output.segments import write_at
from wms.jobs.output.streams import appendable_path

_FOLDER = "uploads"


def upload_path(upload_id: int) -> Path:
    """Path of the bytes of an upload that are here."""
    return appendable_path(_FOLDER, upload_id)


def write_piece(upload_id: int, content: bytes, *, offset: int) -> None:
    """Write a piece, so that it is there after a power cut too. The caller has locked the row.

    A database that was restored gives ids again whose files are there. So the first piece begins
    a new file; and one that is a content as well is left to that: its upload lacks bytes then.
    """
    path = upload_path(upload_id)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if offset == 0 or _is_content(path):
        path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        write_at(descriptor, content, offset)
        os.fdatasync(descriptor)
    finally:
        os.close(descriptor)


def end_file(upload_id: int, size_bytes: int) -> bool:
    """Cut off what an older file has behind the end; False where a content would lose it."""
    path = upload_path(upload_id)
    if path.stat().st_size > size_bytes:
        if _is_content(path):
            return False
        os.truncate(path, size_bytes)
    return True


def _is_content(path: Path) -> bool:
    """Whether the file has a name among the contents, too."""
    try:
        return path.stat().st_nlink > 1
    except FileNotFoundError:
        return False


def remove_upload_file(upload_id: int) -> None:
    """Remove the file of an upload; it may be gone already."""
    upload_path(upload_id).unlink(missing_ok=True)


def old_upload_files(before: datetime) -> Iterator[int]:
    """Uploads, by their ids, to whose files nothing was written since then."""
    for path in (conf().blobs_dir / _FOLDER).glob("*/*"):
        try:
            is_old = path.stat().st_mtime < before.timestamp()
        except FileNotFoundError:
            continue
        if is_old and path.name.isdecimal():
            yield int(path.name)
