"""The nodes of which nothing ran in a simulation, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_ERROR, _DONE = "error", "done"
#: So many nodes are named as the reason for one.
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class NeverRan:
    """A node of which nothing ran, and why."""

    name: str
    state: str
    why: str


def failed_above(
    states: Mapping[str, str], parents: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """The failed ancestors of the nodes below failed ones, some of them where there are many.

    Nodes that are done, or failed themselves, hand nothing down. Every arc is walked a few times.
    """
    children: dict[str, list[str]] = defaultdict(list)
    for child, above in parents.items():
        for parent in above:
            children[parent].append(child)
    found: dict[str, list[str]] = defaultdict(list)
    for failed in (name for name, state in states.items() if state == _ERROR):
        left = [failed]
        while left:
            for child in children.get(left.pop(), ()):
                is_new = failed not in found[child] and len(found[child]) < _MOST_NAMED
                if is_new and states.get(child) not in (_DONE, _ERROR):
                    found[child].append(failed)
                    left.append(child)
    return found


def reason_of(
    name: str,
    told: str,
    failed: Sequence[str],
    states: Mapping[str, str],
    parents: Mapping[str, Sequence[str]],
) -> str:
    """Why a node did not run: what failed above it, what was told of it, or what it waits for."""
    if failed:
        return f"{', '.join(failed)} failed"
    waits_for = [each for each in parents.get(name, ()) if states.get(each) != _DONE]
    if waits_for and not told:
        return f"it waits for {', '.join(waits_for[:_MOST_NAMED])}"
    return told
