"""Second half of a restore, on the tables that came back: all of it can be done again."""

from __future__ import annotations

from pathlib import Path

from django.core.management import call_command
from django.db import connection, transaction
from django.utils import timezone

from portal.cli.backups.contents import put_contents_back
from portal.cli.backups.manifest import Manifest
from portal.cli.backups.progress import Tell
from portal.cli.backups.sql import GATHER_STATISTICS
from portal.cli.reconciliation import lines_of
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.storage.current import current_store, folder_store, named_store, scratch_folder
from wms.core.storage.owners import take_over
from wms.recovery.account import reconcile
from wms.recovery.returning import note_return

_ACTOR = Actor.system("command line")


def follow_restore(folder: Path, manifest: Manifest, *, tell: Tell) -> None:
    """Migrate the tables, put contents back, take the store over, and account for what is open.

    From then on the installation that was backed up, should it still run on the same store, writes
    nothing there any more.
    """
    tell("migrating the tables")
    call_command("migrate", interactive=False, verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute(GATHER_STATISTICS)
    if manifest.has_contents:
        tell("putting the contents of files back")
        copied = put_contents_back(folder, folder_store(), scratch=scratch_folder(), tell=tell)
        if copied.spoilt:
            tell(f"spoilt in the backup, and left out: {', '.join(copied.spoilt)}")
    _take_store(folder)
    tell("accounting for what was open")
    note_return(manifest.snapshot_at, origin=f"backup {folder}", actor=_ACTOR, now=timezone.now())
    for line in lines_of(reconcile(current_store(), actor=_ACTOR)):
        tell(line)


@transaction.atomic
def _take_store(folder: Path) -> None:
    store = named_store()
    former = take_over(store)
    record_action(
        "take store over", target=store.name, actor=_ACTOR, reason=f"restored from {folder}",
        facts={"former": former.address if former else None},
    )  # fmt: skip
