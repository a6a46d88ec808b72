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

from wms.dags.language.commands.nodes import RESERVED
from wms.dags.language.commands.variables import checked_key
from wms.dags.language.faults import Fault
from wms.dags.language.lexer import Stretch
from wms.dags.language.parse_state import Cursor, Scope
from wms.dags.language.plain_values import MOST_LINES, PlainLines
from wms.dags.language.size_limits import MAX_NAME_LENGTH
from wms.dags.language.spec import NodeSpec
from wms.dags.states import NodeKind

#: Lines with many parents and children make more of them than are kept as numbers of Python's.
_MOST_ARCS = 100_000
#: For these a pattern is made.
_MOST_KEYS = 20
#: With fewer it takes longer to begin than is gained.
_LEAST_LINES = 16
# Groups are not repeated by `++` and the like: Python 3.11.2, which is Debian 12's, takes the part
# of a last turn that fails half-way for matched.
#: Every word of a plain line stands for itself: none has quotes, escapes or `+` in it.
_WORD = r"[A-Za-z0-9_.:/-]++"
_GAP = r"[ \t]++"
_END = r"[ \t\r]*+(?=\n|\Z)"
_PAIRS = rf'(?>(?:{_GAP}[A-Za-z0-9_.+]++="[^"\\\n]*+")+)'
_JOB = rf"JOB{_GAP}({_WORD}){_GAP}({_WORD}){_END}"
_VARS = rf"VARS{_GAP}{_WORD}({_PAIRS}){_END}"
_PARENTS = rf"(?>(?:{_GAP}(?!CHILD[ \t]){_WORD})+)"
_CHILDREN = rf"(?>(?:{_GAP}{_WORD})+)"
_PARENT = rf"PARENT({_PARENTS}){_GAP}CHILD({_CHILDREN}){_END}"


def _run_of(line: str) -> str:
    """Pattern of a run of these lines, behind the end of the line before it."""
    line = re.sub(r"\((?!\?)", "(?:", line)
    return rf"{line}(?>(?:\n{line}){{0,{MOST_LINES - 1}}})"


_RUN = re.compile(rf"\n(?:(?P<JOB>{_run_of(_JOB)})|(?P<VARS>{_run_of(_VARS)})|{_run_of(_PARENT)})")
_JOB_LINE = re.compile(rf"\n{_JOB}")
_VARS_LINE = re.compile(rf"\n{_VARS}")
_PARENT_LINE = re.compile(rf"\n{_PARENT}")
_KEY = re.compile(r'([A-Za-z0-9_.+]+)="[^"]*"')


class PlainRun(NamedTuple):
    """Lines of one command: their place in the text, the index of the first, and their number."""

    command: str
    stretch: Stretch

    @property
    def at(self) -> int:
        """Index of the first line."""
        return self.stretch.at

    @property
    def length(self) -> int:
        """Number of the lines."""
        return self.stretch.length

    @property
    def span(self) -> tuple[int, int]:
        """Begin and end of the lines in the text."""
        return self.stretch.start, self.stretch.end

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
            yield PlainRun(match.lastgroup or "PARENT", Stretch(at + 1, count, start, end))
        at += count
        position = end


def read_run(cursor: Cursor, run: PlainRun) -> bool:
    """Read the lines of a run at once. False, without any change, if they cannot be so read."""
    return _READERS[run.command](cursor, run)


def _read_jobs(cursor: Cursor, run: PlainRun) -> bool:
    state, scope = cursor.state, cursor.scope
    pairs = _JOB_LINE.findall(cursor.source.text, *run.span)
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
        NodeSpec(prefix + name, kind, intern(source), file, line, directory)
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
    start, end = run.span
    if text.find("$$", start, end) >= 0:
        return False
    sample = _VARS_LINE.match(text, start)
    names = _KEY.findall(sample[1]) if sample is not None else []
    keys = _checked_keys(names)
    if not keys:
        return False
    rows = _lines_with(tuple(names)).findall(text, start, end)
    positions = [cursor.scope.names.get(row[0]) for row in rows]
    if len(rows) < run.length or len({*positions} - {None}) < run.length:
        return False
    nodes = [state.specs[at] for at in positions if at is not None]
    if any(node.variables is not None for node in nodes):
        return False
    lines = PlainLines(cursor.file, run.at + 1, keys, [row[1:] for row in rows])
    for node, values in zip(nodes, lines, strict=True):
        node.variables = values
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
    starts: list[int] = []
    ends: list[int] = []
    lines: list[int] = []
    room = _MOST_ARCS
    found = _PARENT_LINE.findall(cursor.source.text, *run.span)
    try:
        for line, (above, below) in enumerate(found, run.at + 1):
            parents, children = above.split(), below.split()
            count = len(parents) * len(children)
            room -= count
            if room < 0 or (count > 1 and _has_repeated(parents, children)):
                return False
            for name in parents:
                starts += [names[name]] * len(children)
            ends += [names[name] for name in children] * len(parents)
            lines += [line] * count
    except KeyError:
        return False
    return cursor.state.arcs.add_all(starts, ends, lines, cursor.file)


def _has_repeated(parents: Sequence[str], children: Sequence[str]) -> bool:
    return len({*parents}) < len(parents) or len({*children}) < len(children)


_READERS: dict[str, Callable[[Cursor, PlainRun], bool]] = {
    "JOB": _read_jobs,
    "VARS": _read_variables,
    "PARENT": _read_arcs,
}
