"""Our own regular expressions mean the same to every release of Python that runs them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

_ROOT = Path(__file__).parent.parent
# Python 3.9 does not know possessive repeats and atomic groups, 3.11.2 matches some wrongly.
_NOT_EVERYWHERE = re.compile(r"(?<!\\)(?:\\\\)*(?:[*+?}]\+|\(\?>)")


def _expressions(path: Path) -> Iterator[tuple[int, str]]:
    """All texts that are arguments of functions of `re`, with their lines."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        of = node.func.value
        if isinstance(of, ast.Name) and of.id == "re":
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, (str, bytes)):
                    text = part.value
                    yield part.lineno, text if isinstance(text, str) else text.decode("latin-1")


@pytest.mark.slow
@pytest.mark.parametrize("package", ["matching", "wms", "portal", "examples"])
def test_no_expression_has_possessive_repeats_or_atomic_groups(package: str) -> None:
    found = [
        f"{path.relative_to(_ROOT)}:{line}: {text}"
        for path in (_ROOT / package).rglob("*.py")
        # Migrations read what was stored once.
        if "migrations" not in path.parts
        for line, text in _expressions(path)
        if _NOT_EVERYWHERE.search(re.sub(r"\[(?:\\.|[^\]\\])+\]", "[]", text))
    ]

    assert found == []
