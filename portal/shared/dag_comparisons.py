"""Comparison of two DAGs as addresses of page and API ask for it, and as a CSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields

from portal.lists.exports import csv_cell
from wms.core.errors import Finding, InvalidInput
from wms.core.heavy import heavy_place
from wms.core.models import User
from wms.dags.models import Dag
from wms.dags.reading.comparing import CHOICES, MOST_LINES, Comparison, Side, compare
from wms.dags.reading.selectors import find_dag

#: Most lines of a CSV file.
MOST_IN_CSV = 20_000
_MAX_ID = 2**63 - 1
_MOST_PASSED = 10_000_000
#: From so many nodes of both on, a comparison waits for its turn.
_LARGE = 20_000
_SIDE = [field.name for field in fields(Side) if field.name != "id"]


@dataclass(frozen=True, slots=True)
class ComparisonQuestion:
    """Parameters of a comparison: the other DAG, which lines, and how many behind how many."""

    other: int
    chosen: str = "all"
    offset: int = 0
    limit: int = 100


def read_question(
    given: Mapping[str, str], *, limit: int = 100, known: frozenset[str] = frozenset()
) -> ComparisonQuestion:
    """Question of the parameters `with`, `differs`, `offset` and `page_size`. Raises InvalidInput.

    `known` are parameters that somebody else reads.
    """
    mine = {"with", "differs", "offset", "page_size"}
    faults = [
        Finding(f"unknown; known are {', '.join(sorted(mine | known))}", field=name)
        for name in sorted(set(given) - mine - known)
    ]
    chosen = given.get("differs") or "all"
    if chosen not in CHOICES:
        faults.append(Finding(f"must be one of {', '.join(CHOICES)}", field="differs"))
    other = _number(given, "with", 0, 1, _MAX_ID, faults)
    if "with" not in given:
        faults.append(Finding("give the number of the DAG to compare with", field="with"))
    offset = _number(given, "offset", 0, 0, _MOST_PASSED, faults)
    size = _number(given, "page_size", limit, 1, MOST_LINES, faults)
    if faults:
        raise InvalidInput(faults)
    return ComparisonQuestion(other, chosen, offset, size)


def _number(
    given: Mapping[str, str], name: str, usual: int, least: int, most: int, faults: list[Finding]
) -> int:
    text = given.get(name, "").strip()
    if not text:
        return usual
    is_number = text.isascii() and text.isdigit() and len(text) < 20
    if not is_number or not least <= int(text) <= most:
        faults.append(Finding(f"must be a number from {least} to {most}", field=name))
        return usual
    return int(text)


@dataclass(frozen=True, slots=True)
class Compared:
    """Two DAGs and their comparison."""

    here: Dag
    there: Dag
    comparison: Comparison


def compared(user: User, here: Dag, question: ComparisonQuestion) -> Compared:
    """Comparison of a DAG that was found visible. Raises InvalidInput, NotFound and Busy."""
    if question.other == here.pk:
        raise InvalidInput.of("must be another DAG", field="with")
    there = find_dag(user, question.other)
    is_large = here.node_count + there.node_count >= _LARGE
    with heavy_place(user) if is_large else nullcontext():
        found = compare(
            here, there, chosen=question.chosen, offset=question.offset, limit=question.limit
        )
    return Compared(here, there, found)


def as_csv(found: Compared) -> str:
    """Lines of a comparison as a CSV file, values of both DAGs side by side."""
    file = io.StringIO()
    writer = csv.writer(file)
    pks = (found.here.pk, found.there.pk)
    heads = [f"{name}_{pk}" for pk in pks for name in _SIDE]
    writer.writerow(["node", "differences", "slower_s", *heads])
    for line in found.comparison.lines:
        sides = [asdict(each) if each else {} for each in (line.here, line.there)]
        values = [side.get(name) for side in sides for name in _SIDE]
        cells = (line.name, " ".join(line.differences), line.slower_s, *values)
        writer.writerow([csv_cell(each) for each in cells])
    return file.getvalue()
