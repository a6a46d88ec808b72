"""Every statement by hand has a test of its plan, or a reason why it needs none."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

#: Statements that plan tests reach by a function under another name than their own.
REACHED_BY = {
    "ADD_USES": "statement",
    "COUNT_RUNNING": "reached",
    "MOVE_GUARDED": "move",
    "SAMPLE": "explained",
    "SCAN_BY": "explained",
}
_NO_TABLE = "reads no table"
_FEW_LIMITS = "reads running limits, which operators make by hand: a few, or none"
_PART = "a part of counts around querysets, which have indexes and limits of their own"
_EVERY_ROW = "works on every row of a table that is as long as there are different needs"
EXEMPT = {
    "CREATE_DATABASE": _NO_TABLE,
    "READ_DURABILITY": _NO_TABLE,
    "READ_CLOCK": _NO_TABLE,
    "ISOLATE_SNAPSHOT": _NO_TABLE,
    "EXPORT_SNAPSHOT": _NO_TABLE,
    "GATHER_STATISTICS": "reads a sample of every table, as it is asked to",
    "ADVANCE_IDS": "reads the catalogue of sequences, of which there are as many as tables",
    "READ_INSTALLATION": "reads the row of the database by its name, by the unique index",
    "READ_SNAPSHOT": _NO_TABLE,
    "READ_NUMBERS": _NO_TABLE,
    "FORGET_SESSIONS": _NO_TABLE,
    "FIND_SETTLED": "reads the sessions of the server, which are few and have no index",
    "COUNT_SESSIONS": "reads the sessions of the server, which are few and have no index",
    "LIMIT_STATEMENTS": _NO_TABLE,
    "TAKE_FREE_LOCK": _NO_TABLE,
    "TAKE_FREE_LOCK_OF_TRANSACTION": _NO_TABLE,
    "RELEASE_LOCK": _NO_TABLE,
    "WAIT_FOR_LOCKS": _NO_TABLE,
    "LOCK_PRIORITIES": _NO_TABLE,
    "LOCK_NAME": _NO_TABLE,
    "LOCK_FREE_NAME": _NO_TABLE,
    "ALLOW_NESTED_LOOPS": _NO_TABLE,
    "RESERVE_JOB_IDS": _NO_TABLE,
    "RESERVE_NODE_IDS": _NO_TABLE,
    "CLAIM_KEYS": _NO_TABLE,
    "INSERT_JOBS": "inserts without reading a table",
    "INSERT_DESCRIPTIONS": "inserts without reading a table",
    "INSERT_ROW": "inserts without reading a table",
    "COPY_NODES": "inserts without reading a table",
    "COPY_ARCS": "inserts without reading a table",
    "NO_ROWS": _NO_TABLE,
    "NO_STATES": _NO_TABLE,
    "TOGETHER": _PART,
    "SUMMARY": _PART,
    "STATES_OF_LATEST": _PART,
    "COUNT_LATEST": _PART,
    "COUNT_FREQUENT": _PART,
    "COUNT_IN_STATE": _PART,
    "COUNT_ROWS": _PART,
    "LABELLED": _PART,
    "EXPLAIN": "asks for a plan and reads no row",
    "READ_LIMITS": _FEW_LIMITS,
    "READ_LIMITS_AT": _FEW_LIMITS,
    "LOCK_LIMITS": _FEW_LIMITS,
    "LOCK_FREE_LIMITS": _FEW_LIMITS,
    "PLACE_ALL": _EVERY_ROW,
    "FOLD_TALLY": _EVERY_ROW,
    "FOLD_STORED_BYTES": "works on every row of a table that is as long as there are users",
    "REMOVE_STRAY_COUNTS": _EVERY_ROW,
    "FIND_STRAY": "reads the whole trail, as it is asked to, once an hour",
}


def _statements() -> Iterator[str]:
    for folder in ("wms", "portal"):
        for path in sorted((ROOT / folder).rglob("sql.py")):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.Assign):
                    [target] = node.targets
                    assert isinstance(target, ast.Name)
                    if not target.id.startswith("_"):
                        yield target.id


@cache
def _mentioned() -> set[str]:
    """The attributes that the plan tests use, such as `engine.count_down`."""
    found = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        tree = ast.parse(path.read_text())
        found |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return found


def _is_planned(name: str) -> bool:
    return bool({name, name.lower(), REACHED_BY.get(name, name)} & _mentioned())


def test_every_statement_has_a_test_of_its_plan_or_a_reason_why_not() -> None:
    bare = [name for name in _statements() if name not in EXEMPT and not _is_planned(name)]

    assert bare == []


def test_exemptions_are_of_statements_that_are_there_and_have_no_test() -> None:
    names = list(_statements())

    assert sorted({*EXEMPT, *REACHED_BY} - set(names)) == []
    assert [name for name in EXEMPT if _is_planned(name)] == []
    assert len(names) == len(set(names))


def test_names_of_statements_are_read_from_their_modules() -> None:
    assert {"ADD_USES", "BIND_DAGS", "READ_CLOCK", "TAKE_BY"} <= set(_statements())
    assert all(re.fullmatch(r"[A-Z_]+", name) for name in _statements())
