"""Command that backs the installation up while it runs, or checks a backup."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.cli.backups.checking import checked
from portal.cli.backups.manifest import MANIFEST, SPOILT, BackupFault, Manifest
from portal.cli.backups.secret_files import KEYS
from portal.cli.backups.taking import remove_old, take_backup
from portal.shared.sizes import size
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import PilotageError

_ACTOR = Actor.system("command line")
_MOST_TOLD = 100


class Command(BaseCommand):
    help = (
        "Back the database and the contents of files up into a new folder, while everything runs; "
        "with --check, verify a backup."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="folder of the backup, which is made")
        parser.add_argument(
            "--with-secrets", action="store_true",
            help="put keys and tokens into it, too: whoever reads it has them then",
        )  # fmt: skip
        parser.add_argument(
            "--keep", type=int, metavar="N",
            help="afterwards, remove all but the N latest backups beside it of this installation",
        )  # fmt: skip
        parser.add_argument(
            "--check", action="store_true", help="verify the backup, to its last byte; take none"
        )

    def handle(
        self, *args: Any, folder: Path, with_secrets: bool, keep: int | None, check: bool,
        **options: Any,
    ) -> None:  # fmt: skip
        if keep is not None and keep < 1:
            raise CommandError("--keep is how many backups stay: 1 or more.")
        # In order, so that what is half made is removed.
        former = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            if check:
                self._check(folder.absolute())
            else:
                self._take(folder.absolute(), with_secrets=with_secrets, keep=keep)
        except (BackupFault, PilotageError) as error:
            raise CommandError(str(error)) from None
        except OSError as error:
            was_made = "" if check else " No backup was made."
            raise CommandError(f"{error}.{was_made}") from error
        except KeyboardInterrupt:
            raise CommandError("Stopped: no backup was made.") from None
        finally:
            signal.signal(signal.SIGTERM, former)

    def _check(self, folder: Path) -> None:
        try:
            manifest = checked(folder, reads_contents=True, tell=self._tell)
        except BackupFault:
            if (folder / MANIFEST).exists():
                # The next backup shares no file with it.
                (folder / SPOILT).touch()
            raise
        (folder / SPOILT).unlink(missing_ok=True)
        self.stdout.write(f"The backup of {manifest.taken_at} is whole: {_told(manifest)}.")
        self._warn(manifest)

    def _take(self, folder: Path, *, with_secrets: bool, keep: int | None) -> None:
        manifest = take_backup(folder, with_secrets=with_secrets, tell=self._tell)
        record_action(
            "back up",
            target=str(folder),
            actor=_ACTOR,
            facts={"taken_at": manifest.taken_at, "has_secrets": bool(manifest.secrets)},
        )
        self.stdout.write(f"{folder}: {_told(manifest)}.")
        self._warn(manifest)
        if not manifest.secrets:
            names = ", ".join(key.name for key in KEYS if key.name in manifest.key_marks)
            self.stdout.write(f"Not in it, to be kept apart: {names}, and tokens of factories.")
        try:
            for old in remove_old(folder.parent, keep=keep) if keep else ():
                self.stdout.write(f"Removed: {old}")
        except OSError as error:
            told = f"The backup was made, but old ones cannot be removed: {error}"
            raise CommandError(told) from error

    def _warn(self, manifest: Manifest) -> None:
        if manifest.missing:
            first = ", ".join(manifest.missing[:_MOST_TOLD])
            self.stderr.write(
                f"The database names {len(manifest.missing)} contents that were not in the store, "
                f"or spoilt there: {first}"
            )

    def _tell(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def _told(manifest: Manifest) -> str:
    dump = manifest.files[0].size_bytes if manifest.files else 0
    if not manifest.has_contents:
        return f"database {size(dump)}; contents stay in {manifest.store_name}"
    return (
        f"database {size(dump)}, {manifest.contents} contents "
        f"({size(manifest.contents_bytes)}, {manifest.linked} shared with the backup before), "
        f"{manifest.other_contents} files that grow"
    )
