"""`manage.py restore`: fill an empty installation with its own PostgreSQL from a backup.

All that can be found out before is found out before anything is changed. While it is at it a mark
keeps `manage.py up` from starting; one that was killed is begun anew by the same command. At the
end the store belongs to this installation, and what was open is accounted for (`wms.recovery`).
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from django.core.exceptions import ImproperlyConfigured
from django.db import Error

from portal.cli.backups.checking import checked
from portal.cli.backups.manifest import DUMP, BackupFault, Manifest
from portal.cli.backups.postgres_tools import environment_of_url, restore
from portal.cli.backups.secret_files import put_back, require_keys
from portal.cli.state_directory import BASE, StateDirectory
from portal.cli.up import PREVENTIONS, take_lock
from portal.cli.without_servers import NOWHERE
from portal.embedded.ports import free_ports
from portal.embedded.postgres import Postgres
from portal.embedded.private import kept_secret, write_private
from portal.embedded.readiness import NotReady
from portal.embedded.running import running_postgres
from wms.core.errors import PilotageError
from wms.core.storage.protocol import ObjectStore

#: While it is filled nobody else uses it; it is synced when it stops.
_FILLING: Final = {"max_wal_size": "4GB", "maintenance_work_mem": "256MB", "autovacuum": "off"}


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan of a restore: the backup, and where to."""

    folder: Path
    manifest: Manifest
    place: StateDirectory


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="manage.py restore", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of the backup")
    parser.add_argument(
        "--without-keys", action="store_true",
        help="go on without keys that the backup needs: what they seal is lost",
    )  # fmt: skip
    parser.add_argument(
        "--take-bucket", action="store_true",
        help="take the bucket that the backed-up installation has: that one writes nothing more",
    )  # fmt: skip
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    place = StateDirectory.from_environment()
    try:
        _require_embedded()
        lock = take_lock(place)
        try:
            plan = _plan(
                given.folder.absolute(), place,
                without_keys=given.without_keys, takes_bucket=given.take_bucket,
            )  # fmt: skip
            _restore(plan)
        finally:
            os.close(lock)
    except (
        *PREVENTIONS, BackupFault, ImproperlyConfigured, NotReady, PilotageError, Error, OSError,
    ) as error:  # fmt: skip
        sys.stderr.write(f"restore: {error}\n{_what_now(place)}")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write(f"restore: stopped.\n{_what_now(place)}")
        return 128 + signal.SIGINT
    return 0


def _what_now(place: StateDirectory) -> str:
    if place.is_restoring.exists():
        return "Nothing starts on what is half restored: mend that, and run restore again.\n"
    return "Nothing was changed.\n"


def _require_embedded() -> None:
    if "DATABASE_URL" in os.environ:
        raise BackupFault(
            "DATABASE_URL names a server of your own: restore that with its own tools, then run "
            "`manage.py take_store --take-over` and `manage.py reconcile --back-to`."
        )


def _plan(folder: Path, place: StateDirectory, *, without_keys: bool, takes_bucket: bool) -> Plan:
    """The plan, if nothing speaks against it. Raises BackupFault."""
    _tell("checking the backup")
    manifest = checked(folder, reads_contents=False, tell=_tell)
    if newer := _unknown_migrations(manifest):
        raise BackupFault(
            f"The backup is of a newer release ({manifest.version or 'unknown'}): this one does "
            f"not know {', '.join(newer)}. Install that release, or a later one."
        )
    _require_bucket(manifest)
    if not manifest.has_contents:
        _require_bucket_of(manifest, _bucket_store(place), is_taken=takes_bucket)
    _require_empty(place, manifest)
    if not without_keys:
        require_keys(manifest.key_marks, folder=folder, run=place.run)
    return Plan(folder, manifest, place)


def _unknown_migrations(manifest: Manifest) -> list[str]:
    """Migrations of the backup that this release neither has nor has replaced by others."""
    unknown = []
    for app, names in manifest.migrations.items():
        files = list((BASE / "wms" / app / "migrations").glob("*.py"))
        known = {path.stem for path in files}
        told = "".join(path.read_text(encoding="utf-8") for path in files)
        # Of apps of packages nothing is known; their versions come with the release.
        for name in names if files else ():
            if name not in known and f'"{name}"' not in told:
                unknown.append(f"{app}.{name}")
    return unknown


def _require_empty(place: StateDirectory, manifest: Manifest) -> None:
    """Refuse an installation that has data; what a broken-off restore has left is none."""
    if place.is_restoring.exists():
        return
    data = place.var / "postgres" / "data"
    if data.exists():
        raise BackupFault(
            f"The installation in {place.var} has a database ({data}). Restore into another "
            f"PILOTAGE_VAR, or move {data.parent} away, if it is to be given up."
        )
    if manifest.has_contents and (other := _other_owner(place.var / "blobs", manifest)):
        raise BackupFault(
            f"{place.var / 'blobs'} has contents of {other}, and not those of the backup: move "
            "them away."
        )


def _require_bucket(manifest: Manifest) -> None:
    has_bucket = bool(os.environ.get("PILOTAGE_BLOBS_S3_BUCKET"))
    if has_bucket and manifest.has_contents:
        raise BackupFault(
            "The backup has its contents in a folder, and PILOTAGE_BLOBS_S3_BUCKET is set: restore "
            "without it, and then run `manage.py move_contents --to bucket`."
        )
    if not has_bucket and not manifest.has_contents:
        raise BackupFault(
            f"The contents are in {manifest.store_name}: set PILOTAGE_BLOBS_S3_BUCKET and its like."
        )


def _bucket_store(place: StateDirectory) -> ObjectStore:
    """The bucket of the settings, which are not loaded yet: they need the database."""
    from portal.config.buckets import blobs_s3
    from wms.core.conf import bucket_conf
    from wms.core.storage.current import bucket_store

    bucket = bucket_conf(blobs_s3())
    assert bucket is not None
    return bucket_store(bucket, place.var / "blobs")


def _require_bucket_of(manifest: Manifest, store: ObjectStore, *, is_taken: bool) -> None:
    """Refuse a bucket whose installation would be shut out without anybody's having said so."""
    from wms.core.storage.owners import owner_of

    owner = owner_of(store)
    if owner is not None and owner.id != manifest.installation_id:
        raise BackupFault(
            f"{store.name} belongs to another installation than the backup's, the one at "
            f"{owner.address}."
        )
    if store.name == manifest.store_name and not is_taken:
        raise BackupFault(
            f"{store.name} is the one of the installation at {manifest.address}: restored here, "
            "that one may write nothing there any more. If it is gone for good, add --take-bucket; "
            "for a trial name a copy of the bucket."
        )


def _other_owner(blobs: Path, manifest: Manifest) -> str:
    """Whose contents a folder has, if they are not those of the backup's installation."""
    from wms.core.storage.folder import FolderStore
    from wms.core.storage.owners import owner_of

    store = FolderStore(blobs)
    if not set(store.folders()) - {"incoming"}:
        return ""
    owner = owner_of(store)
    if owner is None:
        return "nobody that is known"
    return "" if owner.id == manifest.installation_id else owner.address


def _restore(plan: Plan) -> None:
    place = plan.place
    write_private(place.is_restoring, f"{plan.folder}\n")
    shutil.rmtree(place.var / "postgres", ignore_errors=True)
    put_back(plan.folder, place.var)
    kept_secret(place.run / "secret_key", length_bytes=48)
    kept_secret(place.run / "credential_keys", length_bytes=32)
    [port] = free_ports(1)
    postgres = Postgres.at(place.var / "postgres", port)
    _tell("making the database")
    postgres.prepare()
    with running_postgres(postgres, place.log / "restore.log", **_FILLING):
        _tell("restoring the database")
        environment = environment_of_url(postgres.url)
        restore(plan.folder / DUMP, environment=environment, tell=_tell)
        _finish(plan, postgres.url)
    place.is_restoring.unlink()
    _tell(
        f"Restored: the state of {plan.manifest.taken_at}. `manage.py up` starts it; then "
        "`manage.py reconcile` tells how what was open goes on."
    )


def _finish(plan: Plan, url: str) -> None:
    """All that needs the tables: migrations, contents, the store's mark, and the account."""
    os.environ["DATABASE_URL"] = url
    os.environ.setdefault("REDIS_URL", NOWHERE["REDIS_URL"])
    import django

    django.setup()
    from django.db import connections

    from portal.cli.backups.following import follow_restore

    try:
        follow_restore(plan.folder, plan.manifest, tell=_tell)
    finally:
        connections.close_all()


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
