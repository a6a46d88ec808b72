"""Change history of a configured object from the audit trail: old and new value of each field.

Of long texts the lines that differ. Also the facts of an audit entry that are no change of a field.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from wms.core.audit import cut_target
from wms.core.models import AuditEntry

#: Of the difference of two texts so many lines are told.
MOST_LINES = 200


@dataclass(frozen=True, slots=True)
class Difference:
    """A field with its old and new value. `lines` are those of a text that differ, with their sign.

    Each line is `(sign, text)`: the sign is `-`, `+` or a space for a line that stayed.
    """

    name: str
    old: Any
    new: Any
    lines: tuple[tuple[str, str], ...] = ()
    is_cut: bool = False


def changes_of(target: str) -> QuerySet[AuditEntry]:
    """Audit entries of the object named `target`, latest first."""
    return AuditEntry.objects.filter(target=cut_target(target)).order_by("-pk")


def differences(facts: Mapping[str, Any]) -> Iterator[Difference]:
    """Changed fields among the facts of an entry, without those that stayed empty."""
    for name, pair in facts.items():
        if not _is_pair(pair):
            continue
        old, new = pair
        if old in (None, "") and new in (None, "", [], {}):
            continue
        lines, is_cut = _lines(old, new)
        yield Difference(name, old, new, lines, is_cut)


def further_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of an entry that are no change of a field."""
    return {name: value for name, value in facts.items() if not _is_pair(value)}


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2


def _lines(old: Any, new: Any) -> tuple[tuple[tuple[str, str], ...], bool]:
    """Lines that differ between two texts, where at least one has several lines."""
    texts = [value if isinstance(value, str) else "" for value in (old, new)]
    if not any("\n" in text for text in texts):
        return (), False
    before, after = (text.splitlines() for text in texts)
    # The first two lines name files, those with @@ tell numbers of lines.
    told = [
        (line[:1], line[1:])
        for line in list(difflib.unified_diff(before, after, lineterm="", n=2))[2:]
        if not line.startswith("@@")
    ]
    return tuple(told[:MOST_LINES]), len(told) > MOST_LINES
