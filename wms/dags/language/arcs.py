"""PARENT and CHILD, weak ones as well."""

from __future__ import annotations

from wms.dags.language.faults import Fault, FollowsFromAnother
from wms.dags.language.lexer import keyword, split_blanks
from wms.dags.language.reading import Here

_CHILD = "CHILD"


def parent(here: Here, rest: str) -> None:
    """`PARENT p1 p2 ... CHILD c1 c2 ...`; a further CHILD among the children says nothing.

    Source: DagParser::ParseParentChild (HTCondor 25.14, dag_parser.cpp).
    """
    # Most arcs stand alone on their line; no name has blanks or quotes in it.
    words = rest.split() if here.source.is_plain else split_blanks(rest)
    if len(words) == 3 and words[1] == "CHILD":
        names = here.scope.names
        above, below = names.get(words[0]), names.get(words[2])
        if above is not None and below is not None:
            here.reading.arcs.add(above, below, here.file, here.line)
            return
    _add_arcs(here, here.words(rest), is_weak=False)


def weak(here: Here, rest: str) -> None:
    """`WEAK PARENT p1 p2 ... CHILD c1 c2 ...`: the children wait for the end, not for success."""
    words = here.words(rest)
    if not words or keyword(words[0]) != "PARENT":
        raise Fault("expected: WEAK PARENT names... CHILD names...")
    _add_arcs(here, words[1:], is_weak=True)


def _add_arcs(here: Here, words: list[str], *, is_weak: bool) -> None:
    at = next((i for i, word in enumerate(words) if word.upper() == _CHILD), None)
    if at is None:
        raise Fault("expected: PARENT names... CHILD names...")
    parents = words[:at]
    children = [word for word in words[at + 1 :] if word.upper() != _CHILD]
    if not parents or not children:
        raise Fault("PARENT and CHILD need at least one name each")
    _check_names(here, parents, "parent")
    _check_names(here, children, "child")
    here.reading.arcs.add_product(
        _terminal(here, parents), _initial(here, children), here.place, is_weak=is_weak
    )


def _check_names(here: Here, names: list[str], kind: str) -> None:
    scope = here.scope
    unknown = [name for name in names if name not in scope.names and name not in scope.splices]
    for name in unknown:
        if name in scope.others:
            what = scope.others[name].kind.upper()
            raise Fault(f"{name} is a {what} node, which has neither parents nor children")
    told = [name for name in unknown if name not in scope.broken]
    if told:
        raise Fault(f"unknown {kind} {', '.join(told[:20])}")
    if unknown:
        raise FollowsFromAnother


def _terminal(here: Here, names: list[str]) -> list[int]:
    """The nodes at which arcs from these begin, each once."""
    found: dict[int, None] = {}
    for name in names:
        splice = here.scope.splices.get(name)
        if splice is None:
            found[here.scope.names[name]] = None
        else:
            here.reading.charge_ends(len(splice.terminal))
            found.update(dict.fromkeys(splice.terminal))
    return list(found)


def _initial(here: Here, names: list[str]) -> list[int]:
    """The nodes at which arcs to these end, each once."""
    found: dict[int, None] = {}
    for name in names:
        splice = here.scope.splices.get(name)
        if splice is None:
            found[here.scope.names[name]] = None
            continue
        splice.child_at = splice.child_at or here.place
        if splice.connected_at is not None:
            line = splice.connected_at.line
            raise Fault(f"splice {name} is joined by its pins in line {line}: it has no parents")
        here.reading.charge_ends(len(splice.initial))
        found.update(dict.fromkeys(splice.initial))
    return list(found)
