"""Steer jobs and pilots from a shell: kill, peek, drain, remove, stop after a job."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from wms.core.actors import Actor
from wms.core.errors import PilotageError
from wms.core.models import User
from wms.jobs.services import kill_job, peek_at_job
from wms.pilots.services import drain_pilot, remove_pilot, stop_after_job


class Command(BaseCommand):
    help = "Steer one job or one pilot, as the pages do; recorded with the user's name."

    def add_arguments(self, parser: CommandParser) -> None:
        commands = parser.add_subparsers(dest="what", required=True)
        for name, about, argument in (
            ("kill-job", "end a job for good", "job"),
            ("peek-job", "have its pilot send now what it has printed", "job"),
            ("stop-after-job", "let the pilot of this job take no more", "job"),
            ("drain-pilot", "let a pilot take no more jobs", "pilot"),
            ("remove-pilot", "end a pilot at once; its jobs run again elsewhere", "pilot"),
        ):
            command = commands.add_parser(name, help=about)
            command.add_argument(argument, type=UUID if argument == "pilot" else int)
            command.add_argument("--user", required=True, help="who does it: a user name")
            if name != "peek-job":
                command.add_argument("--reason", required=True, help="recorded with the change")

    def handle(self, *args: Any, what: str, **options: Any) -> None:
        user = User.objects.filter(username=options["user"], is_active=True).first()
        if user is None:
            raise CommandError(f"There is no user {options['user']}.")
        try:
            self.stdout.write(_carry_out(what, Actor.person(user), options))
        except PilotageError as error:
            raise CommandError(str(error)) from error


def _carry_out(what: str, actor: Actor, options: dict[str, Any]) -> str:
    """Do it and tell what was done."""
    if what == "kill-job":
        job = kill_job(options["job"], actor=actor, reason=options["reason"])
        return f"job {job.pk} is {job.state}"
    if what == "peek-job":
        attempt = peek_at_job(options["job"], actor=actor, now=timezone.now())
        return f"the pilot of attempt {attempt.number} will be asked with its next heartbeat"
    if what == "remove-pilot":
        pilot = remove_pilot(options["pilot"], actor=actor, reason=options["reason"])
        return f"pilot {pilot.uuid} is {pilot.state}"
    if what == "stop-after-job":
        pilot = stop_after_job(options["job"], actor=actor, reason=options["reason"])
    else:
        pilot = drain_pilot(options["pilot"], actor=actor, reason=options["reason"])
    return f"pilot {pilot.uuid} takes no more jobs"
