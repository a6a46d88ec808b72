"""VARS."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence

from matching.substitution import reference_fault
from wms.dags.language.faults import Fault
from wms.dags.language.lexer import keyword, tokenize, unescape
from wms.dags.language.reading import ALL_NODES, Here
from wms.dags.language.spec import NodeSpec, Place, Variable

_PAIR = re.compile(
    r"""([^\s="']++)\s*+=(?:\s*+"((?:[^"\\]++|\\.)*+)"|\s*+'((?:[^'\\]++|\\.)*+)'|([^\s"']*+))"""
    r"""(?:\s++|\Z)""",
    re.DOTALL,
)
_USUAL = re.compile(r'([^\s"\']++)((?:[ \t]++[\w.+]++="[^"\\]*+")++)\s*+\Z')
_USUAL_PAIR = re.compile(r'([\w.+]++)="([^"\\]*+)"')
_EXPECTED = 'expected: VARS name key="value" ...'


def variables(here: Here, rest: str) -> None:
    """`VARS name [PREPEND|APPEND] key="value" ...`."""
    quick = _read_quickly(rest) if here.source.is_plain else None
    name, is_appended, pairs = quick or _read(here, rest)
    place = Place(here.file, here.line)
    known_names = here.reading.variable_names
    at = here.scope.names.get(name)
    nodes = _less_usual_nodes(here, name, len(pairs)) if at is None else (here.reading.specs[at],)
    for key, value in pairs:
        lowered = known_names.get(key) or _checked_key(here, key)
        if "$" in value and (fault := reference_fault(value)):
            raise Fault(f"{key}: {fault}")
        variable = Variable(key, value, place, is_appended)
        for node in nodes:
            if node.variables is None:
                node.variables = {lowered: variable}
            elif lowered not in node.variables:
                node.variables[lowered] = variable
            else:
                _replace(here, node, lowered, variable)


def _read_quickly(rest: str) -> tuple[str, bool, Sequence[tuple[str, str]]] | None:
    """A line of the usual form: values in double quotes, and nothing that is escaped."""
    found = _USUAL.match(rest)
    return (found[1], False, _USUAL_PAIR.findall(found[2])) if found is not None else None


def _read(here: Here, rest: str) -> tuple[str, bool, Sequence[tuple[str, str]]]:
    head = here.source.head(rest)
    if len(head) < 2:
        raise Fault(_EXPECTED)
    name, text = head
    option, *behind = here.source.head(text)
    option = keyword(option)
    if option in {"PREPEND", "APPEND"}:
        text = behind[0] if behind else ""
    pairs = list(_pairs(text.strip()))
    if not pairs:
        raise Fault(_EXPECTED)
    return tokenize(name)[0], option == "APPEND", pairs


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        found = _PAIR.match(text, at)
        if found is None:
            tokenize(text[at:])
            raise Fault(f'expected key="value", found: {text[at : at + 80]}')
        key, double, single, bare = found.groups()
        yield key, bare if bare is not None else unescape(double or single or "")
        at = found.end()


def _less_usual_nodes(here: Here, name: str, count: int) -> Iterable[NodeSpec]:
    nodes = here.nodes(name)
    if name.upper() == ALL_NODES:
        here.reading.charge(len(here.scope.names) * count * 3)
        here.reading.common_places.add(here.place)
    return nodes


def _checked_key(here: Here, key: str) -> str:
    """The key in lower case, by which it is known. Raises Fault for one that cannot be."""
    lowered = sys.intern(key.lower())
    if not any(char.isalnum() for char in key):
        raise Fault(f"the name of a variable needs a letter or a digit: {key[:80]}")
    if lowered.startswith("queue"):
        raise Fault(f"the name of a variable cannot begin with queue: {key[:80]}")
    here.reading.variable_names[key] = lowered
    return lowered


def _replace(here: Here, node: NodeSpec, lowered: str, variable: Variable) -> None:
    """Give a variable anew. What is appended stands behind all that is prepended, and wins."""
    known = node.variables or {}
    earlier = known[lowered]
    if earlier.place not in here.reading.common_places:
        again = "" if earlier.name == variable.name else f" as {earlier.name}"
        line = earlier.place.line
        here.warn(f"{variable.name} was given{again} in line {line}: the last one counts")
    if variable.is_appended or not earlier.is_appended:
        known[lowered] = variable
