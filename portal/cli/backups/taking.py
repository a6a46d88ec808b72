"""Taking of a backup while everything runs: one snapshot of the database, then the contents.

Whatever the snapshot names was stored before it and is removed a day later at the earliest, so a
copy that is made afterwards, within a day, has it. Files that grow are copied first of all, as soon
as the snapshot says how far they count: their ends may come at any moment.

The backup is made under a hidden name and renamed when it is whole and on the disk.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

from django.conf import settings
from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from portal.cli.backups.contents import copy_contents, sizes_of, write_named, write_others
from portal.cli.backups.manifest import (
    CONTENTS,
    DUMP,
    NAMED,
    OTHERS,
    SPOILT,
    UNFINISHED,
    BackupFault,
    FileFacts,
    Manifest,
    read_manifest,
)
from portal.cli.backups.postgres_tools import dump, environment_of
from portal.cli.backups.progress import Tell
from portal.cli.backups.secret_files import copy_secrets, key_marks
from portal.cli.backups.sql import EXPORT_SNAPSHOT, ISOLATE_SNAPSHOT
from portal.config.version import product_version
from portal.embedded.private import make_private_folder
from wms.core.conf import conf
from wms.core.storage.copying import Copied, copy_folder, copy_growing
from wms.core.storage.current import folder_store, named_store
from wms.core.storage.folder import FolderStore, sync_path
from wms.core.storage.owners import this_installation
from wms.dags.trials.archives import FOLDER as TRIALS
from wms.jobs.models import Blob
from wms.jobs.output.streams import STREAM_EXTENTS
from wms.jobs.uploads.selectors import UPLOAD_EXTENTS
from wms.pilots.protocol.logs import LOG_EXTENTS

_PARTIAL: Final = ".partial"


def take_backup(target: Path, *, with_secrets: bool, tell: Tell) -> Manifest:
    """Back the installation up into a new folder. Raises BackupFault and OSError; then none is
    left that looks whole."""
    if target.exists():
        raise BackupFault(f"{target} exists: give the name of a new folder.")
    if not target.parent.is_dir():
        raise BackupFault(f"There is no folder {target.parent}: make it first.")
    _require_sessions()
    remove_left(target.parent)
    with _partial(target) as folder:
        manifest = _written(folder, _latest(target.parent), with_secrets=with_secrets, tell=tell)
        (folder / UNFINISHED).unlink()
        _sync_all(folder)
        folder.rename(target)
        sync_path(target.parent)
    return manifest


def _require_sessions() -> None:
    """Raise BackupFault where sessions are handed out for a transaction: a dump needs a whole one.

    What it sets for its session would be left to those that get it next.
    """
    if connection.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS"):
        raise BackupFault(
            "PILOTAGE_DATABASE_POOLED is set: for this command unset it, and give the address of "
            "the database's server itself in DATABASE_URL."
        )


def _written(folder: Path, former: Path | None, *, with_secrets: bool, tell: Tell) -> Manifest:
    manifest = _snapshot(folder, tell)
    linked = 0
    if manifest.has_contents:
        # They stay for a month after their pilots: no snapshot has to be held for them.
        copy_growing(folder_store(), FolderStore(folder / CONTENTS), LOG_EXTENTS, Copied())
        tell("copying the contents of files")
        _, linked = copy_contents(folder_store(), folder, former=former, tell=tell)
        count, size_bytes, missing = sizes_of(folder)
        manifest = replace(
            manifest,
            contents=count, contents_bytes=size_bytes, linked=linked, missing=missing,
            other_contents=write_others(folder),
        )  # fmt: skip
    secrets = copy_secrets(folder, settings.VAR_DIR) if with_secrets else []
    lists = [NAMED, *([OTHERS] if manifest.has_contents else [])]
    whole = replace(
        manifest,
        secrets=secrets,
        key_marks=key_marks(settings.RUN_DIR),
        files=[FileFacts.of(folder, path) for path in (DUMP, *lists, *secrets)],
        finished_at=timezone.now().isoformat(),
    )
    whole.write(folder)
    return whole


@transaction.atomic
def _snapshot(folder: Path, tell: Tell) -> Manifest:
    """Dump the database, and copy what grows, as one moment has both."""
    with connection.cursor() as cursor:
        cursor.execute(ISOLATE_SNAPSHOT)
        cursor.execute(EXPORT_SNAPSHOT)
        snapshot, taken_at, server_version = cursor.fetchone()
    own, store, has_contents = this_installation(), named_store(), conf().bucket is None
    if has_contents:
        tell("copying files that grow")
        _copy_growing(folder)
    tell("dumping the database")
    environment = environment_of(connection.settings_dict)
    dump(folder / DUMP, snapshot=snapshot, environment=environment, tell=tell)
    (folder / DUMP).chmod(0o600)
    write_named(folder, Blob.objects.filter(unnamed_since=None))
    return Manifest(
        taken_at=_told(taken_at),
        version=product_version(),
        installation_id=own.id,
        address=own.address,
        server_version=server_version,
        migrations=_migrations(),
        store_kind="folder" if has_contents else "bucket",
        store_name=store.name,
        files=[],
    )


def _told(moment: datetime) -> str:
    return moment.isoformat()


def _migrations() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for app, name in sorted(MigrationRecorder(connection).applied_migrations()):
        found.setdefault(app, []).append(name)
    return found


def _copy_growing(folder: Path) -> None:
    source, target, copied = folder_store(), FolderStore(folder / CONTENTS), Copied()
    scratch = target.base / "incoming"
    scratch.mkdir(parents=True, mode=0o700)
    for growing in (STREAM_EXTENTS, UPLOAD_EXTENTS):
        copy_growing(source, target, growing, copied)
    copy_folder(source, target, TRIALS, copied, scratch=scratch, hashed=False)


@contextmanager
def _partial(target: Path) -> Iterator[Path]:
    """A hidden folder for a backup that is made; it is removed unless it got its name."""
    folder = make_private_folder(target.with_name(f".{target.name}{_PARTIAL}"))
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        # So long as this process lives, others see that somebody is at it.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise BackupFault(f"Another process is writing {target}.") from None
    try:
        (folder / UNFINISHED).touch(mode=0o600)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def remove_left(parent: Path) -> None:
    """Remove what was left of backups whose makers were killed."""
    for folder in parent.glob(f".*{_PARTIAL}"):
        try:
            is_left = (folder / UNFINISHED).exists() or not any(folder.iterdir())
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            # Of another account, or no folder.
            continue
        try:
            if not is_left:
                continue
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            pass
        finally:
            os.close(descriptor)


def _own_backups(parent: Path) -> list[Path]:
    """Whole backups of this installation in a folder, the latest first."""
    own, found = this_installation().id, []
    for folder in parent.iterdir():
        if folder.name.startswith(".") or not folder.is_dir():
            continue
        try:
            manifest = read_manifest(folder)
        except BackupFault:
            continue
        if manifest.installation_id == own:
            found.append((manifest.snapshot_at, folder))
    return [folder for _, folder in sorted(found, reverse=True)]


def _latest(parent: Path) -> Path | None:
    """The latest backup in a folder that no check has found spoilt."""
    return next((each for each in _own_backups(parent) if not (each / SPOILT).exists()), None)


def remove_old(parent: Path, *, keep: int) -> list[Path]:
    """Remove all but the latest backups of this installation in a folder; which.

    Backups of others, and of this one before it was restored, stay.
    """
    old = _own_backups(parent)[keep:]
    for folder in old:
        # One that is half removed does not look whole, and the next backup removes the rest.
        hidden = folder.with_name(f".{folder.name}{_PARTIAL}")
        (folder / UNFINISHED).touch()
        folder.rename(hidden)
        shutil.rmtree(hidden, ignore_errors=True)
    return old


def _sync_all(folder: Path) -> None:
    """Have all folders of a backup on the disk, and its own files; contents are there already."""
    for path in folder.iterdir():
        if path.is_file():
            sync_path(path)
    for path in [*(each for each in folder.rglob("*") if each.is_dir()), folder]:
        sync_path(path)
