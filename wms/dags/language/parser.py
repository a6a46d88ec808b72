"""Reading DAG files: every fault is told with its place, and reading goes on.

Each file is read twice, as DAGMan does: lines that make nodes or concern the file as a whole first,
then all others in their order. So a PARENT or RETRY line may stand above the JOB line that it
names. INCLUDE is a command of the second time, and reads its file twice in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from wms.dags.language import arcs, modifiers, nodes, scripts, settings, splices, variables
from wms.dags.language.bounds import MAX_LINES, Bounds
from wms.dags.language.faults import Enough, Fault, FollowsFromAnother, TooMuch
from wms.dags.language.lexer import SourceText, keyword
from wms.dags.language.reading import Here, Reader, Reading, Scope
from wms.dags.language.shape import measure
from wms.dags.language.sources import settle_sources
from wms.dags.language.spec import DagSpec, Place

_Command = Callable[[Here, str], None]
_FIRST: dict[str, _Command] = {
    "DATA": nodes.data,
    "DOT": settings.dot,
    "FINAL": nodes.final,
    "JOB": nodes.job,
    "JOBSTATE-LOG": settings.jobstate_log,
    "NODE-STATUS-FILE": settings.node_status_file,
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
    "PIN-IN": splices.pin_in,
    "PIN-OUT": splices.pin_out,
    "PRE-SKIP": modifiers.pre_skip,
    "PRIORITY": modifiers.priority,
    "RETRY": modifiers.retry,
    "SAVE-POINT-FILE": modifiers.save_point_file,
    "SCRIPT": scripts.script,
    "SET-JOB-ATTR": settings.set_job_attr,
    "TIMEOUT": modifiers.timeout,
    "TOLERANCE": modifiers.tolerance,
    "VARS": variables.variables,
    "WEAK": arcs.weak,
}
_CYCLE_NAMES_TOLD = 20


def parse_dag(
    names: Sequence[str],
    read: Reader,
    *,
    bounds: Bounds = Bounds(),  # noqa: B008 - it is frozen
    directory: str = "",
) -> DagSpec:
    """Read one or several DAG files as one DAG. Never raises: faults are in `findings`.

    `names` are paths of the workspace, as `read` knows them; the nodes of several files are called
    `0.A`, `1.A`. `directory` is where the DAG runs: the files that it names are below.
    """
    read_lines = partial(_read_lines, first=_Spellings(_FIRST), second=_Spellings(_SECOND))
    reading = Reading(read, read_lines, bounds, names, directory)
    try:
        for number, name in enumerate(names):
            prefix = f"{number}." if len(names) > 1 else ""
            _read_dag_file(reading, name, Scope(prefix, directory))
        settle_sources(reading)
    except Enough:
        pass
    spec = reading.spec
    spec.arcs = reading.arcs.once()
    spec.statistics = measure(spec)
    _tell_cycle(reading)
    spec.findings, spec.warnings = reading.told.findings(), reading.told.warnings()
    return spec


def _read_dag_file(reading: Reading, name: str, scope: Scope) -> None:
    try:
        text = reading.text(reading.path("", name))
    except Fault as fault:
        reading.told.fault(str(fault), Place(name, 0))
        return
    if text is None:
        reading.told.fault(f"DAG file {name} is not there", Place(name, 0))
        return
    reading.open_files.append(name)
    reading.read_lines(Here(reading, scope, SourceText(text, name), 0))
    reading.open_files.pop()


class _Spellings(dict[str, _Command | None]):
    """The commands of one time by their words as they are written, whatever their case."""

    def __init__(self, commands: Mapping[str, _Command]) -> None:
        super().__init__()
        self.names: dict[str, str] = {}
        self._commands = commands

    def __missing__(self, word: str) -> _Command | None:
        name = keyword(word)
        command = self._commands.get(name)
        if name in _FIRST or name in _SECOND:
            self[word] = command
            self.names[word] = name
        return command


def _read_lines(here: Here, first: _Spellings, second: _Spellings) -> None:
    """Read a file in its scope, twice. Raises Enough when reading is to end."""
    if len(here.source.lines) > MAX_LINES:
        here.line = MAX_LINES
        _tell(here, TooMuch(f"a file has at most {MAX_LINES} lines"))
    _first_time(here, first)
    _second_time(here, second)


def _first_time(here: Here, spellings: _Spellings) -> None:
    source, lines = here.source, here.source.lines
    for at, line in enumerate(lines):
        words = source.head(line)
        if words and source.has_joins and not words[0].startswith(("#", "//")):
            lines[at] = source.join(at)
            words = source.head(lines[at])
        if not words:
            continue
        command = spellings[words[0]]
        if command is None:
            continue
        lines[at] = ""
        here.line = at + 1
        here.command = spellings.names[words[0]]
        rest = words[1] if len(words) > 1 else ""
        try:
            command(here, rest)
        except Fault as fault:
            here.scope.broken.update(rest.split(None, 2)[:2])
            _tell(here, fault)


def _second_time(here: Here, spellings: _Spellings) -> None:
    source, lines = here.source, here.source.lines
    for at, line in enumerate(lines):
        words = source.head(line)
        if not words:
            continue
        # Memory of lines that are done is free for what is made of the next ones.
        lines[at] = ""
        here.line = at + 1
        command = spellings[words[0]] or _refuse
        here.command = spellings.names.get(words[0], words[0][:80])
        try:
            command(here, words[1] if len(words) > 1 else "")
        except Fault as fault:
            _tell(here, fault)


def _refuse(here: Here, rest: str) -> None:
    if not here.command.startswith(("#", "//")):
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
    try:
        reading.told.fault(f"the nodes form a cycle: {' -> '.join(told)}", place, "PARENT")
    except Enough:
        return
