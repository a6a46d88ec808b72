"""Reader of plain JOB, VARS and PARENT lines, thousands at once; all others are read one by one.

Large DAGs are written by programs: long runs of lines of one command in its simplest form. A run
is read as a whole only where every line of it is without a fault, a warning, and anything that
came before; else nothing of it is changed, and its lines are read one by one. So what is read, and
what is said about it, is always the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from sys import intern
from typing import NamedTuple

from wms.dags.language.faults import Fault
from wms.dags.language.nodes import RESERVED
from wms.dags.language.parse_state import Cursor, Scope
from wms.dags.language.size_limits import MAX_NAME_LENGTH
from wms.dags.language.spec import NodeSpec, SourceLocation, Variable
from wms.dags.language.variables import checked_key
from wms.dags.states import NodeKind

#: In between the time is looked at, and the lines of one fault are read again one by one.
_MOST_LINES = 1024
#: Lines with many parents and children make more of them than are kept as numbers of Python's.
_MOST_ARCS = 100_000
#: For these a pattern is made.
_MOST_KEYS = 20
#: With fewer it takes longer to begin than is gained.
_LEAST_LINES = 16
#: Every word of a plain line stands for itself: none has quotes, escapes or `+` in it.
_WORD = r"[A-Za-z0-9_.:/-]++"
_GAP = r"[ \t]++"
_END = r"[ \t\r]*+(?=\n|\Z)"
_PAIRS = rf'(?:{_GAP}[A-Za-z0-9_.+]++="[^"\\\n]*+")++'
_JOB = rf"JOB{_GAP}({_WORD}){_GAP}({_WORD}){_END}"
_VARS = rf"VARS{_GAP}{_WORD}({_PAIRS}){_END}"
_PARENT = rf"PARENT((?:{_GAP}(?!CHILD[ \t]){_WORD})++){_GAP}CHILD((?:{_GAP}{_WORD})++){_END}"


def _run_of(line: str) -> str:
    """Pattern of a run of these lines, behind the end of the line before it."""
    line = re.sub(r"\((?!\?)", "(?:", line)
    return rf"{line}(?:\n{line}){{0,{_MOST_LINES - 1}}}+"


_RUN = re.compile(rf"\n(?:(?P<JOB>{_run_of(_JOB)})|(?P<VARS>{_run_of(_VARS)})|{_run_of(_PARENT)})")
_JOB_LINE = re.compile(rf"\n{_JOB}")
_VARS_LINE = re.compile(rf"\n{_VARS}")
_PARENT_LINE = re.compile(rf"\n{_PARENT}")
_KEY = re.compile(r'([A-Za-z0-9_.+]+)="[^"]*"')


class PlainRun(NamedTuple):
    """Lines of one command: the index of the first, their number, and where they are in the text.

    The text begins with the end of the line before.
    """

    command: str
    at: int
    length: int
    start: int
    end: int

    @property
    def lines(self) -> range:
        """Indexes of the lines."""
        return range(self.at, self.at + self.length)

    @property
    def is_of_first_pass(self) -> bool:
        """Whether the lines define nodes."""
        return self.command == "JOB"


def plain_runs(text: str) -> Iterator[PlainRun]:
    """Runs of plain lines in a text, as they stand there."""
    at = position = 0
    for match in _RUN.finditer(text):
        start, end = match.span()
        at += text.count("\n", position, start)
        count = text.count("\n", start, end)
        if count >= _LEAST_LINES:
            yield PlainRun(match.lastgroup or "PARENT", at + 1, count, start, end)
        at += count
        position = end


def read_run(cursor: Cursor, run: PlainRun) -> bool:
    """Read the lines of a run at once. False, without any change, if they cannot be so read."""
    return _READERS[run.command](cursor, run)


def _read_jobs(cursor: Cursor, run: PlainRun) -> bool:
    state, scope = cursor.state, cursor.scope
    pairs = _JOB_LINE.findall(cursor.source.text, run.start, run.end)
    given = dict(pairs)
    first = len(state.specs)
    if (
        len(given) < run.length
        or first + run.length > state.limits.max_nodes
        or len(scope.prefix) + max(map(len, given)) > MAX_NAME_LENGTH
        or not all(known.keys().isdisjoint(given) for known in _names_of(scope))
        or not RESERVED.isdisjoint(map(str.upper, given))
    ):
        return False
    file, prefix, directory = cursor.file, scope.prefix, scope.directory
    kind = NodeKind.JOB
    specs = [
        NodeSpec(prefix + name, kind, intern(source), SourceLocation(file, line), directory)
        for line, (name, source) in enumerate(pairs, run.at + 1)
    ]
    state.specs += specs
    state.spec.nodes.update({node.name: node for node in specs})
    scope.names.update(zip(given, range(first, first + run.length), strict=True))
    return True


def _names_of(scope: Scope) -> tuple[Mapping[str, object], ...]:
    return scope.names, scope.splices, scope.others


def _read_variables(cursor: Cursor, run: PlainRun) -> bool:
    """Lines that all set the same variables, of nodes that have had none."""
    text, state = cursor.source.text, cursor.state
    if text.find("$$", run.start, run.end) >= 0:
        return False
    sample = _VARS_LINE.match(text, run.start)
    names = _KEY.findall(sample[1]) if sample is not None else []
    keys = _checked_keys(names)
    if not keys:
        return False
    rows = _lines_with(tuple(names)).findall(text, run.start, run.end)
    positions = [cursor.scope.names.get(row[0]) for row in rows]
    if len(rows) < run.length or len({*positions} - {None}) < run.length:
        return False
    nodes = [state.specs[at] for at in positions if at is not None]
    if any(node.variables is not None for node in nodes):
        return False
    file = cursor.file
    for line, (node, (_, *values)) in enumerate(zip(nodes, rows, strict=True), run.at + 1):
        location = SourceLocation(file, line)
        node.variables = {
            lowered: Variable(key, value, location)
            for (key, lowered), value in zip(keys, values, strict=True)
        }
    return True


def _checked_keys(names: Sequence[str]) -> list[tuple[str, str]] | None:
    """Keys of a line, as they are written and in lower case; None if they cannot be so read."""
    if len(names) > _MOST_KEYS:
        return None
    try:
        keys = [checked_key(name) for name in names]
    except Fault:
        return None
    return keys if len({lowered for _, lowered in keys}) == len(keys) else None


@lru_cache(maxsize=64)
def _lines_with(names: tuple[str, ...]) -> re.Pattern[str]:
    """Pattern of VARS lines that set exactly these variables, in this order."""
    pairs = "".join(rf'{_GAP}{re.escape(name)}="([^"\\\n]*+)"' for name in names)
    return re.compile(rf"\nVARS{_GAP}({_WORD}){pairs}{_END}")


def _read_arcs(cursor: Cursor, run: PlainRun) -> bool:
    names = cursor.scope.names
    keys: list[tuple[int, int]] = []
    lines: list[int] = []
    room = _MOST_ARCS
    found = _PARENT_LINE.findall(cursor.source.text, run.start, run.end)
    try:
        for line, (above, below) in enumerate(found, run.at + 1):
            parents = [names[name] for name in above.split()]
            children = [names[name] for name in below.split()]
            if len(parents) > 1 and len({*parents}) < len(parents):
                return False
            if len(children) > 1 and len({*children}) < len(children):
                return False
            room -= len(parents) * len(children)
            if room < 0:
                return False
            pairs = [(parent, child) for parent in parents for child in children]
            keys += pairs
            lines += [line] * len(pairs)
    except KeyError:
        return False
    return cursor.state.arcs.add_all(keys, lines, cursor.file)


_READERS: dict[str, Callable[[Cursor, PlainRun], bool]] = {
    "JOB": _read_jobs,
    "VARS": _read_variables,
    "PARENT": _read_arcs,
}
