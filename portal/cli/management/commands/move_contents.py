"""Command that moves contents of files from the folder to the bucket of the settings, or back."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.cli.content_moves import missing_in, move_contents
from portal.shared.sizes import size
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.conf import conf
from wms.core.errors import PilotageError
from wms.core.storage.copying import Copied
from wms.core.storage.current import bucket_store, folder_store
from wms.core.storage.protocol import ObjectStore

_ACTOR = Actor.system("command line")


class Command(BaseCommand):
    help = (
        "Copy contents of files from the folder to the bucket of PILOTAGE_BLOBS_S3_*, or back. "
        "What is there already is passed over: it can be stopped and repeated."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--to", choices=["bucket", "folder"], required=True)
        parser.add_argument(
            "--remove-originals", action="store_true",
            help="remove what both have from where it was: when no service uses that any more",
        )  # fmt: skip

    def handle(self, *args: Any, to: str, remove_originals: bool, **options: Any) -> None:
        now = conf()
        if now.bucket is None:
            raise CommandError("No bucket is named: set PILOTAGE_BLOBS_S3_BUCKET and its like.")
        stores: list[ObjectStore] = [folder_store(), bucket_store(now.bucket, now.blobs_dir)]
        source, target = stores if to == "bucket" else stores[::-1]
        try:
            copied = move_contents(source, target, removes=remove_originals)
            missing = missing_in(target)
        except (PilotageError, OSError) as error:
            raise CommandError(f"{error} What was copied stays: begin again.") from error
        record_action(
            "move contents",
            target=to,
            actor=_ACTOR,
            facts={"copied": copied.objects, "bytes": copied.size_bytes, "removed": copied.removed},
        )
        self.stdout.write(_told(copied))
        _refuse_faults(copied, missing)


def _told(copied: Copied) -> str:
    removed = f", {copied.removed} removed where they were" if copied.removed else ""
    return (
        f"{copied.objects} copied ({size(copied.size_bytes)}), {copied.known} were there{removed}."
    )


def _refuse_faults(copied: Copied, missing: list[str]) -> None:
    faults = []
    if copied.spoilt:
        faults.append(f"spoilt, and not copied: {', '.join(copied.spoilt)}")
    if missing:
        faults.append(f"named by rows, and not there: {', '.join(missing)}")
    if faults:
        raise CommandError("; ".join(faults))
