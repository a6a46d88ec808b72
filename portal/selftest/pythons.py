"""Self-test of Python: releases with faults that affect Pilotage, ends of their maintenance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from portal.selftest.findings import Code, Finding, ok, warning

Version = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of all releases from `since` on and before `until`."""

    code: Code
    since: Version
    until: Version
    what: str
    why: str


FAULTS = (
    # Mended by gh-100061 and gh-106052; Debian 12 has 3.11.2.
    Fault(
        Code.PYTHON_REPEATS,
        (3, 11, 0),
        (3, 11, 5),
        "its module re matches possessive repeats and atomic groups wrongly",
        "Pilotage uses none: its rules for failures are matched by RE2. Scripts of nodes and "
        "payloads of queues on this host that run with this Python may find what is not there, and "
        "miss what is.",
    ),
)
#: The end of corrections for faults of security, by the calendar of python.org.
ENDS = {
    (3, 11): date(2027, 10, 31),
    (3, 12): date(2028, 10, 31),
    (3, 13): date(2029, 10, 31),
    (3, 14): date(2030, 10, 31),
}


def faults_of(version: Version, today: date) -> Iterator[Finding]:
    """Known faults of this release."""
    name = ".".join(map(str, version))
    found = [each for each in FAULTS if each.since <= version < each.until]
    for each in found:
        first_good = ".".join(map(str, each.until))
        yield warning(
            each.code,
            f"Python {name}: {each.what}.",
            each.why,
            f"Run Pilotage with Python {first_good} or newer: remove .venv, then `make up "
            "PYTHON=...`. Or tell users not to rely on it.",
        )
    end = ENDS.get(version[:2])
    if end is not None and today > end:
        yield warning(
            Code.PYTHON_UNMAINTAINED,
            f"Python {name} has had no corrections from python.org since {end:%Y-%m-%d}.",
            "Faults that let others in stay open, unless the distribution mends them.",
            "Run Pilotage with a newer Python.",
        )
    elif not found:
        yield ok(Code.PYTHON, f"Python {name} has no fault that matters here.")
