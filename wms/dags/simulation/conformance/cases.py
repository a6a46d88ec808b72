"""Conformance cases of the DAG engine, parsed from JSON; unknown keys are refused.

A case is one submission, or several in the same workspace, each with behaviour, options and
expected outcome.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wms.core.errors import Finding, InvalidInput
from wms.dags.simulation.behaviour import Behaviour, read_behaviour
from wms.dags.simulation.options import SimulationOptions, read_options

#: Name of the DAG file of every case.
DAG_NAME = "case.dag"
#: Keys of `expect` that a case may have.
EXPECTATIONS = frozenset(
    {
        "dag_state", "dag_status", "exit_code", "nodes", "attempts", "order", "not_order",
        "start_order", "start_order_any", "args", "procs", "max_running", "rescue_done",
        "rescue_file", "files_exist", "file_contains", "json_contains", "error", "error_at",
    }
)  # fmt: skip
_SUBMISSION_KEYS = frozenset({"behaviour", "duration", "options", "expect", "dag", "files"})
_CASE_KEYS = _SUBMISSION_KEYS | {
    "name", "group", "importance", "verified", "deviates_23_9_6", "note", "then",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Submission:
    """One submission of a case; without `dag` the DAG file of the previous one is used again."""

    behaviour: Behaviour
    options: SimulationOptions
    expect: Mapping[str, Any]
    dag: str | None = None
    files: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Case:
    """Conformance case: one submission or several in the same workspace."""

    name: str
    submissions: Sequence[Submission]

    @property
    def may_refuse_cycle(self) -> bool:
        """Whether the DAG may be refused, since it has a cycle."""
        return self.name == "cycle-with-final" or any(
            submission.expect.get("dag_state") == "cycle" for submission in self.submissions
        )


def read_cases(text: str, *, file: str) -> list[Case]:
    """Cases of a JSON file, without the entry that documents the format.

    Raises InvalidInput with every fault.
    """
    try:
        entries = json.loads(text)
    except ValueError as error:
        raise InvalidInput.of(f"not JSON: {error}", file=file) from error
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise InvalidInput.of("a list of cases is needed", file=file)
    cases, faults = [], []
    for number, entry in enumerate(entries, start=1):
        if "format" in entry and "dag" not in entry:
            continue
        try:
            cases.append(_case(entry, number))
        except InvalidInput as error:
            name = entry.get("name", f"number {number}")
            faults += [Finding(f"case {name}: {fault}", file=file) for fault in error.findings]
    if faults:
        raise InvalidInput(faults)
    return cases


def _case(entry: dict[str, Any], number: int) -> Case:
    _refuse_unknown(entry, _CASE_KEYS)
    if not isinstance(entry.get("dag"), str):
        raise InvalidInput.of("it has no text of a DAG file", field="dag")
    first = _submission(entry, {})
    submissions = [first, *(_submission(each, entry) for each in entry.get("then", []))]
    return Case(str(entry.get("name", f"case {number}")), submissions)


def _submission(entry: dict[str, Any], outer: Mapping[str, Any]) -> Submission:
    if outer:
        _refuse_unknown(entry, _SUBMISSION_KEYS)
    expect = entry.get("expect", {})
    _refuse_unknown(expect, EXPECTATIONS, "expect.")
    return Submission(
        behaviour=read_behaviour(
            entry.get("behaviour", {}), entry.get("duration", outer.get("duration", {}))
        ),
        options=read_options(entry.get("options", {})),
        expect=expect,
        dag=entry.get("dag"),
        files=entry.get("files", {}),
    )


def _refuse_unknown(
    entry: Mapping[str, Any], known: frozenset[str] | set[str], where: str = ""
) -> None:
    unknown = [
        Finding("there is no such key", field=f"{where}{key}") for key in entry if key not in known
    ]
    if unknown:
        raise InvalidInput(unknown)
