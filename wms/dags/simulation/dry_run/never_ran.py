"""Reasons why nodes never ran in a dry run: failed ancestors, or unfinished parents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_ERROR, _DONE, _SKIPPED = "error", "done", "skipped"
#: Limit of nodes that are named in a reason.
_MAX_NAMED = 5


@dataclass(frozen=True, slots=True)
class NeverRan:
    """A node of which nothing ran, and the reason."""

    name: str
    state: str
    why: str


def failed_ancestors(
    states: Mapping[str, str], parents: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """The first few failed ancestors of each node below a failed one.

    Nodes that are done or failed themselves pass nothing on.
    """
    children: dict[str, list[str]] = defaultdict(list)
    for child, above in parents.items():
        for parent in above:
            children[parent].append(child)
    ancestors: dict[str, list[str]] = defaultdict(list)
    for failed in (name for name, state in states.items() if state == _ERROR):
        stack = [failed]
        while stack:
            for child in children.get(stack.pop(), ()):
                is_new = failed not in ancestors[child] and len(ancestors[child]) < _MAX_NAMED
                if is_new and states.get(child) not in (_DONE, _ERROR):
                    ancestors[child].append(failed)
                    stack.append(child)
    return ancestors


def reason_not_run(
    name: str,
    reason: str,
    failed: Sequence[str],
    states: Mapping[str, str],
    parents: Mapping[str, Sequence[str]],
) -> str:
    """Reason why a node did not run: failed ancestors, its own reason, or unfinished parents."""
    if states.get(name) == _SKIPPED:
        return reason
    if failed:
        return f"{', '.join(failed)} failed"
    waits_for = [each for each in parents.get(name, ()) if states.get(each) != _DONE]
    if waits_for and not reason:
        return f"it waits for {', '.join(waits_for[:_MAX_NAMED])}"
    return reason
