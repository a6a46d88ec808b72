"""The commands that make nodes, and the descriptions that stand in DAG files."""

from __future__ import annotations

from wms.dags.language.bounds import MAX_NAME_LENGTH
from wms.dags.language.faults import Fault, TooMuch
from wms.dags.language.lexer import keyword
from wms.dags.language.reading import ALL_NODES, Here
from wms.dags.language.spec import InlineDescription, NodeSpec, Place
from wms.dags.states import NodeKind
from wms.jobs.content.paths import MAX_PATH_BYTES

_RESERVED = frozenset({"PARENT", "CHILD", ALL_NODES})
_JOB = NodeKind.JOB
_WITH_PLACE = frozenset({NodeKind.SUBDAG, NodeKind.DATA})
_EXPECTED = {NodeKind.SUBDAG: "SUBDAG EXTERNAL name file", NodeKind.DATA: "DATA name request"}


def job(here: Here, rest: str) -> None:
    """`JOB name description [DIR d] [NOOP] [DONE]`."""
    words = here.words(rest)
    if len(words) == 2 and words[1][:1] not in "{@":
        check_name(here, words[0])
        _add(here, words[0], _JOB, words[1], here.scope.directory)
    else:
        _make(here, words, _JOB, frozenset({"DIR", "NOOP", "DONE"}))


def subdag(here: Here, rest: str) -> None:
    """`SUBDAG EXTERNAL name file [DIR d] [NOOP] [DONE]`."""
    words = here.words(rest)
    if not words or keyword(words[0]) != "EXTERNAL":
        raise Fault(f"expected: {_EXPECTED[NodeKind.SUBDAG]}")
    _make(here, words[1:], NodeKind.SUBDAG, frozenset({"DIR", "NOOP", "DONE"}))


def data(here: Here, rest: str) -> None:
    """`DATA name request [DIR d] [NOOP] [DONE]`."""
    _make(here, here.words(rest), NodeKind.DATA, frozenset({"DIR", "NOOP", "DONE"}))


def final(here: Here, rest: str) -> None:
    """`FINAL name description [DIR d] [NOOP]`: at most one, and none in splices."""
    _refuse_second(here, rest, NodeKind.FINAL)
    _make(here, here.words(rest), NodeKind.FINAL, frozenset({"DIR", "NOOP"}))


def provisioner(here: Here, rest: str) -> None:
    """`PROVISIONER name description [DIR d]`: at most one, and none in splices."""
    _refuse_second(here, rest, NodeKind.PROVISIONER)
    _make(here, here.words(rest), NodeKind.PROVISIONER, frozenset({"DIR"}))


def service(here: Here, rest: str) -> None:
    """`SERVICE name description [DIR d]`."""
    _make(here, here.words(rest), NodeKind.SERVICE, frozenset({"DIR"}))


def submit_description(here: Here, rest: str) -> None:
    """`SUBMIT-DESCRIPTION name {`, lines, `}`: a description that nodes name."""
    words = here.words(rest)
    if len(words) != 2 or _closing(words[1]) is None:
        _skip_block(here, words)
        raise Fault("expected: SUBMIT-DESCRIPTION name {")
    key, options = _take_description(here, words[1])
    if options:
        raise Fault(f"unexpected behind the description: {options[0]}")
    name = words[0]
    if name in here.scope.shared:
        first = here.reading.spec.descriptions[here.scope.shared[name]].place
        raise Fault(f"description {name} is there twice, first in {_where(here, first)}")
    here.scope.shared[name] = key
    here.reading.shared[here.scope.prefix] = here.scope.shared


def _refuse_second(here: Here, rest: str, kind: NodeKind) -> None:
    first = next((node for node in here.reading.special if node.kind == kind), None)
    if first is None and not here.scope.depth:
        return
    _skip_block(here, here.words(rest))
    if first is None or here.scope.depth:
        raise Fault(f"a splice cannot have a {kind.upper()} node")
    where = _where(here, first.place)
    raise Fault(f"a DAG has one {kind.upper()} node at most: {first.name} of {where} is it")


def _make(here: Here, words: list[str], kind: NodeKind, allowed: frozenset[str]) -> None:
    """Make a node of the words behind its command."""
    if len(words) < 2:
        raise Fault(f"expected: {_EXPECTED.get(kind) or f'{here.command} name description'}")
    name, source, *rest = words
    is_inline = _closing(source) is not None and kind != NodeKind.SUBDAG
    if is_inline:
        if rest:
            _skip_block(here, words[:2])
            raise Fault(f"unexpected after {source}: {rest[0]}")
        source, rest = _take_description(here, source)
    check_name(here, name)
    directory, options = _read_options(here, rest, allowed)
    node = _add(here, name, kind, source, directory)
    node.is_noop = "NOOP" in options
    node.is_done = "DONE" in options


def _read_options(here: Here, words: list[str], allowed: frozenset[str]) -> tuple[str, set[str]]:
    """DIR, NOOP and DONE in any order, as far as the kind of node has them; DIR's value first."""
    directory, found = here.scope.directory, set[str]()
    position = 0
    while position < len(words):
        option = keyword(words[position])
        if option not in allowed:
            raise Fault(_unexpected(here, words[position], option))
        if option == "DIR":
            position += 1
            if position == len(words):
                raise Fault("DIR needs a directory")
            directory = directory_below(here, words[position])
        found.add(option)
        position += 1
    return directory, found


def _unexpected(here: Here, word: str, option: str) -> str:
    if option in {"NOOP", "DONE", "DIR"}:
        return f"a {here.command} node cannot have {option}"
    hint = ": a comment takes a whole line" if word.startswith(("#", "//")) else ""
    return f"unexpected at the end: {word}{hint}"


def directory_below(here: Here, name: str) -> str:
    """The directory `name` of the scope's; empty for the workspace itself."""
    if name and here.reading.origin.inside(here.scope.directory, name) == ".":
        return ""
    return here.path(name)


def check_name(here: Here, name: str) -> None:
    """Raise Fault for a name that a node or a splice cannot have here."""
    scope = here.scope
    if name in scope.names or name in scope.splices or name in scope.others:
        raise Fault(f"{name} is defined twice, first in {_where(here, _place_of(here, name))}")
    if name.upper() in _RESERVED:
        raise Fault(f"{name} cannot be a name: it is a word of the language")
    if "+" in name:
        raise Fault(f"a name cannot contain +, which separates those of splices: {name}")
    if not name or len(scope.prefix) + len(name) > MAX_NAME_LENGTH:
        raise Fault(f"a name has 1 to {MAX_NAME_LENGTH} characters, those of its splices included")
    if '"' in name or "'" in name or not name.isprintable() or " " in name:
        raise Fault(f"a name has neither blanks nor quotes nor control characters: {name!r}")


def _place_of(here: Here, name: str) -> Place:
    scope = here.scope
    if name in scope.splices:
        return scope.splices[name].place
    node = scope.others.get(name) or here.reading.specs[scope.names[name]]
    return node.place


def _where(here: Here, place: Place) -> str:
    return f"line {place.line}" if place.file == here.file else f"{place.file}, line {place.line}"


def _add(here: Here, name: str, kind: NodeKind, source: str, directory: str) -> NodeSpec:
    """Take a node into the DAG. `source` stays as written until all descriptions are known."""
    reading, scope = here.reading, here.scope
    full_name = scope.prefix + name
    at = len(reading.specs)
    if at >= reading.bounds.max_nodes:
        raise TooMuch(f"a DAG has at most {reading.bounds.max_nodes} nodes")
    node = NodeSpec(full_name, kind, source, Place(here.file, here.line), directory)
    reading.specs.append(node)
    reading.spec.nodes[full_name] = node
    if kind is _JOB or kind in _WITH_PLACE:
        scope.names[name] = at
    else:
        scope.others[name] = node
        reading.special.append(node)
    return node


def _closing(word: str) -> str | None:
    """The mark that closes a description which this word opens."""
    if word == "{":
        return "}"
    return word[0] + word[2:] if word.startswith("@=") and len(word) > 2 else None


def _take_description(here: Here, opening: str) -> tuple[str, list[str]]:
    """Take the description that begins on the next line: its key, and the words behind its end.

    The key is no path, so that it is never taken for a file.
    """
    taken = here.source.take_block(here.line - 1, _closing(opening) or "")
    if taken is None:
        raise Fault(f"the description is not closed by {_closing(opening)} at a line's beginning")
    text, rest = taken
    key = f"{here.file}//{here.line}"
    if len(key) > MAX_PATH_BYTES:
        raise Fault("no description can stand in a file with so long a path")
    here.reading.spec.descriptions[key] = InlineDescription(text, here.place)
    return key, here.words(rest)


def _skip_block(here: Here, words: list[str]) -> None:
    """Pass over a description of a line at fault: its lines are no commands."""
    closing = next(filter(None, map(_closing, words)), None)
    if closing is not None:
        here.source.take_block(here.line - 1, closing)
