"""VARS."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from matching.substitution import MAX_TEXT_LENGTH, reference_fault
from wms.dags.language.bounds import MAX_VARIABLES
from wms.dags.language.faults import Fault
from wms.dags.language.lexer import keyword, tokenize, unescape
from wms.dags.language.reading import ALL_NODES, Here, Key
from wms.dags.language.spec import NodeSpec, Place, Variable

_PAIR = re.compile(
    r"""([^\s="']++)\s*+=(?:\s*+"((?:[^"\\]++|\\.)*+)"|\s*+'((?:[^'\\]++|\\.)*+)'|([^\s"']*+))"""
    r"""(?:\s++|\Z)""",
    re.DOTALL,
)
_KEY_BEFORE_QUOTE = re.compile(r"[ \t]++([\w.+]++)=\Z")
_BLANKS = " \t\r"
#: The node, whether the values are appended, and their keys and they.
_Line = tuple[str, bool, list[tuple[Key, str]]]
#: A value for a node takes more room than a number does.
_WEIGHT = 4
_EXPECTED = 'expected: VARS name key="value" ...'


def variables(here: Here, rest: str) -> None:
    """`VARS name [PREPEND|APPEND] key="value" ...`."""
    if _take_quickly(here, rest):
        return
    name, is_appended, pairs = _read(here, rest)
    nodes = here.nodes(name)
    if name.upper() == ALL_NODES:
        here.reading.charge(len(here.scope.names) * len(pairs) * (_WEIGHT - 1))
        here.reading.common_places.add(here.place)
    for (key, lowered), value in pairs:
        if "$$" in value and len(value) > MAX_TEXT_LENGTH:
            raise Fault(f"{key}: a value with $$ has at most {MAX_TEXT_LENGTH} characters")
        if fault := reference_fault(value):
            raise Fault(f"{key}: {fault}")
        variable = Variable(key, value, here.place, is_appended)
        for node in nodes:
            _give(here, node, lowered, variable)


def _take_quickly(here: Here, rest: str) -> bool:
    """Take a line of the usual form: about a node, values in double quotes, nothing escaped.

    False for another one, of which nothing was taken.
    """
    parts = rest.split('"')
    name, blank, parts[0] = parts[0].rpartition(" ")
    at = here.scope.names.get(name)
    if at is None or not len(parts) & 1 or "\\" in rest or "$$" in rest or parts[-1].strip(_BLANKS):
        return False
    parts[0] = blank + parts[0]
    known, place = here.reading.variable_keys, Place(here.file, here.line)
    given: dict[str, Variable] = {}
    for text, value in zip(parts[::2], parts[1::2], strict=False):
        key = known.get(text) or _usual_key(here, text)
        if key is None or key[1] in given:
            return False
        given[key[1]] = Variable(key[0], value, place)
    node = here.reading.specs[at]
    if len(given) + len(node.variables or ()) > MAX_VARIABLES:
        return False
    if node.variables is None:
        node.variables = given
    elif node.variables.keys().isdisjoint(given):
        node.variables.update(given)
    else:
        return False
    return True


def _usual_key(here: Here, text: str) -> Key | None:
    """The key of `key=` before a quote. Many lines have the same ones, so it is kept."""
    found = _KEY_BEFORE_QUOTE.match(text)
    if found is None:
        return None
    key = here.reading.variable_keys[text] = _checked_key(found[1])
    return key


def _read(here: Here, rest: str) -> _Line:
    head = here.source.head(rest)
    if len(head) < 2:
        raise Fault(_EXPECTED)
    name, text = head
    option, *behind = here.source.head(text)
    option = keyword(option)
    if option in {"PREPEND", "APPEND"}:
        text = behind[0] if behind else ""
    pairs = [(_checked_key(key), value) for key, value in _pairs(text.strip())]
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


def _checked_key(key: str) -> Key:
    """The key, and in lower case. Raises Fault for one that cannot be."""
    lowered = sys.intern(key.lower())
    if not any(char.isalnum() for char in key):
        raise Fault(f"the name of a variable needs a letter or a digit: {key[:80]}")
    if lowered.startswith("queue"):
        raise Fault(f"the name of a variable cannot begin with queue: {key[:80]}")
    return sys.intern(key), lowered


def _give(here: Here, node: NodeSpec, lowered: str, variable: Variable) -> None:
    """Give a node a variable. What is appended stands behind all that is prepended, and wins."""
    if node.variables is None:
        node.variables = {}
    earlier = node.variables.get(lowered)
    if earlier is None and len(node.variables) >= MAX_VARIABLES:
        raise Fault(f"a node has at most {MAX_VARIABLES} variables")
    if earlier is not None and earlier.place not in here.reading.common_places:
        again = "" if earlier.name == variable.name else f" as {earlier.name}"
        line = earlier.place.line
        here.warn(f"{variable.name} was given{again} in line {line}: the last one counts")
    if earlier is None or variable.is_appended or not earlier.is_appended:
        node.variables[lowered] = variable
