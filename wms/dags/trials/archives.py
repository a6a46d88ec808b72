"""Archives of the files of trials, one for each, in a folder that all hosts of the portal share.

An archive is written and synced before the row that names it is committed, and removed when the
trial has ended; what a killed process left is found by its age.
"""

from __future__ import annotations

import os
import secrets
import shutil
import zipfile
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO, Final

from wms.core.conf import conf
from wms.core.errors import NotFound
from wms.dags.models import Trial

#: An archive that no row names by then is of a request that was broken off.
_GRACE: Final = timedelta(hours=1)
_CHUNK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Kept:
    """A kept archive: its name, and the bytes of the files in it."""

    name: str
    size_bytes: int


def keep_files(files: Mapping[str, BinaryIO]) -> Kept:
    """Store the files, whose paths were checked, as one archive."""
    kept = Kept(secrets.token_hex(16), 0)
    size_bytes = 0
    path = _path(kept.name)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        with path.open("xb") as stream:
            # Deflated, it would take longer than it lies there.
            with zipfile.ZipFile(stream, "w") as archive:
                for name, content in files.items():
                    content.seek(0)
                    with archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as member:
                        shutil.copyfileobj(content, member, _CHUNK_BYTES)
                        size_bytes += content.tell()
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException:
        remove_archives([kept.name])
        raise
    return Kept(kept.name, size_bytes)


def unpack_into(name: str, folder: Path) -> None:
    """Write the files of an archive into an empty folder. Raises NotFound when it is gone."""
    try:
        with zipfile.ZipFile(_path(name)) as archive:
            archive.extractall(folder)
    except FileNotFoundError:
        raise NotFound(f"The files of the trial, {name}, are gone.") from None


def remove_archives(names: Collection[str]) -> None:
    """Remove archives; those that are gone already are passed over."""
    for name in names:
        _path(name).unlink(missing_ok=True)


def sweep_archives(active: Collection[str], *, now: datetime) -> int:
    """Remove old archives of none of the `active` names; their number."""
    limit, removed = (now - _GRACE).timestamp(), 0
    for path in _folder().glob("*"):
        with suppress(FileNotFoundError):
            # Whoever ended a trial removes its archive by itself, or was killed before it did.
            if path.name not in active and (path.stat().st_mtime < limit or _is_over(path.name)):
                path.unlink()
                removed += 1
    return removed


def _is_over(name: str) -> bool:
    return Trial.objects.filter(archive=name, ended_at__isnull=False).exists()


def _folder() -> Path:
    return conf().blobs_dir / "trials"


def _path(name: str) -> Path:
    return _folder() / name
