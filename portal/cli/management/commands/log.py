"""Command that shows what a job has printed, and follows it while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from portal.shared.readable_logs import Log, attempt_of, log_kinds, log_of_attempt
from wms.core.errors import PilotageError
from wms.core.models import User
from wms.jobs.output.lines import WINDOW_BYTES, window_before
from wms.jobs.output.texts import chunks_of
from wms.jobs.selectors import find_job

_LOOK_EVERY_S = 2.0


class Command(BaseCommand):
    help = "Print the end of a job's output as its user may read it; with --follow as it grows."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("job", type=int)
        parser.add_argument("--user", required=True, help="who reads it: a user name")
        parser.add_argument("--stream", choices=log_kinds(), default=log_kinds()[0])
        parser.add_argument("--attempt", type=int, help="default: the latest")
        parser.add_argument("--all", action="store_true", help="from the beginning")
        parser.add_argument("--follow", action="store_true", help="until the attempt has ended")

    def handle(self, *args: Any, job: int, **options: Any) -> None:
        user = User.objects.filter(username=options["user"], is_active=True).first()
        if user is None:
            raise CommandError(f"There is no user {options['user']}.")

        def look() -> Log:
            found = find_job(user, job)
            number = options["attempt"] or found.attempt_number
            return log_of_attempt(attempt_of(found, number), options["stream"], now=timezone.now())

        try:
            for piece in followed(
                look,
                is_whole=options["all"],
                wait=(lambda: time.sleep(_LOOK_EVERY_S)) if options["follow"] else None,
            ):
                self.stdout.write(piece.decode("utf-8", errors="replace"), ending="")
        except PilotageError as error:
            raise CommandError(str(error)) from error


def followed(
    look: Callable[[], Log], *, is_whole: bool, wait: Callable[[], None] | None
) -> Iterator[bytes]:
    """The end of a log, or all of it, then what is added until it has ended; a piece at a time.

    A line tells of what is not here.

    Without `wait`, which is called before each further look, only what is here now.
    """
    log = look()
    if log.missing and (wait is None or not log.is_growing):
        raise CommandError(log.missing)
    place = 0 if is_whole else window_before(log.text, log.text.size_bytes).start
    while True:
        yield from chunks_of(log.text, WINDOW_BYTES, start=place)
        place = max(place, log.text.size_bytes)
        if wait is None or not log.is_growing:
            return
        wait()
        log = look()
