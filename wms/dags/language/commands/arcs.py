"""DAG commands that make arcs: PARENT ... CHILD, with a condition or not, and WEAK PARENT."""

from __future__ import annotations

from wms.dags.language.commands.conditions import add_conditions, check_condition, split_condition
from wms.dags.language.faults import ConsequentFault, Fault
from wms.dags.language.lexer import keyword, split_blanks
from wms.dags.language.parse_state import Cursor

_CHILD = "CHILD"


def parent(cursor: Cursor, rest: str) -> None:
    """`PARENT p1 p2 ... CHILD c1 c2 ... [WHEN (expression)]`; a further CHILD among the children is
    ignored.

    Source: DagParser::ParseParentChild (HTCondor 25.14, dag_parser.cpp).
    """
    # Most arcs stand alone on their line; no name has blanks or quotes in it.
    words = rest.split() if cursor.source.is_plain else split_blanks(rest)
    if len(words) == 3 and words[1] == "CHILD":
        names = cursor.scope.names
        above, below = names.get(words[0]), names.get(words[2])
        if above is not None and below is not None:
            cursor.state.arcs.add(above, below, cursor.file, cursor.line)
            return
    arc, condition = split_condition(rest)
    if condition:
        check_condition(condition)
    _add_arcs(cursor, cursor.words(arc), is_weak=False, condition=condition)


def weak(cursor: Cursor, rest: str) -> None:
    """`WEAK PARENT p1 p2 ...

    CHILD c1 c2 ...`: children wait for the end of parents, not for success.
    """
    if split_condition(rest)[1]:
        raise Fault("a weak arc holds whatever its parent did: it has no WHEN")
    words = cursor.words(rest)
    if not words or keyword(words[0]) != "PARENT":
        raise Fault("expected: WEAK PARENT names... CHILD names...")
    _add_arcs(cursor, words[1:], is_weak=True)


def _add_arcs(cursor: Cursor, words: list[str], *, is_weak: bool, condition: str = "") -> None:
    child_index = next((i for i, word in enumerate(words) if word.upper() == _CHILD), None)
    if child_index is None:
        raise Fault("expected: PARENT names... CHILD names...")
    parents = words[:child_index]
    children = [word for word in words[child_index + 1 :] if word.upper() != _CHILD]
    if not parents or not children:
        raise Fault("PARENT and CHILD need at least one name each")
    _check_names(cursor, parents, "parent")
    _check_names(cursor, children, "child")
    above, below = _terminal_nodes(cursor, parents), _initial_nodes(cursor, children)
    if condition:
        add_conditions(cursor, above, below, condition)
    cursor.state.arcs.add_product(above, below, cursor.location, is_weak=is_weak)


def _check_names(cursor: Cursor, names: list[str], kind: str) -> None:
    scope = cursor.scope
    unknown = [name for name in names if name not in scope.names and name not in scope.splices]
    for name in unknown:
        if name in scope.others:
            what = scope.others[name].kind.upper()
            raise Fault(f"{name} is a {what} node, which has neither parents nor children")
    unexplained = [name for name in unknown if name not in scope.broken]
    if unexplained:
        raise Fault(f"unknown {kind} {', '.join(unexplained[:20])}")
    if unknown:
        raise ConsequentFault


def _terminal_nodes(cursor: Cursor, names: list[str]) -> list[int]:
    """Nodes at which arcs from these names begin, each once; of a splice those without children."""
    positions: dict[int, None] = {}
    for name in names:
        splice = cursor.scope.splices.get(name)
        if splice is None:
            positions[cursor.scope.names[name]] = None
        else:
            cursor.state.charge_ends(len(splice.terminal))
            positions.update(dict.fromkeys(splice.terminal))
    return list(positions)


def _initial_nodes(cursor: Cursor, names: list[str]) -> list[int]:
    """Nodes at which arcs to these names end, each once; of a splice those without parents."""
    positions: dict[int, None] = {}
    for name in names:
        splice = cursor.scope.splices.get(name)
        if splice is None:
            positions[cursor.scope.names[name]] = None
            continue
        splice.child_at = splice.child_at or cursor.location
        if splice.connected_at is not None:
            line = splice.connected_at.line
            raise Fault(f"splice {name} is joined by its pins in line {line}: it has no parents")
        cursor.state.charge_ends(len(splice.initial))
        positions.update(dict.fromkeys(splice.initial))
    return list(positions)
