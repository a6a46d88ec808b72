"""Changes of texts line by line, as unified differences, for the page of an edited copy."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

#: Lines of one text that are compared, and lines of one difference that are shown.
_MOST_COMPARED: Final = 10_000
_MOST_SHOWN: Final = 400


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a difference; `kind` is added, removed, place or same."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class TextChange:
    """Difference of one text; without lines it is too long to be compared."""

    path: str
    lines: Sequence[DiffLine] = ()
    is_cut: bool = False


_KINDS = {"+": "added", "-": "removed", "@": "place"}


def change_of(path: str, before: str, now: str) -> TextChange:
    """Difference between two texts of one file."""
    old, new = before.split("\n"), now.split("\n")
    if max(len(old), len(new)) > _MOST_COMPARED:
        return TextChange(path)
    # The two lines at its head name files.
    found = islice(difflib.unified_diff(old, new, lineterm=""), 2, _MOST_SHOWN + 3)
    lines = [DiffLine(_KINDS.get(line[:1], "same"), line) for line in found]
    return TextChange(path, lines[:_MOST_SHOWN], is_cut=len(lines) > _MOST_SHOWN)
