"""Names of objects on the command line: `7` and `d7` are DAG 7, `c12` a cluster, `j42` a job.

`d7/NAME` is a node, a uuid a pilot, `s:NAME` a site, `q5` a TaskQueue, `f3` a failure group.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import UsageError

_FORMS = (
    ("node", re.compile(r"(?:d|dag:)?(?P<id>\d{1,18})/(?P<name>.+)")),
    ("dag", re.compile(r"(?:d|dag:)?(?P<id>\d{1,18})")),
    ("cluster", re.compile(r"(?:c|cluster:)(?P<id>\d{1,18})")),
    ("job", re.compile(r"(?:j|job:)(?P<id>\d{1,18})")),
    ("failure", re.compile(r"(?:f|failure:)(?P<id>\d{1,18})")),
    ("task_queue", re.compile(r"(?:q|queue:)(?P<id>\d{1,18})")),
    ("pilot", re.compile(r"(?P<name>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")),
    ("site", re.compile(r"(?:s|site):(?P<name>.+)")),
)
#: Subject of a note that is about the shift as a whole.
SHIFT_LOG = "log"
HELP = "7 or d7: a DAG; c12: a cluster; j42: a job"


def _way_from(kind: str, text: str, kinds: Sequence[str]) -> str:
    """Way from an object to those that are taken."""
    if kind in ("dag", "cluster") and "job" in kinds:
        return f" `pilotage q {text} --jobs` lists its jobs."
    return ""


@dataclass(frozen=True)
class Target:
    """An object that a command is about: its kind, its number or name, and how it was written."""

    kind: str
    id: int
    name: str
    text: str


def target(text: str, *kinds: str) -> Target:
    """The object that is named so, of one of these kinds. Raises UsageError."""
    for kind, form in _FORMS:
        match = form.fullmatch(text)
        if match is None:
            continue
        if kinds and kind not in kinds:
            wanted = " or ".join(each.replace("_", " ") for each in kinds)
            raise UsageError(
                f"{text} is a {kind.replace('_', ' ')}; this takes a {wanted}."
                + _way_from(kind, text, kinds)
            )
        found = match.groupdict()
        return Target(kind, int(found.get("id") or 0), found.get("name") or "", text)
    raise UsageError(
        f"{text} names nothing: write d7 for a DAG, c12 for a cluster, j42 for a job, d7/NAME for "
        "a node, s:NAME for a site, f3 for a failure group, or the uuid of a pilot."
    )
