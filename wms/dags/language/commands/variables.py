"""DAG command VARS: macros and job attributes of single nodes.

Source: DagParser::ParseVars and DagLexer::next_key_value_pair (HTCondor 25.14, dag_parser.cpp).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from matching.descriptions.substitution import MAX_TEXT_LENGTH, reference_fault
from wms.dags.language.faults import Fault
from wms.dags.language.lexer import BLANKS, end_of_word, keyword, skip_blanks, take_word, unescape
from wms.dags.language.parse_state import ALL_NODES, Cursor, Key
from wms.dags.language.size_limits import MAX_VARIABLES
from wms.dags.language.spec import NodeSpec, SourceLocation, Variable

_KEY = re.compile(r"[^ \t\r=]+")
_QUOTED_PART = re.compile(r""""[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*'""", re.DOTALL)
_KEY_BEFORE_QUOTE = re.compile(r"[ \t]+([\w.+]+)[ \t]*=[ \t]*\Z")
#: The node, whether the values are appended, and their keys and they.
_Line = tuple[str, bool, list[tuple[Key, str]]]
#: A value for a node takes more room than a number does.
_WEIGHT = 4
_EXPECTED = 'expected: VARS name key="value" ...'


def variables(cursor: Cursor, rest: str) -> None:
    """`VARS name [PREPEND|APPEND] key="value" ...`."""
    if _read_simple_line(cursor, rest):
        return
    name, is_appended, pairs = _read_line(cursor, rest)
    nodes = cursor.nodes(name)
    if name.upper() == ALL_NODES:
        cursor.state.charge_values(len(cursor.scope.names) * len(pairs) * (_WEIGHT - 1))
        cursor.state.all_nodes_locations.add(cursor.location)
    for (key, lowered), value in pairs:
        if "$$" in value and len(value) > MAX_TEXT_LENGTH:
            raise Fault(f"{key}: a value with $$ has at most {MAX_TEXT_LENGTH} characters")
        if fault := reference_fault(value):
            raise Fault(f"{key}: {fault}")
        variable = Variable(key, value, cursor.location, is_appended)
        for node in nodes:
            _set_variable(cursor, node, lowered, variable)


def _read_simple_line(cursor: Cursor, rest: str) -> bool:
    """Read a line of the usual form: one node, values in double quotes, no escapes.

    False, without any change, for a line of another form.
    """
    parts = rest.split('"')
    name, blank, parts[0] = parts[0].lstrip(BLANKS).partition(" ")
    position = cursor.scope.names.get(name)
    is_usual = len(parts) > 2 and len(parts) & 1 and not parts[-1].strip(BLANKS)
    if position is None or not is_usual or "\\" in rest or "$$" in rest:
        return False
    parts[0] = blank + parts[0]
    keys, location = cursor.state.variable_keys, SourceLocation(cursor.file, cursor.line)
    given: dict[str, Variable] = {}
    for text, value in zip(parts[::2], parts[1::2], strict=False):
        key = keys.get(text) or _cached_key(cursor, text)
        if key is None or key[1] in given:
            return False
        given[key[1]] = Variable(key[0], value, location)
    node = cursor.state.specs[position]
    if node.gate is not None or len(given) + len(node.variables or ()) > MAX_VARIABLES:
        return False
    if node.variables is None:
        node.variables = given
    elif node.variables.keys().isdisjoint(given):
        changeable_variables(node).update(given)
    else:
        return False
    return True


def _cached_key(cursor: Cursor, text: str) -> Key | None:
    """Key of `key=` before a quote, cached since many lines have the same ones."""
    match = _KEY_BEFORE_QUOTE.match(text)
    if match is None:
        return None
    key = cursor.state.variable_keys[text] = checked_key(match[1])
    return key


def _read_line(cursor: Cursor, rest: str) -> _Line:
    name, text = take_word(rest)
    option, *behind = cursor.source.head(text) or [""]
    option = keyword(option)
    if option in {"PREPEND", "APPEND"}:
        text = behind[0] if behind else ""
    pairs = [(checked_key(key), value) for key, value in _pairs(text.strip(BLANKS))]
    if not pairs:
        raise Fault(_EXPECTED)
    return name, option == "APPEND", pairs


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Keys and values of a line; blanks may stand on both sides of `=`."""
    position = 0
    while position < len(text):
        start = position
        match = _KEY.match(text, position)
        position = skip_blanks(text, match.end() if match else position)
        if match is None or not text.startswith("=", position):
            raise Fault(f'expected key="value", found: {text[start : start + 80]}')
        key = match[0]
        if '"' in key or "'" in key:
            raise Fault(f"the name of a variable has no quotes: {key[:80]}")
        begin = skip_blanks(text, position + 1)
        end = end_of_word(text, begin)
        yield key, _value(key, text[begin:end])
        position = skip_blanks(text, end)


def _value(key: str, written: str) -> str:
    """Value without the quotes around it; quotes inside of it are kept.

    A blank ends it, unless it stands between two quotes of a kind. So `"a "b" c"` is `a "b" c`.
    """
    if not written or written.startswith("="):
        raise Fault(f'{key} has no value: write {key}="" for an empty one')
    value = _QUOTED_PART.sub(lambda part: unescape(part[0]), written)
    if written[0] not in "\"'":
        return value
    if written[-1] != written[0]:
        raise Fault(f"{key}: the value goes on behind its quote: {written[:80]}")
    return value[1:-1]


def checked_key(key: str) -> Key:
    """Key as written, and in lower case. Raises Fault for an invalid one."""
    lowered = sys.intern(key.lower())
    if not any(char.isalnum() for char in key):
        raise Fault(f"the name of a variable needs a letter or a digit: {key[:80]}")
    if lowered.startswith("queue"):
        raise Fault(f"the name of a variable cannot begin with queue: {key[:80]}")
    return sys.intern(key), lowered


def _set_variable(cursor: Cursor, node: NodeSpec, lowered: str, variable: Variable) -> None:
    """Set a variable of a node. Appended values override prepended ones."""
    variables = changeable_variables(node)
    earlier = variables.get(lowered)
    if earlier is None and len(variables) >= MAX_VARIABLES:
        raise Fault(f"a node has at most {MAX_VARIABLES} variables")
    if earlier is not None and earlier.location not in cursor.state.all_nodes_locations:
        again = "" if earlier.name == variable.name else f" as {earlier.name}"
        first = cursor.text_of(earlier.location)
        cursor.warn(f"{variable.name} was given{again} in {first}: the last one counts")
    if earlier is None or variable.is_appended or not earlier.is_appended:
        variables[lowered] = variable


def changeable_variables(node: NodeSpec) -> dict[str, Variable]:
    """Variables of a node, as a dictionary of its own that may be changed."""
    variables = node.variables
    if not isinstance(variables, dict):
        variables = node.variables = dict(variables or {})
    return variables
