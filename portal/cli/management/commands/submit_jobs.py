"""Command that submits jobs from files on this host, as the page and the API do, or checks them.

Exit code 0: stored, or no faults; 1: faults or a refusal, and nothing was stored.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.shared.job_submissions import MAX_JSON_BYTES, description_of, json_object
from wms.core.actors import Actor
from wms.core.errors import Finding, InvalidInput, PilotageError
from wms.core.models import User
from wms.jobs.clusters.submit import ClusterSubmission, check_submission, submit_cluster


class Command(BaseCommand):
    help = "Submit jobs by a description in submit language or JSON, with the files that it names."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("description", type=Path, help="in submit language or JSON")
        parser.add_argument(
            "files", type=Path, nargs="*", help="programs, inputs, tables; below the same folder"
        )
        parser.add_argument("--user", required=True, help="whose jobs they are: a user name")
        parser.add_argument(
            "--options", default="", metavar="JSON", help='such as {"name": "masses"}'
        )
        parser.add_argument("--key", help="the same key and content give the same cluster")
        parser.add_argument("--check", action="store_true", help="tell the faults, store nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["user"], is_active=True).first()
        if user is None:
            raise CommandError(f"There is no user {options['user']}.")
        try:
            with ExitStack() as opened:
                self._go(user, _read(options, opened), only_check=options["check"])
        except InvalidInput as error:
            raise CommandError("\n".join(map(str, error.findings))) from error
        except (OSError, PilotageError) as error:
            raise CommandError(str(error)) from error

    def _go(self, user: User, submission: ClusterSubmission, *, only_check: bool) -> None:
        if only_check:
            checked = check_submission(submission, owner=user)
            if checked.findings:
                raise InvalidInput(checked.findings)
            self._tell(checked.warnings)
            self.stdout.write(f"no fault; it makes {checked.size} jobs")
            return
        done = submit_cluster(submission, owner=user, actor=Actor.person(user))
        self._tell(done.warnings)
        was = "is submitted" if done.is_new else "was submitted before"
        self.stdout.write(f"cluster {done.cluster.pk} of {done.cluster.size} jobs {was}")

    def _tell(self, warnings: Sequence[Finding]) -> None:
        for warning in warnings:
            self.stderr.write(f"warning: {warning}")


def _read(options: dict[str, Any], opened: ExitStack) -> ClusterSubmission:
    """Submission of the files. Raises OSError and InvalidInput."""
    path: Path = options["description"]
    given = options["options"]
    files: dict[str, BinaryIO] = {
        os.path.relpath(file, path.parent): opened.enter_context(file.open("rb"))
        for file in options["files"]
    }
    content = opened.enter_context(path.open("rb")).read(MAX_JSON_BYTES + 1)
    return ClusterSubmission(
        description=description_of(content, name=path.name),
        options=json_object(given, field="options") if given else {},
        files=files,
        description_name=path.name,
        idempotency_key=options["key"],
    )
