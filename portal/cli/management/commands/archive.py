"""Command that writes archives of DAGs into a folder, and imports such files to be looked at."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.cli.archive_folder import write_into
from wms.archives.selectors import ended_dags
from wms.archives.services import import_archive
from wms.core.actors import Actor
from wms.core.errors import InvalidInput, PilotageError
from wms.core.models import User
from wms.dags.models import Dag


class Command(BaseCommand):
    help = "Write archives of DAGs that have ended into a folder, or import archives to look at."

    def add_arguments(self, parser: CommandParser) -> None:
        commands = parser.add_subparsers(dest="what", required=True)
        export = commands.add_parser("export", help="write a file for each DAG; repeat at will")
        export.add_argument("dags", nargs="*", type=int, metavar="DAG", help="number of a DAG")
        export.add_argument("--to", required=True, type=Path, metavar="FOLDER")
        export.add_argument(
            "--ended-before", type=_moment, metavar="TIME",
            help="all that ended before then: a date, or a time, in UTC unless it says otherwise",
        )  # fmt: skip
        bring = commands.add_parser("import", help="check files, and keep them to look at")
        bring.add_argument("files", nargs="+", type=Path, metavar="FILE")
        bring.add_argument("--user", required=True, help="who does it: a user name")

    def handle(self, *args: Any, what: str, **options: Any) -> None:
        faults = list(self._export(**options) if what == "export" else self._import(**options))
        if faults:
            raise CommandError("\n".join(faults))

    def _export(
        self, *, dags: list[int], to: Path, ended_before: datetime | None, **options: Any
    ) -> Iterator[str]:
        """Write the files; gives what is wrong with a DAG, and goes on with the next."""
        if not dags and ended_before is None:
            raise CommandError("Name DAGs, or give --ended-before.")
        if not to.is_dir():
            raise CommandError(f"{to} is no folder.")
        for dag in ended_dags(dags, ended_before=ended_before):
            try:
                target, outcome = write_into(to, dag)
            except PilotageError as error:
                yield f"dag-{dag.pk}.zip: {error}"
            except OSError as error:
                raise CommandError(
                    f"{error.strerror}: {error.filename or to}. What is written stays: begin again."
                ) from error
            else:
                self.stdout.write(f"{target}: {outcome}")
        known = set(Dag.objects.filter(pk__in=dags).values_list("pk", flat=True))
        yield from (f"There is no DAG {dag}." for dag in dags if dag not in known)

    def _import(self, *, files: list[Path], user: str, **options: Any) -> Iterator[str]:
        person = User.objects.filter(username=user, is_active=True).first()
        if person is None:
            raise CommandError(f"There is no user {user}.")
        for path in files:
            try:
                with path.open("rb") as stream:
                    done = import_archive(stream, actor=Actor.person(person))
            except InvalidInput as error:
                yield from (f"{path}: {_place(each)}{each.message}" for each in error.findings)
            except PilotageError as error:
                yield f"{path}: {error}"
            except OSError as error:
                yield f"{path}: {error.strerror}"
            else:
                how = "imported" if done.is_new else "was there"
                self.stdout.write(f"{path}: archive {done.archive.pk}, {how}")


def _place(finding: Any) -> str:
    line = f":{finding.line}" if finding.line is not None else ""
    return f"{finding.member}{line}: " if finding.member else ""


def _moment(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
