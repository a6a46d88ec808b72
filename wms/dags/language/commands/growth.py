"""DAG commands of nodes after which the DAG grows: REPEAT and EXPAND; the names of passes.

Pilotage's own: DAGMan knows neither. WHILE is a ClassAd expression over the outcome of the pass
that has ended, see `wms.dags.joins.outcomes`. Also what cannot stand in a fragment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice

from wms.core.errors import Finding, InvalidInput
from wms.dags.language.commands.conditions import check_condition
from wms.dags.language.faults import Fault, ReadingStopped
from wms.dags.language.lexer import unquote
from wms.dags.language.numbers import whole
from wms.dags.language.parse_state import Cursor, ParseState
from wms.dags.language.size_limits import (
    MAX_FINDINGS,
    MAX_FRAGMENTS,
    MAX_NAME_LENGTH,
    MAX_PASSES,
)
from wms.dags.language.spec import DagSpec, Expansion, NodeSpec, Repeat, Variable
from wms.dags.states import COUNTED_KINDS, NodeKind
from wms.jobs.content.paths import checked_path

#: Between the name of a node and the number of its pass.
PASS_MARK = "#"
#: Between the path of a fragment and the number of its copy.
COPY_MARK = ".grown"
#: The variable of a node that has the number of its pass.
PASS_VARIABLE = "PASS"
_WHILE = re.compile(r"WHILE\s*(\(.*\))\s*MAX\s+(\S+)\s*\Z", re.IGNORECASE | re.DOTALL)
_EXPECTED = "expected: REPEAT name WHILE (expression) MAX n"


def pass_name(name: str, pass_number: int) -> str:
    """Name of a pass of the node whose first pass has this name."""
    return name if pass_number == 1 else f"{name}{PASS_MARK}{pass_number}"


def first_name(name: str, pass_number: int) -> str:
    """Name of the first pass of a node, by the name and the number of another one."""
    return name if pass_number == 1 else name.removesuffix(f"{PASS_MARK}{pass_number}")


def repeat(cursor: Cursor, rest: str) -> None:
    """`REPEAT name WHILE (expression) MAX n`: passes follow while it is true of the last one."""
    name, *behind = cursor.source.head(rest) or [""]
    match = _WHILE.match(behind[0]) if behind else None
    if match is None:
        raise Fault(_EXPECTED)
    text = match[1].strip()
    check_condition(text, word="WHILE", about="node")
    most = whole(match[2], "MAX of REPEAT", least=1, most=MAX_PASSES)
    node = growing_node(cursor, unquote(name))
    node.grows = Repeat(text, most, cursor.location)
    cursor.note_addition("REPEAT")


def expand(cursor: Cursor, rest: str) -> None:
    """`EXPAND name file`: the DAG fragment that the node returns follows it."""
    words = cursor.words(rest)
    if len(words) != 2:
        raise Fault("expected: EXPAND name file")
    node = growing_node(cursor, words[0])
    path = cursor.state.path(node.directory, words[1])
    if fault := copy_fault(path):
        raise Fault(f"no copy of {words[1][:80]} could be kept: {fault}")
    node.grows = Expansion(path, cursor.location)
    cursor.note_addition("EXPAND")


def copy_path(path: str, number: int) -> str:
    """Path of the copy of a fragment that is kept with the DAG that grew by it."""
    return f"{path}{COPY_MARK}{number:03d}"


def copy_fault(path: str) -> str:
    """Reason why no copy of a fragment could be kept; empty if one can."""
    try:
        checked_path(copy_path(path, MAX_FRAGMENTS))
    except InvalidInput as error:
        return error.findings[0].message
    return ""


def fragment_faults(spec: DagSpec) -> list[Finding]:
    """Faults about nodes that a fragment of a running DAG cannot have."""
    return list(islice(_fragment_faults(spec), MAX_FINDINGS))


def _fragment_faults(spec: DagSpec) -> Iterator[Finding]:
    for node in spec.nodes.values():
        if node.kind not in COUNTED_KINDS:
            message = f"a fragment cannot have a {node.kind.upper()} node"
        elif node.is_done:
            message = f"{node.name} is new, and cannot be DONE"
        else:
            continue
        yield Finding(message, *node.location, command=node.kind.upper())


def growing_node(cursor: Cursor, name: str) -> NodeSpec:
    """The node of a line after which the DAG grows. Raises Fault for one that cannot have it."""
    node = cursor.node(name)
    if node.kind is NodeKind.GATE:
        raise Fault(f"{name} is a GATE node, which cannot have {cursor.command}")
    if node.grows is not None:
        first = node.grows.location
        where = f"{first.file}, line {first.line}"
        raise Fault(f"{name} has one of REPEAT and EXPAND already, by {where}")
    cursor.state.spec.growing.append(node)
    return node


def check_growth(state: ParseState) -> None:
    """Tell repeated nodes the number of their pass, and add faults for names of their passes."""
    repeated = {each.name: each for each in state.spec.growing if isinstance(each.grows, Repeat)}
    if not repeated:
        return
    marked = [name for name in state.spec.nodes if PASS_MARK in name]
    with suppress(ReadingStopped):
        for node in repeated.values():
            _check_variables(state, node)
        for name in marked:
            first, _, number = name.rpartition(PASS_MARK)
            if first in repeated and number.isdigit():
                message = f"{name} is the name of a pass of {first}, and of another node"
                state.collector.add_fault(message, state.spec.nodes[name].location, "REPEAT")


def _check_variables(state: ParseState, node: NodeSpec) -> None:
    rule = node.grows
    assert isinstance(rule, Repeat)
    if len(pass_name(node.name, rule.most)) > MAX_NAME_LENGTH:
        message = f"the names of its passes would have more than {MAX_NAME_LENGTH} characters"
        state.collector.add_fault(f"{node.name}: {message}", rule.location, "REPEAT")
    given = (node.variables or {}).get(PASS_VARIABLE.lower())
    if given is not None:
        message = f"{given.name} of {node.name} is the number of its pass, by REPEAT"
        state.collector.add_fault(message, given.location, "VARS")
    node.variables = {**(node.variables or {}), **_pass_variable(rule)}


def _pass_variable(rule: Repeat) -> dict[str, Variable]:
    value = str(rule.pass_number)
    return {PASS_VARIABLE.lower(): Variable(PASS_VARIABLE, value, rule.location)}


def next_pass(node: NodeSpec) -> NodeSpec:
    """The pass after this one of a repeated node."""
    rule = node.grows
    assert isinstance(rule, Repeat)
    number = rule.pass_number + 1
    following = replace(rule, pass_number=number)
    return replace(
        node,
        name=pass_name(first_name(node.name, rule.pass_number), number),
        grows=following,
        variables={**(node.variables or {}), **_pass_variable(following)},
        is_done=False,
        save_point=None,
    )
