"""Parser of one DAG's files, with the table of all commands; every fault has its file and line.

Each file is read in two passes, as DAGMan does: first the lines that define nodes or concern the
file as a whole, then all others in their order. So a PARENT or RETRY line may stand above the JOB
line that it names. INCLUDE belongs to the second pass, and reads its file in two passes in turn.
Faults are returned with the DAG; a cycle of nodes is one.
"""

from __future__ import annotations

import gc
import posixpath
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import NamedTuple

from matching.negotiation.deadline import Deadline
from wms.dags.language.commands import (
    arcs,
    conditions,
    gates,
    growth,
    modifiers,
    nodes,
    script_command,
    settings,
    splices,
    success,
    variables,
)
from wms.dags.language.faults import ConsequentFault, DagTooLarge, Fault, ReadingStopped
from wms.dags.language.graph_shape import graph_statistics
from wms.dags.language.lexer import SourceText, is_comment, keyword
from wms.dags.language.origin import TOP, Origin
from wms.dags.language.parse_state import Cursor, ParseState, Reader, Scope
from wms.dags.language.plain_lines import PlainRun, plain_runs, read_run
from wms.dags.language.size_limits import MAX_LINES, SizeLimits
from wms.dags.language.source_resolution import resolve_sources
from wms.dags.language.spec import DagSpec, SourceLocation
from wms.dags.rescue.names import rescue_fault

_Command = Callable[[Cursor, str], None]
_FIRST_PASS: dict[str, _Command] = {
    "DATA": nodes.data,
    "DOT": settings.dot,
    "FINAL": nodes.final,
    "GATE": gates.gate,
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
_SECOND_PASS: dict[str, _Command] = {
    "ABORT-DAG-ON": modifiers.abort_dag_on,
    "ALWAYS-RUN-POST": modifiers.always_run_post,
    "CATEGORY": modifiers.category,
    "CONFIG": settings.config,
    "CONNECT": splices.connect,
    "DONE": modifiers.done,
    "ENV": settings.env,
    "EXPAND": growth.expand,
    "INCLUDE": splices.include,
    "JOIN": conditions.join,
    "MAXJOBS": modifiers.max_jobs,
    "PARENT": arcs.parent,
    "PIN_IN": splices.pin_in,
    "PIN_OUT": splices.pin_out,
    "PRE_SKIP": modifiers.pre_skip,
    "PRIORITY": modifiers.priority,
    "REPEAT": growth.repeat,
    "RETRY": modifiers.retry,
    "SAVE_POINT_FILE": modifiers.save_point_file,
    "SCRIPT": script_command.script,
    "SET_JOB_ATTR": settings.set_job_attr,
    "SUCCESS": success.success,
    "TIMEOUT": modifiers.timeout,
    "TOLERANCE": modifiers.tolerance,
    "VARS": variables.variables,
    "WEAK": arcs.weak,
}
_NAMES = {keyword(name): name for name in [*_FIRST_PASS, *_SECOND_PASS]}
_MAX_CYCLE_NAMES = 20
#: The time is looked at once in so many lines, and one: each may take a while.
_TIME_CHECK_MASK = 15


def parse_dag(
    names: Sequence[str],
    read: Reader,
    *,
    limits: SizeLimits = SizeLimits(),  # noqa: B008 - it is frozen
    origin: Origin = TOP,
    deadline: Deadline | None = None,
    is_fragment: bool = False,
) -> DagSpec:
    """Parse one or several DAG files as one DAG. Never raises: faults are in `findings`.

    `names` are paths of the workspace, as `read` knows them; the nodes of several files are called
    `0.A`, `1.A`. `origin` is the directory from which file names are resolved. A parse that exceeds
    `deadline` ends with a fault. A fragment is to become part of a DAG that runs: lines about the
    DAG as a whole have no effect, as in a splice.
    """
    read_lines = partial(_read_lines, entries=_Entries())
    deadline = deadline or Deadline(None, 0)
    state = ParseState(read, read_lines, limits, names, origin, deadline)
    spec = state.spec
    with _garbage_collection_paused():
        with suppress(ReadingStopped):
            _read_dag_files(state, depth=int(is_fragment))
            spec.is_whole = True
        state.forget_texts()
        spec.arcs = state.arcs.distinct()
        spec.statistics = graph_statistics(spec, len(state.special))
    conditions.check_joins(state)
    growth.check_growth(state)
    _record_cycle(state)
    spec.findings, spec.warnings = state.collector.findings(), state.collector.warnings()
    return spec


@contextmanager
def _garbage_collection_paused() -> Iterator[None]:
    """Pause Python's garbage collection, which would take as long as parsing and find nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _read_dag_files(state: ParseState, depth: int) -> None:
    names = state.dag_files
    for number, name in enumerate(names):
        prefix = f"{number}." if len(names) > 1 else ""
        origin = state.origin
        directory = posixpath.dirname(name) if origin.uses_dag_dir else origin.directory
        _read_dag_file(state, name, Scope(prefix, directory, depth))
    resolve_sources(state)
    success.warn_of_empty_groups(state)


def _read_dag_file(state: ParseState, name: str, scope: Scope) -> None:
    try:
        path = state.path("", name)
        if name == state.dag_files[0] and (fault := rescue_fault(state.dag_files)):
            raise Fault(f"rescues of this DAG could not be stored: {fault}")
        text = state.text(path)
    except Fault as error:
        state.collector.add_fault(str(error), SourceLocation(name, 0))
        return
    if text is None:
        state.collector.add_fault(f"DAG file {name} is not there", SourceLocation(name, 0))
        return
    state.open_files.append(path)
    state.read_lines(Cursor(state, scope, SourceText(text, path), scope.depth))
    state.open_files.pop()


class _Entry(NamedTuple):
    """A command: its name, its handler in the first pass, and its handler in the second pass."""

    name: str
    first: _Command | None
    second: _Command


def _skip_comment(_cursor: Cursor, _rest: str) -> None:
    """Handler of comments."""


_COMMENT = _Entry("", _skip_comment, _skip_comment)


class _Entries(dict[str, _Entry]):
    """Cache of commands by the word as it is written, in any case."""

    def __missing__(self, word: str) -> _Entry:
        name = _NAMES.get(keyword(word))
        if name is not None:
            self[word] = _Entry(name, _FIRST_PASS.get(name), _SECOND_PASS.get(name, _refuse))
            return self[word]
        return _COMMENT if is_comment(word) else _Entry(word[:80], None, _refuse)


def _read_lines(cursor: Cursor, entries: _Entries) -> None:
    """Read a file in its scope, in two passes. Raises ReadingStopped."""
    if cursor.source.line_count > MAX_LINES:
        cursor.line = MAX_LINES
        _record_fault(cursor, DagTooLarge(f"a file has at most {MAX_LINES} lines"))
    runs = _runs(cursor)
    cursor.source.split(run.stretch for run in runs)
    left: list[_Entry | None] = [None] * len(cursor.source.lines)
    runs = _first_pass(cursor, entries, left, runs)
    _second_pass(cursor, entries, left, runs)


def _runs(cursor: Cursor) -> list[PlainRun]:
    """Runs of plain lines in the text."""
    runs = []
    for run in plain_runs(cursor.source.text):
        _check_time(cursor, run.at)
        runs.append(run)
    return runs


def _first_pass(
    cursor: Cursor, entries: _Entries, left: list[_Entry | None], runs: Sequence[PlainRun]
) -> list[PlainRun]:
    """Run the commands of the first pass, and note those of the second in `left`, with the words
    in `lines`. Return the runs of plain lines that the second pass is to read.
    """
    source = cursor.source
    later, at = [], 0
    for run in runs:
        _first_pass_of(cursor, entries, left, range(at, run.at))
        at = run.at
        if not source.take_stretch(at):
            # A line before has looked at it, and perhaps taken it and others for its own.
            continue
        _check_time(cursor, at)
        if not run.is_of_first_pass:
            later.append(run)
        elif not read_run(cursor, run):
            source.split_stretch(run.stretch)
            continue
        at += run.length
    _first_pass_of(cursor, entries, left, range(at, len(source.lines)))
    return later


def _first_pass_of(
    cursor: Cursor, entries: _Entries, left: list[_Entry | None], numbers: range
) -> None:
    source, lines = cursor.source, cursor.source.lines
    head, has_joins = source.head, source.has_joins
    for at in numbers:
        if not at & _TIME_CHECK_MASK:
            _check_time(cursor, at)
        line = lines[at]
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
            _run_first(cursor, at, entry.name, entry.first, rest)


def _run_first(cursor: Cursor, at: int, name: str, command: _Command, rest: str) -> None:
    cursor.line = at + 1
    cursor.command = name
    try:
        command(cursor, rest)
    except Fault as fault:
        cursor.scope.broken.update(rest.split(None, 2)[:2])
        _record_fault(cursor, fault)


def _second_pass(
    cursor: Cursor, entries: _Entries, left: list[_Entry | None], runs: Sequence[PlainRun]
) -> None:
    lines = cursor.source.lines
    at = 0
    for run in runs:
        _second_pass_of(cursor, left, range(at, run.at))
        at = run.at
        _check_time(cursor, at)
        if read_run(cursor, run):
            at += run.length
        else:
            cursor.source.split_stretch(run.stretch)
            _first_pass_of(cursor, entries, left, run.lines)
    _second_pass_of(cursor, left, range(at, len(lines)))


def _second_pass_of(cursor: Cursor, left: list[_Entry | None], numbers: range) -> None:
    lines = cursor.source.lines
    for at in numbers:
        if not at & _TIME_CHECK_MASK:
            _check_time(cursor, at)
        entry = left[at]
        if entry is None:
            continue
        rest = lines[at]
        lines[at] = ""
        cursor.line = at + 1
        cursor.command, _, command = entry
        try:
            command(cursor, rest)
        except Fault as fault:
            _record_fault(cursor, fault)


def _check_time(cursor: Cursor, at: int) -> None:
    cursor.line = at + 1
    cursor.command = ""
    try:
        cursor.state.check_time()
    except DagTooLarge as fault:
        _record_fault(cursor, fault)


def _refuse(cursor: Cursor, _rest: str) -> None:
    raise Fault(f"unknown command {cursor.command}")


def _record_fault(cursor: Cursor, fault: Fault) -> None:
    if not isinstance(fault, ConsequentFault):
        location = fault.location or cursor.location
        cursor.state.collector.add_fault(str(fault), location, cursor.command)
    if isinstance(fault, DagTooLarge):
        raise ReadingStopped


def _record_cycle(state: ParseState) -> None:
    cycle = state.spec.statistics.cycle
    if not cycle:
        return
    positions = {name: at for at, name in enumerate(state.spec.nodes)}
    location = state.arcs.location_of(positions[cycle[0]], positions[cycle[1]])
    shown = cycle
    if len(cycle) > _MAX_CYCLE_NAMES:
        shown = [*cycle[: _MAX_CYCLE_NAMES - 2], f"({len(cycle)} in all)", *cycle[-2:]]
    command = "CONNECT" if location in state.connected_at else "PARENT"
    with suppress(ReadingStopped):
        state.collector.add_fault(
            f"the nodes form a cycle: {' -> '.join(shown)}", location, command
        )
