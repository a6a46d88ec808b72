"""Check of a backup against its manifest: is each file there, and what it was."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from portal.cli.backups.contents import faults_of_contents
from portal.cli.backups.manifest import DUMP, BackupFault, Manifest, read_manifest, sha256_of
from portal.cli.backups.postgres_tools import contents_of_dump
from portal.cli.backups.progress import Progress, Tell

_MOST_TOLD: Final = 20


def checked(folder: Path, *, reads_contents: bool, tell: Tell) -> Manifest:
    """The manifest of a backup that is whole. Raises BackupFault with what is damaged.

    With `reads_contents` each content is read; else their sizes are looked at.
    """
    manifest = read_manifest(folder)
    faults = _faults_of_files(folder, manifest, tell)
    if not faults:
        # The lists are what they were, so that they can be gone by.
        if manifest.has_contents:
            faults = faults_of_contents(folder, manifest, reads=reads_contents, tell=tell)
        contents_of_dump(folder / DUMP)
    if faults:
        told = "; ".join(faults[:_MOST_TOLD])
        more = f"; and {len(faults) - _MOST_TOLD} more" if len(faults) > _MOST_TOLD else ""
        raise BackupFault(f"{folder} is damaged: {told}{more}. Use another backup.")
    return manifest


def _faults_of_files(folder: Path, manifest: Manifest, tell: Tell) -> list[str]:
    progress, faults = Progress("files", tell), []
    for each in manifest.files:
        path = folder / each.path
        if not path.is_file():
            faults.append(f"{each.path} is not there")
        elif path.stat().st_size != each.size_bytes:
            faults.append(f"{each.path} has {path.stat().st_size} bytes, not {each.size_bytes}")
        elif sha256_of(path, lambda read: progress.add(read, count=0)) != each.sha256:
            faults.append(f"{each.path} has another SHA-256")
    return faults
