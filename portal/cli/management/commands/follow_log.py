"""Command that follows a DAG which runs under HTCondor: stores it, then reads its job event log.

It reads on until the DAG has ended, or once; later it can go on where it stopped.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from portal.cli.directory_files import DirectoryFiles
from portal.cli.submit_folder import add_folder_arguments, submit_folder
from wms.core.actors import Actor
from wms.core.errors import PilotageError
from wms.core.models import User
from wms.dags.follow.bad_events import DEFAULT
from wms.dags.follow.runs import FollowRequest, follow_run
from wms.dags.follow.services import (
    MAX_CHUNK_BYTES,
    LogProgress,
    ingest_chunk,
)


class Command(BaseCommand):
    help = "Follow a DAG that is run by HTCondor's DAGMan, by its job event log (*.nodes.log)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("dag_file", type=Path, metavar="DAG_FILE")
        parser.add_argument("log", type=Path, metavar="LOG", help="the job event log")
        parser.add_argument("--owner", required=True, help="whose DAG it is here: a user name")
        parser.add_argument(
            "--and", action="append", default=[], type=Path, dest="more", metavar="DAG_FILE",
            help="a further DAG file that runs together with the first",
        )  # fmt: skip
        parser.add_argument(
            "--rescue", type=int, metavar="N", help="the rescue file that the run began from"
        )
        parser.add_argument(
            "--dag", type=int, metavar="ID", help="go on with a DAG followed before"
        )
        add_folder_arguments(parser)
        parser.add_argument("--once", action="store_true", help="read what there is, and end")
        parser.add_argument("--every", type=float, default=2.0, metavar="SECONDS")
        parser.add_argument("--time-zone", default="UTC", help="of times that tell none")
        parser.add_argument(
            "--allow-events", type=int, default=DEFAULT, help="as DAGMAN_ALLOW_EVENTS"
        )

    def handle(self, *args: Any, log: Path, **options: Any) -> None:
        owner = User.objects.filter(username=options["owner"], is_active=True).first()
        if owner is None:
            raise CommandError(f"There is no user {options['owner']}.")
        try:
            dag_id = options["dag"] or _begin(owner, log, options)
            self.stdout.write(f"DAG {dag_id} is followed by {log}")
            for taken in self._pieces(dag_id, Actor.person(owner), log, options):
                self.stdout.write(f"{taken.events} events, the DAG is {taken.dag_state}")
                if taken.fault:
                    raise CommandError(f"{log}: {taken.fault}")
        except PilotageError as error:
            raise CommandError(str(error)) from error

    def _pieces(
        self, dag_id: int, actor: Actor, log: Path, options: dict[str, Any]
    ) -> Iterator[LogProgress]:
        """Send what is new of the log, until the DAG has ended, or once."""
        taken = ingest_chunk(dag_id, b"", offset=0, actor=actor, now=timezone.now())
        while not taken.is_over:
            chunk = _read(log, taken.offset, must_exist=options["once"])
            before = taken.offset
            taken = ingest_chunk(dag_id, chunk, offset=before, actor=actor, now=timezone.now())
            if taken.events or taken.fault:
                yield taken
            if taken.offset == before:
                if options["once"]:
                    return
                time.sleep(options["every"])


def _begin(owner: User, log: Path, options: dict[str, Any]) -> int:
    folder = submit_folder(options["dag_file"], options)
    folder_files = DirectoryFiles(folder.top)
    request = FollowRequest(
        dag_files=tuple(
            folder_files.name_of(file) for file in (options["dag_file"], *options["more"])
        ),
        files=folder_files,
        origin=folder.origin,
        log_name=str(log),
        rescue_number=options["rescue"],
        allow_events=options["allow_events"],
        time_zone=options["time_zone"],
    )
    return follow_run(request, owner=owner, actor=Actor.person(owner), now=timezone.now()).dag.pk


def _read(log: Path, offset: int, *, must_exist: bool) -> bytes:
    """Next piece of the log; empty while there is none."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, 2)
            if size < offset:
                raise CommandError(f"{log} is shorter than before: {size} bytes, not {offset}.")
            file.seek(offset)
            return file.read(MAX_CHUNK_BYTES)
    except FileNotFoundError:
        if must_exist or offset:
            raise CommandError(f"{log} is not there.") from None
        return b""
    except OSError as error:
        raise CommandError(f"{log}: {error.strerror}") from error
