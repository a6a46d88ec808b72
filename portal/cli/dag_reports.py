"""Reports of the tools that check and try DAGs: exit code, JSON values and text.

They are the same whether a command makes them from files on disk, or a worker from files that were
sent to the portal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from matching.plurals import counted
from portal.cli.directory_files import DirectoryFiles
from wms.core.errors import Finding
from wms.dags.language.origin import Origin
from wms.dags.simulation.dry_run.dry_runs import DryRunSettings, dry_run
from wms.dags.simulation.dry_run.local_folder import read_local_folder
from wms.dags.simulation.dry_run.text_report import text_report
from wms.dags.submission.checking import CheckedDag, check_dag

#: The DAG has faults, or would not succeed.
NOT_WELL = 1


@dataclass(frozen=True, slots=True)
class ToolReport:
    """Report of a tool; `text` is for people and ends without a line break."""

    exit_code: int
    report: dict[str, Any]
    text: str


def check_report(
    folder: DirectoryFiles,
    names: list[str],
    origin: Origin,
    *,
    allows_missing: bool,
    is_for_dagman: bool = False,
) -> ToolReport:
    """Report of a check of DAG files of a folder, which asks no server.

    With `is_for_dagman` all that plain DAGMan does not know is a fault.
    """
    checked = check_dag(
        names, files=folder, owner=None, origin=origin, allow_missing_files=allows_missing
    )
    if is_for_dagman:
        checked.findings += checked.dag.additions
    report = {
        "errors": [_finding(each) for each in checked.findings],
        "warnings": [_finding(each) for each in checked.warnings],
        "statistics": asdict(checked.dag.statistics),
    }
    text = "\n".join(_lines_of(checked))
    return ToolReport(NOT_WELL if checked.findings else 0, report, text)


def dry_run_report(
    root: Path,
    names: list[str],
    settings: DryRunSettings,
    origin: Origin,
    *,
    is_of_this_host: bool = True,
    tell: Callable[[int, int], None] | None = None,
) -> ToolReport:
    """Report of a dry run of DAG files of a folder, on a database that nobody else uses.

    `tell` hears of nodes, and how many of them have ended. Raises InvalidInput.
    """
    names = [*names, *settings.options.extra_dags]
    folder = read_local_folder(root, names, origin, is_of_this_host=is_of_this_host)
    result = dry_run(folder, names, settings, origin, tell=tell)
    text = text_report(result, " ".join(names)).removesuffix("\n")
    is_well = result.outcome.dag_state == "success"
    return ToolReport(0 if is_well else NOT_WELL, result.as_dict(), text)


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "reason": finding.message,
        "file": finding.file,
        "line": finding.line,
        "command": finding.command,
    }


def _lines_of(checked: CheckedDag) -> Iterator[str]:
    for kind, findings in (("error", checked.findings), ("warning", checked.warnings)):
        for finding in findings:
            command = f"{finding.command}: " if finding.command else ""
            place = f"{finding.file}:{finding.line}" if finding.line else finding.file
            yield f"{place}: {kind}: {command}{finding.message}"
    shape = checked.dag.statistics
    yield f"{shape.nodes} nodes, {shape.arcs} arcs, height {shape.height}, width {shape.width}"
    errors = counted(len(checked.findings), "error", "errors")
    yield f"{errors}, {counted(len(checked.warnings), 'warning', 'warnings')}"
