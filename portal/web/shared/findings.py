"""Faults of DAG files and other inputs for pages, each with the quoted source line.

Also the HTTP status of a page that tells faults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import BinaryIO

from django.http import HttpRequest

from wms.core.errors import Finding
from wms.dags.submission.checking import read_text

#: Most faults that are quoted; the others are counted.
SHOWN = 50


@dataclass(frozen=True, slots=True)
class Quoted:
    """A fault with its source line."""

    place: str
    command: str
    message: str
    line: str


def quoted(
    findings: Sequence[Finding], files: Mapping[str, BinaryIO] | None = None
) -> list[Quoted]:
    """First faults by file and line; lines are quoted from text files only."""
    lines: dict[str, list[str]] = {}
    found = []
    for finding in sorted(findings[:SHOWN], key=lambda each: (each.file, each.line or 0)):
        stream = (files or {}).get(finding.file)
        if finding.line is not None and stream is not None and finding.file not in lines:
            lines[finding.file] = read_text(stream, file=finding.file)[0].splitlines()
        found.append(_quote(finding, lines.get(finding.file, [])))
    return found


def status_of(request: HttpRequest, status: int) -> int:
    """Status of an answer that tells findings: of refusals the script shows 400 alone."""
    is_refusal = status >= HTTPStatus.BAD_REQUEST
    return HTTPStatus.BAD_REQUEST if request.htmx and is_refusal else status


def _quote(finding: Finding, lines: Sequence[str]) -> Quoted:
    number = finding.line or 0
    place = finding.file or finding.field
    if finding.line is not None:
        place = f"{place}:{number}" if finding.file else f"{place}, line {number}"
    line = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return Quoted(place, finding.command, finding.message, line[:500])
