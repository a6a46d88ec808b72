"""Files in files: SPLICE and INCLUDE, and the pins by which splices are joined."""

from __future__ import annotations

from collections.abc import Sequence

from wms.dags.language.faults import Fault
from wms.dags.language.lexer import SourceText, keyword
from wms.dags.language.nodes import check_name, directory_below
from wms.dags.language.numbers import whole
from wms.dags.language.reading import Here, Scope, Splice
from wms.dags.states import COUNTED_KINDS


def splice(here: Here, rest: str) -> None:
    """`SPLICE name file [DIR d]`: the nodes of the file, with `name+` before their names."""
    words = here.words(rest)
    if len(words) not in {2, 4} or (len(words) == 4 and keyword(words[2]) != "DIR"):
        raise Fault("expected: SPLICE name file, and DIR directory if wanted")
    name = words[0]
    check_name(here, name)
    directory = directory_below(here, words[3]) if len(words) == 4 else here.scope.directory
    source = _open(here, here.reading.path(directory, words[1]))
    scope = Scope(f"{here.scope.prefix}{name}+", directory, here.scope.depth + 1)
    outside = Splice(here.place)
    first_node, first_arc = len(here.reading.specs), len(here.reading.arcs)
    _read(here, scope, source)
    here.reading.check_time()
    _look_from_outside(outside, scope, here, first_node, first_arc)
    here.scope.splices[name] = outside


def include(here: Here, rest: str) -> None:
    """`INCLUDE file`: as if its text stood here."""
    words = here.words(rest)
    if len(words) != 1:
        raise Fault("expected: INCLUDE file")
    _read(here, here.scope, _open(here, here.path(words[0])))


def _open(here: Here, path: str) -> SourceText:
    """The lines of a file. Raises Fault when it is not there or would read itself."""
    reading = here.reading
    if path in reading.open_files:
        chain = [*reading.open_files[reading.open_files.index(path) :], path]
        raise Fault(f"recursive {here.command} detected: {' -> '.join(chain)}")
    if len(reading.open_files) > reading.bounds.max_splice_depth:
        most = reading.bounds.max_splice_depth
        raise Fault(f"splices and included files are nested more than {most} deep")
    text = reading.text(path)
    if text is None:
        raise Fault(f"file {path} of {here.command} is not there")
    return SourceText(text, path)


def _read(here: Here, scope: Scope, source: SourceText) -> None:
    reading = here.reading
    reading.open_files.append(source.file)
    reading.read_lines(Here(reading, scope, source, here.depth + 1))
    reading.open_files.pop()


def _look_from_outside(
    outside: Splice, scope: Scope, here: Here, first_node: int, first_arc: int
) -> None:
    """Find where arcs to a splice and from it end: at its nodes without parents and children."""
    parents, children = here.reading.arcs.ends_since(first_arc)
    specs = here.reading.specs
    own: Sequence[int] = range(first_node, len(specs))
    if here.reading.special:
        own = [at for at in own if specs[at].kind.value in COUNTED_KINDS]
    outside.initial = [at for at in own if at not in children]
    outside.terminal = [at for at in own if at not in parents]
    outside.pins_in, outside.pins_out = scope.pins_in, scope.pins_out


def pin_in(here: Here, rest: str) -> None:
    """`PIN_IN node number`."""
    _pin(here, rest, here.scope.pins_in)


def pin_out(here: Here, rest: str) -> None:
    """`PIN_OUT node number`."""
    _pin(here, rest, here.scope.pins_out)


def _pin(here: Here, rest: str, pins: dict[int, list[int]]) -> None:
    words = here.words(rest)
    if len(words) != 2:
        raise Fault(f"expected: {here.command} node number")
    number = whole(words[1], "the number of a pin", least=1)
    here.node(words[0])
    at = here.scope.names[words[0]]
    nodes = pins.setdefault(number, [])
    if at not in nodes:
        nodes.append(at)


def connect(here: Here, rest: str) -> None:
    """`CONNECT S T`: joins S's out-pins to T's in-pins of the same numbers."""
    words = here.words(rest)
    if len(words) != 2:
        raise Fault("expected: CONNECT splice splice")
    above, below = (_splice_of(here, name) for name in words)
    _check_pins(words, above, below)
    below.connected_at = here.place
    here.reading.connected_at.add(here.place)
    for number, parents in above.pins_out.items():
        children = below.pins_in[number]
        here.reading.arcs.add_product(parents, children, here.place, is_weak=False)


def _splice_of(here: Here, name: str) -> Splice:
    found = here.scope.splices.get(name)
    if found is None:
        if name in here.scope.names:
            raise Fault(f"{name} is a node: CONNECT joins the pins of splices")
        here.refuse_unknown(name, "splice")
    return found


def _check_pins(names: Sequence[str], above: Splice, below: Splice) -> None:
    """Raise Fault where pins do not fit each other, or do not hold all that they should."""
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
