"""DAG command GATE: a node without jobs that waits for a person's yes, or for a time.

Also the reading of durations and times, and which commands a gate can have.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from wms.core.models import Role
from wms.dags.language.commands.nodes import add_node, check_name
from wms.dags.language.faults import Fault
from wms.dags.language.lexer import keyword
from wms.dags.language.parse_state import Cursor
from wms.dags.language.spec import GateSpec
from wms.dags.states import NodeKind

_DURATION = re.compile(r"([0-9]{1,9})([smhdw]?)\Z", re.IGNORECASE)
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
#: The longest deadline, ten years: more is a mistake.
MAX_DEADLINE_S = 10 * 366 * 86_400
#: People, groups and roles in one BY.
MAX_NAMED = 50
_KINDS = ("user", "group", "role")
_EXPECTED = (
    "expected: GATE name [BY kind:name,...] [DEADLINE duration [THEN OPEN|CLOSE]], "
    "or GATE name UNTIL time"
)


def gate(cursor: Cursor, rest: str) -> None:
    """`GATE name [BY who] [DEADLINE duration [THEN OPEN|CLOSE]]`, or `GATE name UNTIL time`."""
    name, *options = cursor.words(rest) or [""]
    if not name:
        raise Fault(_EXPECTED)
    check_name(cursor, name)
    spec = _read_options(options)
    node = add_node(cursor, name, NodeKind.GATE, "", cursor.scope.directory)
    node.gate = spec
    cursor.note_addition("gates, and would wait for nobody")
    cursor.state.spec.gates.append(node)


def _read_options(words: Sequence[str]) -> GateSpec:
    given: dict[str, str] = {}
    for option, value in zip(words[::2], [*words[1::2], ""], strict=False):
        name = keyword(option)
        if name not in {"BY", "DEADLINE", "THEN", "UNTIL"} or name in given or not value:
            raise Fault(f"{_EXPECTED}; found: {option[:80]}")
        given[name] = value
    if "UNTIL" in given:
        if len(given) > 1:
            raise Fault("a gate that opens at a time (UNTIL) has nothing else")
        return GateSpec(opens_at=_time(given["UNTIL"]))
    if "THEN" in given and "DEADLINE" not in given:
        raise Fault("THEN tells what happens at the DEADLINE: one is needed")
    return GateSpec(
        who=_who(given["BY"]) if "BY" in given else (),
        deadline_s=_duration(given["DEADLINE"]) if "DEADLINE" in given else 0,
        opens_then=_opens(given.get("THEN", "CLOSE")),
    )


def _opens(word: str) -> bool:
    if keyword(word) not in {"OPEN", "CLOSE"}:
        raise Fault(f"at the DEADLINE a gate does THEN OPEN or THEN CLOSE, found: {word[:80]}")
    return keyword(word) == "OPEN"


def _who(text: str) -> tuple[str, ...]:
    """People, groups and roles, each as `kind:name`. Raises Fault."""
    named = text.split(",")
    if len(named) > MAX_NAMED:
        raise Fault(f"BY names at most {MAX_NAMED} people, groups and roles")
    for each in named:
        kind, colon, name = each.partition(":")
        if kind not in _KINDS or not colon or not name:
            raise Fault(f"BY names user:..., group:... or role:..., found: {each[:80]}")
        if kind == "role" and name not in Role.values:
            raise Fault(f"there is no role {name[:80]}, only {', '.join(Role.values)}")
        if kind == "role" and name == Role.VIEWER:
            raise Fault("a viewer changes nothing, and cannot open a gate")
    return tuple(dict.fromkeys(named))


def _duration(text: str) -> int:
    """Seconds of a duration. Raises Fault."""
    match = _DURATION.match(text)
    seconds = int(match[1]) * _SECONDS[match[2].lower()] if match else 0
    if not 0 < seconds <= MAX_DEADLINE_S:
        raise Fault(
            "a DEADLINE is a number of seconds, or of s, m, h, d or w as in 12h, up to ten years; "
            f"found: {text[:80]}"
        )
    return seconds


def _time(text: str) -> datetime:
    """Moment, in UTC. Raises Fault."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise Fault(
        "UNTIL is followed by a time with its offset from UTC, as 2026-12-01T06:00Z or "
        f"2026-12-01T06:00+01:00; found: {text[:80]}"
    )
