"""Command that tells whose the store of contents is, and makes it this installation's."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.cli.content_moves import MOVE
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.database.locks import advisory_lock
from wms.core.errors import PilotageError
from wms.core.storage.current import named_store
from wms.core.storage.owners import owner_of, take_over, this_installation

_ACTOR = Actor.system("command line")


class Command(BaseCommand):
    help = (
        "Tell whose the store of contents of the settings is. With --take-over it is this "
        "installation's from now on: after its database was restored, or moved to another server."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--take-over", action="store_true",
            help="when no service of the former owner runs any more: each would remove the "
            "other's contents",
        )  # fmt: skip
        parser.add_argument("--reason", default="", help="reason, for the audit trail")

    def handle(self, *args: Any, take_over: bool, reason: str, **options: Any) -> None:
        try:
            if take_over:
                self._take(reason.strip())
            self._tell()
        except (PilotageError, OSError) as error:
            raise CommandError(str(error)) from error

    def _take(self, reason: str) -> None:
        if not reason:
            raise CommandError("Say why, by --reason: nothing was changed.")
        store = named_store()
        with advisory_lock(MOVE) as is_held:
            if not is_held:
                raise CommandError("Contents are being moved: nothing was changed.")
            former = take_over(store)
        record_action(
            "take store over",
            target=store.name,
            actor=_ACTOR,
            reason=reason,
            facts={"former": former.address if former else None},
        )

    def _tell(self) -> None:
        store = named_store()
        owner = owner_of(store)
        if owner is None:
            self.stdout.write(f"Nobody has written to {store.name} yet.")
        elif owner.id == this_installation().id:
            self.stdout.write(f"This installation has {store.name}.")
        else:
            self.stdout.write(f"The installation at {owner.address} has {store.name}.")
