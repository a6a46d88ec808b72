"""Generator of docs/reference/states.md from the tables of transitions.

    python -m portal.cli.document_states

Needs neither settings nor servers.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path

from portal.cli.state_directory import BASE
from portal.shared.state_words import ENTITIES, Entity

DOCUMENT = BASE / "docs" / "reference" / "states.md"

_HEAD = """\
# States and events

Made from the transition tables in `wms/*/states.py` by `python -m portal.cli.document_states`; a
test fails when the two differ. A state changes only by one of these events, which is stored with
its actor and time in the transaction of the change. Who asks for an event in a state that is not
in its column *from* changes nothing and is told so. An event to *the same* only notes something.
A reason is for people, and its words may change; programs go by the cause, which is empty where
nothing went wrong and nobody acted: `cause` of an event, `state_cause` of what it happened to.
"""


def render() -> str:
    """Text of docs/reference/states.md."""
    return "\n".join([_HEAD, *(_section(entity) for entity in ENTITIES)])


def _section(entity: Entity) -> str:
    states = [
        f"| `{state}` | {_place(entity, state)} | {entity.state_meanings[state]} |"
        for state in entity.states.values
    ]
    events = [
        _event(entity, name, step.sources, f"`{step.target}`", step.needs_reason)
        for name, step in entity.transitions.items()
    ]
    events += [
        _event(entity, name, states, "the same", needs_reason=False)
        for name, states in entity.notes.items()
    ]
    return "\n".join(
        [
            f"## {entity.title}",
            "",
            "| state | | meaning |",
            "|---|---|---|",
            *states,
            "",
            "| event | from | to | needs reason | meaning |",
            "|---|---|---|---|---|",
            *events,
            *_causes(entity),
            "",
        ]
    )


def _causes(entity: Entity) -> list[str]:
    if entity.causes is None:
        return []
    causes = [f"| `{value}` | {label} |" for value, label in entity.causes.choices]
    return ["", "| cause | meaning |", "|---|---|", *causes]


def _place(entity: Entity, state: str) -> str:
    if state == entity.first:
        return "first"
    return "end" if state in entity.terminal else ""


def _event(
    entity: Entity, name: str, sources: Collection[str], target: str, needs_reason: bool
) -> str:
    states = ", ".join(f"`{state}`" for state in entity.states.values if state in sources)
    reason = "yes" if needs_reason else ""
    return f"| {name} | {states} | {target} | {reason} | {entity.event_meanings[name]} |"


def main(document: Path = DOCUMENT) -> int:
    document.write_text(render(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
