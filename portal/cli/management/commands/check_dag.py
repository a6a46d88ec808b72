"""Command that checks DAG files on disk as a submission would; nothing is stored, no server asked.

Exit code 0: no faults; 1: faults; 2: the check itself could not be made. `DirectoryFiles`, the
files of a directory by their relative paths, serves other commands too.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.cli.submit_folder import add_folder_arguments, submit_folder
from wms.core.conf import conf
from wms.core.errors import Finding
from wms.dags.submission.checking import CheckedDag, check_dag

_FAULTS, _FAILED = 1, 2


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

        parser.add_argument(
            "--dagman",
            action="store_true",
            help="what plain DAGMan does not know is a fault: the files are to be run by it",
        )

    def handle(self, *args: Any, files: list[str], **options: Any) -> None:
        folder = submit_folder(Path(files[0]), options)
        directory_files = DirectoryFiles(folder.top)
        checked = check_dag(
            [directory_files.name_of(Path(file)) for file in files],
            files=directory_files,
            owner=None,
            origin=folder.origin,
            allow_missing_files=options["allow_missing"],
        )
        if options["dagman"]:
            checked.findings += checked.dag.additions
        if options["json"]:
            self.stdout.write(json.dumps(_as_json(checked), indent=2))
        else:
            self.stdout.write("\n".join(_as_text(checked)))
            if folder.said:
                self.stdout.write(f"a submission of {folder.top} says {folder.said}")
        sys.exit(_FAULTS if checked.findings else 0)


class DirectoryFiles(Mapping[str, BinaryIO]):
    """The files of a directory by their relative paths; those that lead outside are not there."""

    def __init__(self, directory: Path) -> None:
        self._given = directory
        try:
            self._root = directory.resolve(strict=True)
        except OSError as error:
            raise CommandError(f"{directory}: {error.strerror}", returncode=_FAILED) from None

    def name_of(self, file: Path) -> str:
        """The relative path of a DAG file. Raises CommandError for one that is not there."""
        name = os.path.relpath(file, self._given)
        if name not in self:
            reason = "is no file" if not file.exists() else f"is not below {self._given}"
            raise CommandError(f"{file} {reason}", returncode=_FAILED)
        return name

    def _path(self, name: str) -> Path | None:
        try:
            path = (self._root / name).resolve(strict=True)
        except (OSError, ValueError):
            return None
        return path if path.is_relative_to(self._root) and path.is_file() else None

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._path(name) is not None

    def __getitem__(self, name: str) -> BinaryIO:
        path = self._path(name)
        if path is None:
            raise KeyError(name)
        try:
            with path.open("rb") as file:
                return io.BytesIO(file.read(conf().max_dag_text_bytes + 1))
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}", returncode=_FAILED) from None

    def __iter__(self) -> Iterator[str]:
        for directory, _, names in os.walk(self._root):
            for name in names:
                yield os.path.relpath(Path(directory, name), self._root)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _as_json(checked: CheckedDag) -> dict[str, Any]:
    return {
        "errors": [_finding(each) for each in checked.findings],
        "warnings": [_finding(each) for each in checked.warnings],
        "statistics": asdict(checked.dag.statistics),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "reason": finding.message,
        "file": finding.file,
        "line": finding.line,
        "command": finding.command,
    }


def _as_text(checked: CheckedDag) -> Iterator[str]:
    for kind, findings in (("error", checked.findings), ("warning", checked.warnings)):
        for finding in findings:
            command = f"{finding.command}: " if finding.command else ""
            place = f"{finding.file}:{finding.line}" if finding.line else finding.file
            yield f"{place}: {kind}: {command}{finding.message}"
    shape = checked.dag.statistics
    yield f"{shape.nodes} nodes, {shape.arcs} arcs, height {shape.height}, width {shape.width}"
    yield f"{len(checked.findings)} errors, {len(checked.warnings)} warnings"
