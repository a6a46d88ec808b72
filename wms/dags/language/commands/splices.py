"""DAG commands that read other DAG files (SPLICE, INCLUDE) or join splices (PIN_IN, CONNECT, ...).

CONNECT makes arcs from the out-pins of one splice (PIN_OUT) to the in-pins of another. Also the
nodes of a splice at which arcs begin and end that name it in PARENT lines.
"""

from __future__ import annotations

from collections.abc import Sequence

from wms.dags.language.commands.nodes import check_name, directory_below
from wms.dags.language.faults import Fault
from wms.dags.language.lexer import SourceText, keyword
from wms.dags.language.numbers import whole
from wms.dags.language.parse_state import Cursor, Scope, Splice
from wms.dags.states import COUNTED_KINDS


def splice(cursor: Cursor, rest: str) -> None:
    """`SPLICE name file [DIR d]`: the nodes of the file, with `name+` before their names."""
    words = cursor.words(rest)
    if len(words) not in {2, 4} or (len(words) == 4 and keyword(words[2]) != "DIR"):
        raise Fault("expected: SPLICE name file, and DIR directory if wanted")
    name = words[0]
    check_name(cursor, name)
    directory = directory_below(cursor, words[3]) if len(words) == 4 else cursor.scope.directory
    source = _open(cursor, cursor.state.path(directory, words[1]))
    scope = Scope(f"{cursor.scope.prefix}{name}+", directory, cursor.scope.depth + 1)
    splice_ends = Splice(cursor.location)
    first_node, first_arc = len(cursor.state.specs), len(cursor.state.arcs)
    _read(cursor, scope, source)
    cursor.state.check_time()
    _find_endpoints(splice_ends, scope, cursor, first_node, first_arc)
    cursor.scope.splices[name] = splice_ends


def include(cursor: Cursor, rest: str) -> None:
    """`INCLUDE file`: the lines of the file, as if they stood here."""
    words = cursor.words(rest)
    if len(words) != 1:
        raise Fault("expected: INCLUDE file")
    _read(cursor, cursor.scope, _open(cursor, cursor.path(words[0])))


def _open(cursor: Cursor, path: str) -> SourceText:
    """Lines of a file. Raises Fault when it is missing or would include itself."""
    state = cursor.state
    if path in state.open_files:
        chain = [*state.open_files[state.open_files.index(path) :], path]
        raise Fault(f"recursive {cursor.command} detected: {' -> '.join(chain)}")
    if len(state.open_files) > state.limits.max_splice_depth:
        most = state.limits.max_splice_depth
        raise Fault(f"splices and included files are nested more than {most} deep")
    text = state.text(path)
    if text is None:
        raise Fault(f"file {path} of {cursor.command} is not there")
    return SourceText(text, path)


def _read(cursor: Cursor, scope: Scope, source: SourceText) -> None:
    state = cursor.state
    state.open_files.append(source.file)
    state.read_lines(Cursor(state, scope, source, cursor.depth + 1))
    state.open_files.pop()


def _find_endpoints(
    splice_ends: Splice, scope: Scope, cursor: Cursor, first_node: int, first_arc: int
) -> None:
    """Set the nodes at which arcs to a splice and from it end: those without parents, without
    children.
    """
    parents, children = cursor.state.arcs.endpoints_since(first_arc)
    specs = cursor.state.specs
    own: Sequence[int] = range(first_node, len(specs))
    if cursor.state.special:
        own = [at for at in own if specs[at].kind.value in COUNTED_KINDS]
    splice_ends.initial = [at for at in own if at not in children]
    splice_ends.terminal = [at for at in own if at not in parents]
    splice_ends.pins_in, splice_ends.pins_out = scope.pins_in, scope.pins_out


def pin_in(cursor: Cursor, rest: str) -> None:
    """`PIN_IN node number`."""
    _pin(cursor, rest, cursor.scope.pins_in)


def pin_out(cursor: Cursor, rest: str) -> None:
    """`PIN_OUT node number`."""
    _pin(cursor, rest, cursor.scope.pins_out)


def _pin(cursor: Cursor, rest: str, pins: dict[int, list[int]]) -> None:
    words = cursor.words(rest)
    if len(words) != 2:
        raise Fault(f"expected: {cursor.command} node number")
    number = whole(words[1], "the number of a pin", least=1)
    cursor.node(words[0])
    at = cursor.scope.names[words[0]]
    nodes = pins.setdefault(number, [])
    if at not in nodes:
        nodes.append(at)


def connect(cursor: Cursor, rest: str) -> None:
    """`CONNECT S T`: connects S's out-pins to T's in-pins of the same numbers."""
    words = cursor.words(rest)
    if len(words) != 2:
        raise Fault("expected: CONNECT splice splice")
    above, below = (_splice_of(cursor, name) for name in words)
    _check_pins(words, above, below)
    below.connected_at = cursor.location
    cursor.state.connected_at.add(cursor.location)
    for number, parents in above.pins_out.items():
        children = below.pins_in[number]
        cursor.state.arcs.add_product(parents, children, cursor.location, is_weak=False)


def _splice_of(cursor: Cursor, name: str) -> Splice:
    found = cursor.scope.splices.get(name)
    if found is None:
        if name in cursor.scope.names:
            raise Fault(f"{name} is a node: CONNECT joins the pins of splices")
        cursor.refuse_unknown(name, "splice")
    return found


def _check_pins(names: Sequence[str], above: Splice, below: Splice) -> None:
    """Raise Fault where pins do not match, or nodes that need pins have none."""
    out_name, in_name = names
    for name, pins, kind in ((out_name, above.pins_out, "out"), (in_name, below.pins_in, "in")):
        if not pins:
            raise Fault(f"splice {name} has no {kind}-pins")
        gap = next(number for number in range(1, len(pins) + 2) if number not in pins)
        if gap <= len(pins):
            raise Fault(f"{kind}-pin {gap} of splice {name} is missing: they have no gaps")
    if len(above.pins_out) != len(below.pins_in):
        counts = f"{len(above.pins_out)} out-pins, {in_name} has {len(below.pins_in)} in-pins"
        raise Fault(f"pins of splices are joined one by one, but {out_name} has {counts}")
    if below.child_at is not None:
        line = below.child_at.line
        raise Fault(f"splice {in_name} has parents in line {line}: its in-pins cannot be joined")
    pinned = {at for nodes in below.pins_in.values() for at in nodes}
    if not pinned.issuperset(below.initial):
        raise Fault(f"a node of splice {in_name} has neither parents there nor an in-pin")
