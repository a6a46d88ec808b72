"""Command that checks DAG files on disk as a submission would; nothing is stored, no server asked.

With `--portal` the portal of that address makes the check, of what is sent to it.

Exit code 0: no faults; 1: faults; 2: the check itself could not be made.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.cli.client import ApiError
from portal.cli.dag_reports import ToolReport, check_report
from portal.cli.directory_files import DirectoryFiles
from portal.cli.portal_address import add_portal_arguments, portal_client
from portal.cli.remote_trials import NotTried, remote_report
from portal.cli.submit_folder import SubmitFolder, add_folder_arguments, submit_folder

_FAILED = 2


class Command(BaseCommand):
    help = "Check DAG files and the submit descriptions beside them; several run as one DAG."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", nargs="+", metavar="FILE", help="a DAG file")
        add_folder_arguments(parser)
        parser.add_argument("--json", action="store_true", help="answer in JSON")
        parser.add_argument(
            "--allow-missing",
            action="store_true",
            help="submit descriptions that are not there are warnings",
        )
        add_portal_arguments(parser)
        parser.add_argument(
            "--dagman",
            action="store_true",
            help="what plain DAGMan does not know is a fault: the files are to be run by it",
        )

    def handle(self, *args: Any, files: list[str], **options: Any) -> None:
        folder = submit_folder(Path(files[0]), options)
        report = self._report(folder, files, options)
        if options["json"]:
            self.stdout.write(json.dumps(report.report, indent=2))
        else:
            self.stdout.write(report.text)
            if folder.said:
                self.stdout.write(f"a submission of {folder.top} says {folder.said}")
        sys.exit(report.exit_code)

    def _report(
        self, folder: SubmitFolder, files: list[str], options: dict[str, Any]
    ) -> ToolReport:
        directory_files = DirectoryFiles(folder.top)
        names = [directory_files.name_of(Path(file)) for file in files]
        allows_missing = options["allow_missing"]
        if not options["portal"]:
            return check_report(
                directory_files,
                names,
                folder.origin,
                allows_missing=allows_missing,
                is_for_dagman=options["dagman"],
            )
        try:
            return remote_report(
                portal_client(options["portal"], options["token_file"]),
                "check",
                folder.top,
                names,
                folder.origin,
                allows_missing=allows_missing,
                is_for_dagman=options["dagman"],
                tell=self.stderr.write,
            )
        except (ApiError, NotTried) as error:
            raise CommandError(str(error), returncode=_FAILED) from None
