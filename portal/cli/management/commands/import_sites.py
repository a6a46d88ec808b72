"""Command that brings sites to the state of a YAML document: shown first, stored with --store."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from wms.core.actors import Actor
from wms.core.errors import InvalidInput, PilotageError
from wms.core.models import User
from wms.exchange.site_import import ImportPlan, import_sites, preview_import
from wms.exchange.yaml_reader import MAX_BYTES

_REFUSED = 1


class Command(BaseCommand):
    help = "Show what a YAML document of sites would change; with --store, store it as a whole."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="the document; - for the standard input")
        parser.add_argument("--user", required=True, help="who does it: a user name")
        parser.add_argument("--store", action="store_true", help="store what is shown")
        parser.add_argument("--reason", default="", help="recorded with each change")

    def handle(self, *args: Any, file: str, **options: Any) -> None:
        user = User.objects.filter(username=options["user"], is_active=True).first()
        if user is None:
            raise CommandError(f"There is no user {options['user']}.")
        text, actor = _text_of(file), Actor.person(user)
        try:
            plan = preview_import(text, actor=actor)
            self.stdout.write("\n".join(_plan_lines(plan, file)))
            if options["store"] and not plan.is_refused:
                import_sites(text, token=plan.token, actor=actor, reason=options["reason"])
                self.stdout.write("stored")
        except InvalidInput as error:
            places = (f"{file}:{each.line or 1}: {each.message}" for each in error.findings)
            raise CommandError("\n".join(places)) from error
        except PilotageError as error:
            raise CommandError(str(error)) from error
        if plan.is_refused:
            sys.exit(_REFUSED)


def _text_of(file: str) -> str:
    try:
        content = sys.stdin.buffer.read(MAX_BYTES + 1) if file == "-" else _read(Path(file))
        return content.decode("utf-8-sig")
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{file} is not UTF-8") from error


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _plan_lines(plan: ImportPlan, file: str) -> Iterator[str]:
    """The plan, a line for each row that changes or is refused, and for each field of it."""
    for step in plan.steps:
        if step.outcome == "unchanged":
            continue
        yield f"{file}:{step.line}: {step.outcome}: {step.kind} {step.title}"
        for fault in step.faults:
            yield f"{file}:{fault.line}:   {fault.message}"
        for change in step.changes if step.outcome == "changed" else ():
            yield f"    {change.name}: {json.dumps(change.old)} -> {json.dumps(change.new)}"
    yield ", ".join(f"{count} {outcome}" for outcome, count in plan.counts.items())
