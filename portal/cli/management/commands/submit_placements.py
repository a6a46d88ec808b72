"""Command that submits placement requests from a file on this host, as page and API do, or checks.

Exit code 0: stored, or no faults; 1: faults or a refusal, and nothing was stored.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from wms.core.actors import Actor
from wms.core.errors import InvalidInput, PilotageError
from wms.core.models import User
from wms.dags.submission.checking import read_text
from wms.placement.services import MAX_TEXT_BYTES, check_requests, submit_requests


class Command(BaseCommand):
    help = "Submit placement requests: the ads of a file, one or many."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("requests", type=Path, help="a file of ads")
        parser.add_argument("--user", required=True, help="whose requests they are: a user name")
        parser.add_argument("--group", default="", help="one of the user's groups")
        parser.add_argument("--key", help="the same key and content give the same requests")
        parser.add_argument("--check", action="store_true", help="tell the faults, store nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["user"], is_active=True).first()
        if user is None:
            raise CommandError(f"There is no user {options['user']}.")
        try:
            text = _read(options["requests"])
            # Here, because faults are told with the name of the file.
            found = check_requests(text, file=options["requests"].name)
            if options["check"]:
                self.stdout.write(f"no fault in {len(found)} requests")
                return
            done = submit_requests(
                text,
                actor=Actor.person(user),
                owner=user,
                group=options["group"],
                idempotency_key=options["key"],
            )
        except InvalidInput as error:
            raise CommandError("\n".join(map(str, error.findings))) from error
        except (OSError, PilotageError) as error:
            raise CommandError(str(error)) from error
        was = "submitted" if done.is_new else "submitted before"
        self.stdout.write(f"{was}: {' '.join(map(str, done.ids))}")


def _read(path: Path) -> str:
    """Text of the file. Raises OSError and InvalidInput."""
    with path.open("rb") as stream:
        text, faults = read_text(stream, file=path.name, limit_bytes=MAX_TEXT_BYTES)
    if faults:
        raise InvalidInput(faults)
    return text
