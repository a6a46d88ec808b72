"""Command that accounts for what is open after the database went back to an earlier state."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from portal.cli.reconciliation import lines_of
from wms.core.actors import Actor
from wms.core.errors import PilotageError
from wms.core.storage.current import current_store
from wms.recovery.account import reconcile
from wms.recovery.returning import note_return

_ACTOR = Actor.system("command line")


class Command(BaseCommand):
    help = (
        "After a restore: tell what goes on, what may be done twice and what is lost, and hold "
        "what needs contents that are lost. It can be repeated at any time."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--back-to", type=_moment, metavar="TIME",
            help="the database was restored by other means than `restore`, to this time, as "
            "2026-01-31T12:00:00Z; once, before services start",
        )  # fmt: skip
        parser.add_argument("--reason", default="", help="where that came from, for the audit")
        parser.add_argument("--json", action="store_true", help="the account as JSON")

    def handle(
        self, *args: Any, back_to: datetime | None, reason: str, json: bool, **options: Any
    ) -> None:
        try:
            if back_to is not None:
                if not reason.strip():
                    raise CommandError("Say where the database came from, by --reason.")
                note_return(back_to, origin=reason.strip(), actor=_ACTOR, now=timezone.now())
            account = reconcile(current_store(), actor=_ACTOR)
        except (PilotageError, OSError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(_json(account.as_json()) if json else "\n".join(lines_of(account)))


def _json(values: Any) -> str:
    return json.dumps(values, indent=1)


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
