"""Job attributes that payloads write into a file as `Name = value`: read, bounded, reported.

Heartbeats send them until the server has accepted them.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..control import Attempt
from .job_directories import JobDirectories, attempt_directory

MOST_BYTES = 4096
MOST_NAMES = 20
#: Largest part of one heartbeat for attributes: the server bounds what it reads.
MOST_BYTES_OF_HEARTBEAT = 100_000

#: Attributes by name: whole numbers and texts.
Values = dict[str, Any]

# The server refuses a whole heartbeat for what it does not take, so this takes nothing else.
_LINE = re.compile(
    r"""\s*(?P<name>[A-Za-z_][A-Za-z0-9_]{0,63})\s*=\s*
    (?:(?P<number>[+-]?[0-9]{1,18})|"(?P<text>(?:[^"\\\x00-\x1f\x7f]|\\["\\]){0,1000})")\s*""",
    re.VERBOSE,
)
_ESCAPED = re.compile(r"\\(.)")


def read_attributes(file: Path) -> Values:
    """Attributes in the file: none if it is no plain file, too large, or not UTF-8.

    Lines of any other form are ignored. It is the payload's file, which may be anything and
    change at any moment.
    """
    try:
        text = _bounded(file).decode()
    except (OSError, UnicodeDecodeError):
        return {}
    values: Values = {}
    for line in text.split("\n"):
        match = _LINE.fullmatch(line)
        if match is None or (len(values) == MOST_NAMES and match["name"] not in values):
            continue
        number, text_value = match["number"], match["text"]
        values[match["name"]] = int(number) if number else _ESCAPED.sub(r"\1", text_value)
    return values


def _bounded(file: Path) -> bytes:
    """Content of a plain file. A link is not followed, and a pipe not waited for."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as opened:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        content = opened.read(MOST_BYTES + 1)
    return content if len(content) <= MOST_BYTES else b""


class ReportedAttributes:
    """Attributes that the server has accepted of each attempt at hand."""

    def __init__(self, work_dir: Path) -> None:
        self._work_dir = work_dir
        self._accepted: dict[Attempt, Values] = {}

    def entries(self, held: Sequence[Attempt]) -> list[dict[str, Any]]:
        """Heartbeat entries, one for each attempt, with its attributes where they are new.

        Attributes beyond the size of one heartbeat go with the next.
        """
        left = MOST_BYTES_OF_HEARTBEAT
        entries: list[dict[str, Any]] = []
        for attempt in held:
            entry: dict[str, Any] = {"job": attempt[0], "attempt": attempt[1]}
            values = read_attributes(
                JobDirectories(attempt_directory(self._work_dir, attempt)).attributes_file
            )
            size = len(json.dumps(values))
            if values and values != self._accepted.get(attempt) and size <= left:
                entry["attributes"] = values
                left -= size
            entries.append(entry)
        return entries

    def accepted(self, entries: Sequence[dict[str, Any]]) -> None:
        """The server has taken these entries. Attempts that are not among them are over."""
        before = self._accepted
        self._accepted = {}
        for entry in entries:
            attempt = (entry["job"], entry["attempt"])
            values = entry.get("attributes", before.get(attempt))
            if values is not None:
                self._accepted[attempt] = values
