"""Command that imports downtimes of a calendar or GOCDB: shown first, stored with --store."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from wms.core.actors import Actor
from wms.core.errors import InvalidInput, PilotageError
from wms.core.models import User
from wms.exchange.downtimes.entries import MAX_BYTES, ImportOptions, site_names
from wms.exchange.downtimes.importing import (
    DowntimePlan,
    import_downtimes,
    preview_downtimes,
)


class Command(BaseCommand):
    help = "Show what a calendar or GOCDB's XML would change; with --store, store it as a whole."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="the document; - for the standard input")
        parser.add_argument("--user", required=True, help="who does it: a user name")
        parser.add_argument("--source", required=True, help="where it is from, such as gocdb")
        parser.add_argument(
            "--site", action="append", default=[], help="a name of a site, as CERN-PROD=CERN"
        )
        parser.add_argument("--default-site", default="", help="of entries without a known place")
        parser.add_argument("--zone", default="UTC", help="of times without one")
        parser.add_argument("--lead-time-s", type=int, default=0)
        parser.add_argument("--complete", action="store_true", help="cancel what is there no more")
        parser.add_argument(
            "--overwrite", action="store_true", help="also what people have changed since"
        )
        parser.add_argument("--store", action="store_true", help="store what is shown")
        parser.add_argument("--reason", default="", help="recorded with the import")

    def handle(self, *args: Any, file: str, **options: Any) -> None:
        user = User.objects.filter(username=options["user"], is_active=True).first()
        if user is None:
            raise CommandError(f"There is no user {options['user']}.")
        content, actor, now = _content_of(file), Actor.person(user), timezone.now()
        try:
            asked = _asked(options)
            plan = preview_downtimes(content, asked, actor=actor, now=now)
            self.stdout.write("\n".join(_plan_lines(plan)))
            if options["store"]:
                import_downtimes(
                    content,
                    asked,
                    token=plan.token,
                    actor=actor,
                    reason=options["reason"],
                    now=now,
                )
                self.stdout.write("stored")
        except InvalidInput as error:
            raise CommandError("\n".join(map(str, error.findings))) from error
        except PilotageError as error:
            raise CommandError(str(error)) from error


def _asked(options: dict[str, Any]) -> ImportOptions:
    return ImportOptions(
        source=options["source"],
        sites=site_names(options["site"]),
        default_site=options["default_site"],
        zone=options["zone"],
        lead_time_s=options["lead_time_s"],
        is_complete=options["complete"],
        overwrites=options["overwrite"],
    )


def _content_of(file: str) -> bytes:
    try:
        if file == "-":
            return sys.stdin.buffer.read(MAX_BYTES + 1)
        with Path(file).open("rb") as source:
            return source.read(MAX_BYTES + 1)
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from error


def _plan_lines(plan: DowntimePlan) -> Iterator[str]:
    """The plan: a line for each entry that is not as it was, and the counts."""
    for step in plan.steps:
        if step.outcome == "unchanged":
            continue
        where = step.site or step.place or "no place"
        times = f"{step.start:%Y-%m-%d %H:%M} to {step.end:%Y-%m-%d %H:%M} UTC"
        note = f": {step.note}" if step.note else ""
        yield f"{step.outcome}: {where} {times} ({step.reason}){note}"
    yield ", ".join(f"{count} {outcome}" for outcome, count in plan.counts.items())
