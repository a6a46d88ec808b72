"""Archives of the files of trials, one for each, in the store of contents.

An archive is stored before the row that names it is committed, and removed when the
trial has ended; what a killed process left is found by its age.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tempfile
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO, Final

from wms.core.errors import NotFound
from wms.core.storage.current import current_store, scratch_folder, writable_store
from wms.core.storage.protocol import ObjectLost
from wms.dags.models import Trial

#: An archive that no row names by then is of a request that was broken off.
_GRACE: Final = timedelta(hours=1)
_CHUNK_BYTES = 1024 * 1024
FOLDER: Final = "trials"
_NAME: Final = re.compile("[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Kept:
    """A kept archive: its name, and the bytes of the files in it."""

    name: str
    size_bytes: int


def keep_files(files: Mapping[str, BinaryIO]) -> Kept:
    """Store the files, whose paths were checked, as one archive."""
    name, size_bytes = secrets.token_hex(16), 0
    with tempfile.NamedTemporaryFile(dir=scratch_folder(), delete=False) as stream:
        try:
            # Deflated, it would take longer than it lies there.
            with zipfile.ZipFile(stream, "w") as archive:
                for path, content in files.items():
                    content.seek(0)
                    with archive.open(zipfile.ZipInfo(path), "w", force_zip64=True) as member:
                        shutil.copyfileobj(content, member, _CHUNK_BYTES)
                        size_bytes += content.tell()
            stream.flush()
            os.fsync(stream.fileno())
            writable_store().put(_key(name), Path(stream.name))
        except BaseException:
            Path(stream.name).unlink(missing_ok=True)
            raise
    return Kept(name, size_bytes)


def unpack_into(name: str, folder: Path) -> None:
    """Write the files of an archive into an empty folder. Raises NotFound when it is gone."""
    try:
        with current_store().open(_key(name)) as stream, zipfile.ZipFile(stream) as archive:
            archive.extractall(folder)
    except ObjectLost:
        raise NotFound(f"The files of the trial, {name}, are gone.") from None


def remove_archives(names: Collection[str]) -> None:
    """Remove archives; those that are gone already are passed over."""
    if not names:
        return
    writable_store().delete([_key(name) for name in names])


def sweep_archives(active: Collection[str], *, now: datetime) -> int:
    """Remove old archives of none of the `active` names; their number."""
    limit, gone = now - _GRACE, []
    for each in current_store().listed(FOLDER):
        name = each.key.removeprefix(f"{FOLDER}/")
        # A bucket may have objects of others.
        if not _NAME.fullmatch(name):
            continue
        # Whoever ended a trial removes its archive by itself, or was killed before it did.
        if name not in active and (each.modified_at < limit or _is_over(name)):
            gone.append(name)
    remove_archives(gone)
    return len(gone)


def _is_over(name: str) -> bool:
    return Trial.objects.filter(archive=name, ended_at__isnull=False).exists()


def _key(name: str) -> str:
    return f"{FOLDER}/{name}"
