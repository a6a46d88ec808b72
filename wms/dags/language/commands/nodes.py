"""DAG commands that define nodes: JOB, SUBDAG, DATA, FINAL, PROVISIONER, SERVICE.

Also SUBMIT-DESCRIPTION, submit descriptions inside of DAG files, and the checks of names and
directories of nodes and splices.
"""

from __future__ import annotations

from wms.dags.language.faults import DagTooLarge, Fault
from wms.dags.language.lexer import keyword
from wms.dags.language.parse_state import ALL_NODES, Cursor
from wms.dags.language.size_limits import MAX_NAME_LENGTH
from wms.dags.language.spec import InlineDescription, NodeSpec, SourceLocation
from wms.dags.states import NodeKind
from wms.jobs.content.paths import MAX_PATH_BYTES

#: Words that cannot be names.
RESERVED = frozenset({"PARENT", "CHILD", ALL_NODES})
_JOB = NodeKind.JOB
_GRAPH_KINDS = frozenset({NodeKind.SUBDAG, NodeKind.DATA, NodeKind.GATE})
_EXPECTED = {NodeKind.SUBDAG: "SUBDAG EXTERNAL name file", NodeKind.DATA: "DATA name request"}


def job(cursor: Cursor, rest: str) -> None:
    """`JOB name description [DIR d] [NOOP] [DONE]`."""
    words = cursor.words(rest)
    if len(words) == 2 and words[1][:1] not in "{@":
        check_name(cursor, words[0])
        add_node(cursor, words[0], _JOB, words[1], cursor.scope.directory)
    else:
        _make_node(cursor, words, _JOB, frozenset({"DIR", "NOOP", "DONE"}))


def subdag(cursor: Cursor, rest: str) -> None:
    """`SUBDAG EXTERNAL name file [DIR d] [NOOP] [DONE]`."""
    words = cursor.words(rest)
    if not words or keyword(words[0]) != "EXTERNAL":
        raise Fault(f"expected: {_EXPECTED[NodeKind.SUBDAG]}")
    _make_node(cursor, words[1:], NodeKind.SUBDAG, frozenset({"DIR", "NOOP", "DONE"}))


def data(cursor: Cursor, rest: str) -> None:
    """`DATA name request [DIR d] [NOOP] [DONE]`."""
    _make_node(cursor, cursor.words(rest), NodeKind.DATA, frozenset({"DIR", "NOOP", "DONE"}))


def final(cursor: Cursor, rest: str) -> None:
    """`FINAL name description [DIR d] [NOOP]`: at most one, and none in splices."""
    _refuse_second(cursor, rest, NodeKind.FINAL)
    _make_node(cursor, cursor.words(rest), NodeKind.FINAL, frozenset({"DIR", "NOOP"}))


def provisioner(cursor: Cursor, rest: str) -> None:
    """`PROVISIONER name description [DIR d]`: at most one, and none in splices."""
    _refuse_second(cursor, rest, NodeKind.PROVISIONER)
    _make_node(cursor, cursor.words(rest), NodeKind.PROVISIONER, frozenset({"DIR"}))


def service(cursor: Cursor, rest: str) -> None:
    """`SERVICE name description [DIR d]`."""
    _make_node(cursor, cursor.words(rest), NodeKind.SERVICE, frozenset({"DIR"}))


def submit_description(cursor: Cursor, rest: str) -> None:
    """`SUBMIT-DESCRIPTION name {`, lines, `}`: a description that nodes refer to by name."""
    words = cursor.words(rest)
    if len(words) != 2 or _closing(words[1]) is None:
        _skip_block(cursor, words)
        raise Fault("expected: SUBMIT-DESCRIPTION name {")
    key, options = _take_description(cursor, words[1])
    if options:
        raise Fault(f"unexpected behind the description: {options[0]}")
    name = words[0]
    if name in cursor.scope.shared:
        first = cursor.state.spec.descriptions[cursor.scope.shared[name]].location
        raise Fault(f"description {name} is there twice, first in {cursor.text_of(first)}")
    cursor.scope.shared[name] = key
    cursor.state.shared[cursor.scope.prefix] = cursor.scope.shared


def _refuse_second(cursor: Cursor, rest: str, kind: NodeKind) -> None:
    first = next((node for node in cursor.state.special if node.kind == kind), None)
    if first is None and not cursor.scope.depth:
        return
    _skip_block(cursor, cursor.words(rest))
    if first is None or cursor.scope.depth:
        raise Fault(f"{cursor.scope.kind_words} cannot have a {kind.upper()} node")
    where = cursor.text_of(first.location)
    raise Fault(f"a DAG has one {kind.upper()} node at most: {first.name} of {where} is it")


def _make_node(cursor: Cursor, words: list[str], kind: NodeKind, allowed: frozenset[str]) -> None:
    """Add a node from the words after its command."""
    if len(words) < 2:
        raise Fault(f"expected: {_EXPECTED.get(kind) or f'{cursor.command} name description'}")
    name, source, *rest = words
    is_inline = _closing(source) is not None and kind != NodeKind.SUBDAG
    if is_inline:
        if rest:
            _skip_block(cursor, words[:2])
            raise Fault(f"unexpected after {source}: {rest[0]}")
        source, rest = _take_description(cursor, source)
    check_name(cursor, name)
    directory, options = _read_options(cursor, rest, allowed)
    node = add_node(cursor, name, kind, source, directory)
    node.is_noop = "NOOP" in options
    node.is_done = "DONE" in options


def _read_options(
    cursor: Cursor, words: list[str], allowed: frozenset[str]
) -> tuple[str, set[str]]:
    """Directory of a node, and which of DIR, NOOP and DONE are given, in any order."""
    directory, options = cursor.scope.directory, set[str]()
    position = 0
    while position < len(words):
        option = keyword(words[position])
        if option not in allowed:
            raise Fault(_unexpected_word(cursor, words[position], option))
        if option == "DIR":
            position += 1
            if position == len(words):
                raise Fault("DIR needs a directory")
            directory = directory_below(cursor, words[position])
        options.add(option)
        position += 1
    return directory, options


def _unexpected_word(cursor: Cursor, word: str, option: str) -> str:
    if option in {"NOOP", "DONE", "DIR"}:
        return f"a {cursor.command} node cannot have {option}"
    hint = ": a comment takes a whole line" if word.startswith(("#", "//")) else ""
    return f"unexpected at the end: {word}{hint}"


def directory_below(cursor: Cursor, name: str) -> str:
    """Directory called `name` in the directory of the scope; empty for the top of the workspace."""
    if name and cursor.state.origin.inside(cursor.scope.directory, name) == ".":
        return ""
    return cursor.path(name)


def check_name(cursor: Cursor, name: str) -> None:
    """Raise Fault for a name that a node or a splice cannot have here."""
    scope = cursor.scope
    if name in scope.names or name in scope.splices or name in scope.others:
        first = cursor.text_of(_location_of_name(cursor, name))
        raise Fault(f"{name} is defined twice, first in {first}")
    if name.upper() in RESERVED:
        raise Fault(f"{name} cannot be a name: it is a word of the language")
    if "+" in name:
        raise Fault(f"a name cannot contain +, which separates those of splices: {name}")
    if not name or len(scope.prefix) + len(name) > MAX_NAME_LENGTH:
        raise Fault(f"a name has 1 to {MAX_NAME_LENGTH} characters, those of its splices included")
    if '"' in name or "'" in name or not name.isprintable() or " " in name:
        raise Fault(f"a name has neither blanks nor quotes nor control characters: {name!r}")


def _location_of_name(cursor: Cursor, name: str) -> SourceLocation:
    scope = cursor.scope
    if name in scope.splices:
        return scope.splices[name].location
    node = scope.others.get(name) or cursor.state.specs[scope.names[name]]
    return node.location


def add_node(cursor: Cursor, name: str, kind: NodeKind, source: str, directory: str) -> NodeSpec:
    """Add a node to the DAG. `source` is resolved later, when all descriptions are known."""
    state, scope = cursor.state, cursor.scope
    full_name = scope.prefix + name
    at = len(state.specs)
    if at >= state.limits.max_nodes:
        raise DagTooLarge(f"a DAG has at most {state.limits.max_nodes} nodes")
    node = NodeSpec(full_name, kind, source, cursor.file, cursor.line, directory)
    state.specs.append(node)
    state.spec.nodes[full_name] = node
    if kind is _JOB or kind in _GRAPH_KINDS:
        scope.names[name] = at
    else:
        scope.others[name] = node
        state.special.append(node)
    return node


def _closing(word: str) -> str | None:
    """Closing mark of the inline description that this word opens; None if it opens none."""
    if word == "{":
        return "}"
    return word[0] + word[2:] if word.startswith("@=") and len(word) > 2 else None


def _take_description(cursor: Cursor, opening: str) -> tuple[str, list[str]]:
    """Key of the inline description that begins on the next line, and the words after its end.

    The key cannot be the path of a file.
    """
    block = cursor.source.take_block(cursor.line - 1, _closing(opening) or "")
    if block is None:
        raise Fault(f"the description is not closed by {_closing(opening)} at a line's beginning")
    text, rest = block
    key = f"{cursor.file}//{cursor.line}"
    if len(key) > MAX_PATH_BYTES:
        raise Fault("no description can stand in a file with so long a path")
    cursor.state.spec.descriptions[key] = InlineDescription(text, cursor.location)
    return key, cursor.words(rest)


def _skip_block(cursor: Cursor, words: list[str]) -> None:
    """Skip the inline description of a faulty line, so that it is not read as commands."""
    closing = next(filter(None, map(_closing, words)), None)
    if closing is not None:
        cursor.source.take_block(cursor.line - 1, closing)
