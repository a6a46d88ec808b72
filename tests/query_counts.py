"""Comparison of the numbers of database queries of pages and endpoints with `query_counts.json`.

A test fails when a number differs from the file, and prints the statements; another one when it
grows with the rows. `UPDATE_QUERY_COUNTS=1` rewrites the file instead:

    UPDATE_QUERY_COUNTS=1 make test ARGS="tests/portal/test_query_counts.py"
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from django.db import connection
from django.test.utils import CaptureQueriesContext

BASELINE = Path(__file__).with_suffix(".json")


def statements_of(call: Callable[[], object]) -> list[str]:
    """The statements that a call sends to the database, savepoints left out."""
    with CaptureQueriesContext(connection) as captured:
        call()
    statements = [query["sql"] for query in captured.captured_queries]
    return [sql for sql in statements if not sql.startswith(("SAVEPOINT", "RELEASE SAVEPOINT"))]


def known_counts() -> dict[str, int]:
    """The numbers of the file."""
    known: dict[str, int] = json.loads(BASELINE.read_text(encoding="utf-8"))
    return known


def is_rewritten() -> bool:
    """Whether the file is to be rewritten."""
    return os.environ.get("UPDATE_QUERY_COUNTS") == "1"


def compare_with_baseline(measured: Mapping[str, Sequence[str]]) -> list[str]:
    """What differs from the file, for people to read; nothing after the file was rewritten."""
    counts = {name: len(statements) for name, statements in sorted(measured.items())}
    if is_rewritten():
        BASELINE.write_text(json.dumps(counts, indent=2) + "\n", encoding="utf-8")
        return []
    known = known_counts()
    changed = [
        f"{name}: {count} queries, known are {known.get(name)}\n{_listed(measured[name])}"
        for name, count in counts.items()
        if count != known.get(name)
    ]
    return changed + [f"{name}: gone" for name in sorted(known.keys() - counts.keys())]


def compare_growth(
    few: Mapping[str, Sequence[str]], many: Mapping[str, Sequence[str]]
) -> list[str]:
    """The pages whose number of queries depends on the number of rows, for people to read."""
    return [
        f"{name}: {len(few[name])} queries with one row, {len(many[name])} with many\n"
        + _listed(many[name])
        for name in few
        if len(few[name]) != len(many[name])
    ]


def _listed(statements: Sequence[str]) -> str:
    return "\n".join(f"    {number}. {sql[:400]}" for number, sql in enumerate(statements, start=1))
