"""The glossary has each term once, in alphabetical order, and is complete in what it promises."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GLOSSARY = ROOT / "docs" / "glossary.md"


def _terms() -> list[str]:
    rows = re.findall(r"^\| (.+?) \| .+ \|$", GLOSSARY.read_text(), re.MULTILINE)
    return [row for row in rows if row != "term"]


def test_terms_are_in_alphabetical_order_and_there_once() -> None:
    terms = [re.sub(r"\W+", " ", term.lower()) for term in _terms()]

    assert len(terms) > 100
    assert terms == sorted(set(terms))


def test_modules_that_the_glossary_names_are_there() -> None:
    names = re.findall(r"`((?:wms|matching)(?:\.\w+)+)`", GLOSSARY.read_text())

    missing = [
        name
        for name in names
        if not (path := ROOT / name.replace(".", "/")).is_dir()
        and not path.with_suffix(".py").is_file()
    ]
    assert missing == []
