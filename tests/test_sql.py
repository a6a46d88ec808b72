"""SQL by hand lies in the `sql.py` of its app or package, named, with its reason and its index."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("wms", "portal", "matching")
_STATEMENT = re.compile(
    r"^\s*\(?(?:SELECT|INSERT\s+INTO|UPDATE|DELETE\s+FROM|COPY|CREATE|ALTER|DROP|TRUNCATE|ANALYZE"
    r"|VACUUM|LOCK|SET\s+LOCAL|EXPLAIN|WITH(?:\s+RECURSIVE)?\s+\w+(?:\([^)]*\))?\s+AS)\s"
    # JOIN alone is a command of DAG files.
    r"|\bJOIN\s+\S+\s+(?:AS|ON|USING)\b"
    r"|\b(?:FROM|WHERE|RETURNING|UNION\s+ALL|ORDER\s+BY|GROUP\s+BY|FOR\s+UPDATE"
    r"|SKIP\s+LOCKED|ON\s+CONFLICT)\b"
)
_SENDING = frozenset({".execute", ".executemany", ".raw", ".extra", "RawSQL"})


def _modules() -> Iterator[Path]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path


def faults_of(text: str) -> list[int]:
    """The lines on which a module has a statement, or a part of one, as a text of its own."""
    tree = ast.parse(text)
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told
    ]
    found = {node.lineno for node in texts if _STATEMENT.search(node.value)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and _name(node.func) in _SENDING:
            first = node.args[0]
            if isinstance(first, ast.JoinedStr) or first in texts:
                found.add(first.lineno)
    return sorted(found)


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return f".{function.attr}"
    return function.id if isinstance(function, ast.Name) else ""


@pytest.mark.slow
def test_statements_by_hand_are_in_modules_of_their_own_only() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in _modules()
        if path.name != "sql.py"
        for line in faults_of(path.read_text())
    ]

    assert found == []


@pytest.mark.parametrize(
    "code",
    [
        'READ = "SELECT 1 "',
        'READ = """\nWITH RECURSIVE below(id) AS (VALUES (1)) TABLE below"""',
        'statement = f"{READ} WHERE id = %s"',
        'cursor.execute("vacuum")',
        'cursor.execute(f"{statement} {rest}")',
        'rows = Node.objects.raw("table node")',
    ],
)
def test_a_statement_elsewhere_is_found(code: str) -> None:
    assert faults_of(code)


@pytest.mark.parametrize(
    "code",
    [
        '"""SELECT is told of here."""',
        'message = "WITH needs a change"',
        "cursor.execute(READ, [1])",
        "cursor.execute(COUNT.format(rows=rows))",
    ],
)
def test_other_texts_are_no_statements(code: str) -> None:
    assert not faults_of(code)


def test_each_statement_has_a_comment() -> None:
    """One comment may be for several that follow each other without a gap."""
    bare = []
    for path in (each for each in _modules() if each.name == "sql.py"):
        lines = path.read_text().splitlines()
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and not lines[node.lineno - 2].strip():
                bare.append(f"{path.relative_to(ROOT)}:{node.lineno}")

    assert bare == []


@pytest.mark.slow
def test_what_comments_of_statements_name_is_there() -> None:
    """Indexes, mostly: their names are in the models."""
    modules = [each for each in _modules() if each.name != "sql.py"]
    known = set(re.findall(r"\w+", " ".join(path.read_text() for path in modules)))
    missing = []
    for path in (each for each in _modules() if each.name == "sql.py"):
        own = set(re.findall(r"\w+", re.sub(r"#.*", "", path.read_text())))
        for name in re.findall(r"`([\w.]+)`", " ".join(re.findall(r"# ?(.*)", path.read_text()))):
            if not set(name.split(".")) <= known | own:
                missing.append(f"{path.relative_to(ROOT)}: {name}")

    assert missing == []
