"""The documents name files, modules and functions that exist, and their links lead somewhere."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

BASE = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted(
    [
        *BASE.glob("*.md"),
        *BASE.glob("docs/**/*.md"),
        *BASE.glob("examples/*/README.md"),
        BASE / "client" / "README.md",
    ]
)
LINK = re.compile(r"\[[^]]*\]\(([^)#\s]+)")
#: In backticks: a dotted name of one of the packages, or a path in one of the top folders.
NAME = re.compile(r"`((?:matching|wms|portal)(?:\.\w+)+)`")
PATH = re.compile(r"`((?:matching|wms|portal|client|tests|docs|examples|benchmarks)/[\w./-]*)`")

#: Files that are made when they are wanted.
MADE = {"client/pilotage.pyz"}
each_document = pytest.mark.parametrize(
    "document", DOCUMENTS, ids=lambda path: str(path.relative_to(BASE))
)


@each_document
def test_links_lead_to_files(document: Path):
    targets = [t for t in LINK.findall(document.read_text(encoding="utf-8")) if ":" not in t]

    assert [target for target in targets if not (document.parent / target).exists()] == []


@each_document
def test_no_merge_is_left_half_done(document: Path):
    lines = document.read_text(encoding="utf-8").splitlines()

    assert [line for line in lines if re.match(r"(<{7}|>{7}) |={7}$", line)] == []


@each_document
def test_named_files_exist(document: Path):
    paths = PATH.findall(document.read_text(encoding="utf-8"))

    assert [path for path in paths if path not in MADE and not (BASE / path).exists()] == []


@each_document
def test_named_modules_and_functions_exist(document: Path):
    names = NAME.findall(document.read_text(encoding="utf-8"))

    assert [name for name in names if not _exists(name)] == []


def _exists(name: str) -> bool:
    """True for a module, and for what a module holds."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        return hasattr(importlib.import_module(module), attribute)
    return True
