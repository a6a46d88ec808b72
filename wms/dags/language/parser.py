"""Reading DAG files: every fault is told with its place, and reading goes on.

Each file is read twice, as DAGMan does: lines that make nodes or concern the file as a whole first,
then all others in their order. So a PARENT or RETRY line may stand above the JOB line that it
names. INCLUDE is a command of the second time, and reads its file twice in turn.
"""

from __future__ import annotations

import gc
import posixpath
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import NamedTuple

from matching.deadline import Deadline
from wms.dags.language import arcs, modifiers, nodes, scripts, settings, splices, variables
from wms.dags.language.bounds import MAX_LINES, Bounds
from wms.dags.language.faults import Enough, Fault, FollowsFromAnother, TooMuch
from wms.dags.language.lexer import SourceText, is_comment, keyword
from wms.dags.language.origin import TOP, Origin
from wms.dags.language.reading import Here, Reader, Reading, Scope
from wms.dags.language.shape import measure
from wms.dags.language.sources import settle_sources
from wms.dags.language.spec import DagSpec, Place
from wms.dags.rescue.names import rescue_fault

_Command = Callable[[Here, str], None]
_FIRST: dict[str, _Command] = {
    "DATA": nodes.data,
    "DOT": settings.dot,
    "FINAL": nodes.final,
    "JOB": nodes.job,
    "JOBSTATE_LOG": settings.jobstate_log,
    "NODE_STATUS_FILE": settings.node_status_file,
    "PROVISIONER": nodes.provisioner,
    "REJECT": settings.reject,
    "SERVICE": nodes.service,
    "SPLICE": splices.splice,
    "SUBDAG": nodes.subdag,
    "SUBMIT-DESCRIPTION": nodes.submit_description,
}
_SECOND: dict[str, _Command] = {
    "ABORT-DAG-ON": modifiers.abort_dag_on,
    "ALWAYS-RUN-POST": modifiers.always_run_post,
    "CATEGORY": modifiers.category,
    "CONFIG": settings.config,
    "CONNECT": splices.connect,
    "DONE": modifiers.done,
    "ENV": settings.env,
    "INCLUDE": splices.include,
    "MAXJOBS": modifiers.max_jobs,
    "PARENT": arcs.parent,
    "PIN_IN": splices.pin_in,
    "PIN_OUT": splices.pin_out,
    "PRE_SKIP": modifiers.pre_skip,
    "PRIORITY": modifiers.priority,
    "RETRY": modifiers.retry,
    "SAVE_POINT_FILE": modifiers.save_point_file,
    "SCRIPT": scripts.script,
    "SET_JOB_ATTR": settings.set_job_attr,
    "TIMEOUT": modifiers.timeout,
    "TOLERANCE": modifiers.tolerance,
    "VARS": variables.variables,
    "WEAK": arcs.weak,
}
_NAMES = {keyword(name): name for name in [*_FIRST, *_SECOND]}
_CYCLE_NAMES_TOLD = 20
#: The time is looked at once in so many lines, and one: each may take a while.
_SOME_LINES = 15


def parse_dag(
    names: Sequence[str],
    read: Reader,
    *,
    bounds: Bounds = Bounds(),  # noqa: B008 - it is frozen
    origin: Origin = TOP,
    patience: Deadline | None = None,
) -> DagSpec:
    """Read one or several DAG files as one DAG. Never raises: faults are in `findings`.

    `names` are paths of the workspace, as `read` knows them; the nodes of several files are called
    `0.A`, `1.A`. `origin` tells from where the files are looked up that they name. When patience
    ends, so does reading, and it is a fault.
    """
    read_lines = partial(_read_lines, entries=_Entries())
    patience = patience or Deadline(None, 0)
    reading = Reading(read, read_lines, bounds, names, origin, patience)
    spec = reading.spec
    with _without_collections():
        with suppress(Enough):
            _read_dag_files(reading)
        spec.arcs = reading.arcs.once()
        spec.statistics = measure(spec, len(reading.special))
    _tell_cycle(reading)
    spec.findings, spec.warnings = reading.told.findings(), reading.told.warnings()
    return spec


@contextmanager
def _without_collections() -> Iterator[None]:
    """Look for no garbage: millions of values are made, none is garbage, and it takes as long."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _read_dag_files(reading: Reading) -> None:
    names = reading.dag_files
    for number, name in enumerate(names):
        prefix = f"{number}." if len(names) > 1 else ""
        origin = reading.origin
        directory = posixpath.dirname(name) if origin.uses_dag_dir else origin.directory
        _read_dag_file(reading, name, Scope(prefix, directory))
    settle_sources(reading)


def _read_dag_file(reading: Reading, name: str, scope: Scope) -> None:
    try:
        path = reading.path("", name)
        if name == reading.dag_files[0] and (fault := rescue_fault(reading.dag_files)):
            raise Fault(f"rescues of this DAG could not be stored: {fault}")
        text = reading.text(path)
    except Fault as error:
        reading.told.fault(str(error), Place(name, 0))
        return
    if text is None:
        reading.told.fault(f"DAG file {name} is not there", Place(name, 0))
        return
    reading.open_files.append(path)
    reading.read_lines(Here(reading, scope, SourceText(text, path), 0))
    reading.open_files.pop()


class _Entry(NamedTuple):
    """A command: its name, what it does the first time, and what the second time."""

    name: str
    first: _Command | None
    second: _Command


def _pass_over(_here: Here, _rest: str) -> None:
    """Read a comment."""


_COMMENT = _Entry("", _pass_over, _pass_over)


class _Entries(dict[str, _Entry]):
    """The commands by their words as they are written, whatever their case."""

    def __missing__(self, word: str) -> _Entry:
        name = _NAMES.get(keyword(word))
        if name is not None:
            self[word] = _Entry(name, _FIRST.get(name), _SECOND.get(name, _refuse))
            return self[word]
        return _COMMENT if is_comment(word) else _Entry(word[:80], None, _refuse)


def _read_lines(here: Here, entries: _Entries) -> None:
    """Read a file in its scope, twice. Raises Enough when reading is to end."""
    if len(here.source.lines) > MAX_LINES:
        here.line = MAX_LINES
        _tell(here, TooMuch(f"a file has at most {MAX_LINES} lines"))
    _second_time(here, _first_time(here, entries))


def _first_time(here: Here, entries: _Entries) -> list[_Entry | None]:
    """Do what is to be done first; what is left has its command by line, and its words there."""
    source, lines = here.source, here.source.lines
    left: list[_Entry | None] = [None] * len(lines)
    head, has_joins = source.head, source.has_joins
    for at, line in enumerate(lines):
        if not at & _SOME_LINES:
            _check_time(here, at)
        words = head(line)
        if has_joins and "\\" in line and not is_comment(line):
            words = head(source.join(at))
        if not words:
            continue
        entry = entries[words[0]]
        rest = words[1] if len(words) > 1 else ""
        if entry.first is None:
            left[at] = entry
            lines[at] = rest
        else:
            lines[at] = ""
            _do(here, at, entry.name, entry.first, rest)
    return left


def _do(here: Here, at: int, name: str, command: _Command, rest: str) -> None:
    here.line = at + 1
    here.command = name
    try:
        command(here, rest)
    except Fault as fault:
        here.scope.broken.update(rest.split(None, 2)[:2])
        _tell(here, fault)


def _second_time(here: Here, left: list[_Entry | None]) -> None:
    lines = here.source.lines
    for at, entry in enumerate(left):
        if not at & _SOME_LINES:
            _check_time(here, at)
        if entry is None:
            continue
        rest = lines[at]
        # Memory of lines that are done is free for what is made of the next ones.
        lines[at] = ""
        here.line = at + 1
        here.command, _, command = entry
        try:
            command(here, rest)
        except Fault as fault:
            _tell(here, fault)


def _check_time(here: Here, at: int) -> None:
    here.line = at + 1
    here.command = ""
    try:
        here.reading.check_time()
    except TooMuch as fault:
        _tell(here, fault)


def _refuse(here: Here, _rest: str) -> None:
    raise Fault(f"unknown command {here.command}")


def _tell(here: Here, fault: Fault) -> None:
    if not isinstance(fault, FollowsFromAnother):
        place = fault.place or here.place
        here.reading.told.fault(str(fault), place, here.command)
    if isinstance(fault, TooMuch):
        raise Enough


def _tell_cycle(reading: Reading) -> None:
    cycle = reading.spec.statistics.cycle
    if not cycle:
        return
    positions = {name: at for at, name in enumerate(reading.spec.nodes)}
    place = reading.arcs.place_of(positions[cycle[0]], positions[cycle[1]])
    told = cycle
    if len(cycle) > _CYCLE_NAMES_TOLD:
        told = [*cycle[: _CYCLE_NAMES_TOLD - 2], f"({len(cycle)} in all)", *cycle[-2:]]
    command = "CONNECT" if place in reading.connected_at else "PARENT"
    with suppress(Enough):
        reading.told.fault(f"the nodes form a cycle: {' -> '.join(told)}", place, command)
