"""Command that tries DAG files on disk by a dry run, without running jobs, or conformance cases.

With `--portal` the portal of that address makes the dry run, of what is sent to it.

Exit code 0: the DAG would succeed, or all cases pass; 1: not so; 2: it could not be tried.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.cli.client import ApiError
from portal.cli.dag_reports import NOT_WELL, ToolReport, dry_run_report
from portal.cli.portal_address import add_portal_arguments, portal_client
from portal.cli.remote_trials import NotTried, remote_report
from portal.cli.submit_folder import add_folder_arguments, submit_folder
from wms.core.errors import InvalidInput
from wms.dags.language.origin import Origin
from wms.dags.simulation.conformance.cases import Case, read_cases
from wms.dags.simulation.conformance.runner import CaseResult, run_cases
from wms.dags.simulation.dry_run.dry_runs import read_dry_run_settings

_FAILED = 2


class Command(BaseCommand):
    help = "Try DAG files without running anything; several run as one DAG. Or run cases."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", nargs="*", metavar="FILE", help="a DAG file")
        parser.add_argument(
            "--behaviour", metavar="FILE", help="how nodes and scripts end, and how long they take"
        )
        parser.add_argument("--cases", metavar="FILE", help="run the conformance cases of a file")
        parser.add_argument("--name", action="append", help="only the case of this name")
        add_folder_arguments(parser)
        parser.add_argument("--json", action="store_true", help="answer in JSON")
        add_portal_arguments(parser)

    def handle(self, *args: Any, files: list[str], **options: Any) -> None:
        if bool(files) == bool(options["cases"]):
            raise CommandError("Give DAG files, or --cases with a file.", returncode=_FAILED)
        if options["cases"] and options["portal"]:
            raise CommandError("Cases are not run by a portal.", returncode=_FAILED)
        try:
            if options["cases"]:
                is_well = self._run_cases(options["cases"], options["name"], options["json"])
                sys.exit(0 if is_well else NOT_WELL)
            report = self._try(files, options)
        except InvalidInput as error:
            findings = "\n".join(str(finding) for finding in error.findings)
            raise CommandError(findings, returncode=_FAILED) from None
        except (ApiError, NotTried) as error:
            raise CommandError(str(error), returncode=_FAILED) from None
        self.stdout.write(json.dumps(report.report, indent=2) if options["json"] else report.text)
        sys.exit(report.exit_code)

    def _try(self, files: list[str], options: dict[str, Any]) -> ToolReport:
        behaviour = _object_in(options["behaviour"]) if options["behaviour"] else {}
        settings = read_dry_run_settings(behaviour)
        top, origin = submit_folder(Path(files[0]).resolve(), options)
        root = top.resolve()
        names = [_name_below(root, Path(file)) for file in files]
        if options["portal"]:
            return self._ask(root, names, origin, behaviour, options)
        self._say(f"Trying the DAG in {root} ...")
        return dry_run_report(root, names, settings, origin)

    def _ask(
        self,
        root: Path,
        names: list[str],
        origin: Origin,
        behaviour: dict[str, Any],
        options: dict[str, Any],
    ) -> ToolReport:
        client = portal_client(options["portal"], options["token_file"])
        return remote_report(
            client, "dry-run", root, names, origin, behaviour=behaviour, tell=self._say
        )

    def _run_cases(self, path: str, names: list[str] | None, as_json: bool) -> bool:
        cases = _chosen(read_cases(_text_of(Path(path)), file=path), names)
        results = []
        for result in run_cases(cases):
            results.append(result)
            if not as_json:
                self.stdout.write("\n".join(_lines(result)))
                self.stdout.flush()
        failed = sum(not result.is_passed for result in results)
        if as_json:
            self.stdout.write(json.dumps([_as_json(result) for result in results], indent=2))
        else:
            self.stdout.write(f"{len(results) - failed} passed, {failed} failed")
        return not failed

    def _say(self, text: str) -> None:
        self.stderr.write(text)


def _lines(result: CaseResult) -> list[str]:
    if result.is_passed:
        return [f"{result.name}: pass"]
    return [f"{result.name}: {difference}" for difference in result.differences]


def _as_json(result: CaseResult) -> dict[str, Any]:
    return {
        "name": result.name,
        "passed": result.is_passed,
        "differences": [str(difference) for difference in result.differences],
        "seconds": round(result.took_s, 3),
    }


def _chosen(cases: list[Case], names: list[str] | None) -> list[Case]:
    if not names:
        return cases
    missing = sorted(set(names) - {case.name for case in cases})
    if missing:
        raise CommandError(f"There is no case {', '.join(missing)}.", returncode=_FAILED)
    return [case for case in cases if case.name in names]


def _name_below(root: Path, file: Path) -> str:
    resolved = file.resolve()
    if not resolved.is_file():
        raise CommandError(f"{file} is no file", returncode=_FAILED)
    if not resolved.is_relative_to(root):
        raise CommandError(f"{file} is not below {root}", returncode=_FAILED)
    return str(resolved.relative_to(root))


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: {error}", returncode=_FAILED) from None


def _object_in(path: str) -> dict[str, Any]:
    try:
        found = json.loads(_text_of(Path(path)))
    except ValueError as error:
        raise InvalidInput.of(f"not JSON: {error}", file=path) from error
    if not isinstance(found, dict):
        raise InvalidInput.of("an object of components is needed", file=path)
    return found
