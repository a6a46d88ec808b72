"""Warnings for attributes in job requirements that neither pilots nor jobs define.

Each suggests the similar name that may be meant. Names of attributes that checks of nodes publish
are left out: which of them a pilot has depends on its queue.
"""

from __future__ import annotations

import difflib
import re
from functools import lru_cache

from matching.ads.expressions import Reference, references
from matching.task_queues.published import is_published_name
from matching.task_queues.resources import NEEDS_ATTRIBUTES, PILOT_ATTRIBUTES

_CLOSE = 0.7
#: Number of attributes that are listed for one expression.
_MAX_NAMES = 5
#: Longer names are like none.
_LONGEST_LIKE = 64
_OF_PILOTS = {name.lower(): name for name in PILOT_ATTRIBUTES}
_OF_JOBS = {name.lower(): name for name in NEEDS_ATTRIBUTES}
_KNOWN = {
    "target": _OF_PILOTS.keys(),
    "my": _OF_JOBS.keys(),
    "": _OF_PILOTS.keys() | _OF_JOBS.keys(),
}


# The nodes of a DAG have few different ones.
@lru_cache(maxsize=1024)
def unknown_attributes(requirements: str) -> tuple[str, ...]:
    """One sentence, without its full stop, for each attribute that no pilot or job defines."""
    found = dict.fromkeys(
        reference
        for reference in references(requirements)
        if reference.name not in _KNOWN[reference.scope]
        and (reference.scope == "my" or not is_published_name(reference.name))
    )
    return tuple(_sentence(reference, requirements) for reference in list(found)[:_MAX_NAMES])


def _sentence(reference: Reference, text: str) -> str:
    spelled = re.search(rf"(?<!\w){re.escape(reference.name)}(?!\w)", text, re.IGNORECASE)
    name = spelled.group() if spelled else reference.name
    who = "job" if reference.scope == "my" else "pilot"
    meant = _meant(reference)
    return f"no {who} has an attribute {name}" + (f"; did you mean {meant}?" if meant else "")


def _meant(reference: Reference) -> str:
    """Suggestion for an unknown attribute: the same name of the other ad, or a similar name."""
    name, scope = reference.name, reference.scope
    if scope == "my" and name in _OF_PILOTS:
        return f"TARGET.{_OF_PILOTS[name]}"
    if scope == "target" and name in _OF_JOBS:
        return f"MY.{_OF_JOBS[name]}"
    if len(name) > _LONGEST_LIKE:
        return ""
    spelled = {**_OF_JOBS, **_OF_PILOTS}
    close = difflib.get_close_matches(name, sorted(_KNOWN[scope]), 1, _CLOSE)
    return spelled[close[0]] if close else ""
