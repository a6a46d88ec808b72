"""Descriptions of jobs in JSON: turned into submit language, so that all checks are the same.

Each member becomes one command or attribute on a line of its own; faults found by line are told by
the member. `docs/reference/clusters.md` has the table of the members.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from matching.ads.classads import quote
from wms.core.errors import Finding
from wms.jobs.clusters.options import COMMANDS
from wms.jobs.clusters.parameters.tables import CELL_END

#: Stands in the queue statement for the rows that came with the description.
ROWS = "parameters.rows"
MAX_FAULTS = 200
#: What ends a line somewhere, or cannot be stored.
_CONTROL = re.compile("[\x00-\x1f\x7f\x85\u2028\u2029\ud800-\udfff]")
_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\Z")
_ATTRIBUTE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class _Bad(ValueError):
    """A member of another type or form; `place` is where in the member."""

    def __init__(self, message: str, place: str = "") -> None:
        super().__init__(message)
        self.place = place


@dataclass(slots=True)
class JsonDescription:
    """A description as submit language, with the members of its lines, and its rows.

    With `is_stored`, its rows are in the cluster's table, and it has none itself.
    """

    is_stored: bool = False
    lines: list[str] = field(default_factory=list)
    members: list[str] = field(default_factory=list)
    rows: list[str] | None = None
    findings: list[Finding] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The description in submit language."""
        return "\n".join(self.lines) + "\n"

    def add(self, member: str, line: str) -> None:
        """Add a line for a member."""
        self.lines.append(line)
        self.members.append(member)

    def fault(self, message: str, member: str) -> None:
        """Add a fault of a member."""
        if len(self.findings) < MAX_FAULTS:
            self.findings.append(Finding(message, field=member))

    def located(self, finding: Finding) -> Finding:
        """A finding about the text, with the member instead of the line."""
        if finding.field or finding.line is None or not 0 < finding.line <= len(self.members):
            return Finding(finding.message, field=finding.field)
        return Finding(finding.message, field=self.members[finding.line - 1])


def read_json(values: Mapping[str, Any], *, is_stored: bool = False) -> JsonDescription:
    """The description of these members. Never raises: faults are in `findings`, by member.

    `is_stored` tells that it is what `without_rows` has left of one.
    """
    made = JsonDescription(is_stored)
    for member in values:
        if member not in MEMBERS:
            made.fault("there is no such member", str(member)[:80])
    for member, (name, write) in _MEMBERS.items():
        if values.get(member) is None:
            continue
        try:
            made.add(member, f"{name} = {write(values[member])}")
        except _Bad as error:
            made.fault(str(error), f"{member}{error.place}")
    _add_attributes(made, values.get("attributes") or {})
    _add_commands(made, values.get("commands") or {})
    _add_queue(made, values)
    return made


def without_rows(values: Mapping[str, Any]) -> dict[str, Any]:
    """The members that are kept with the cluster: rows are in its table."""
    kept, parameters = dict(values), values.get("parameters")
    if isinstance(parameters, Mapping) and "rows" in parameters:
        columns = parameters.get("columns") or _columns_of(parameters["rows"])
        kept["parameters"] = {**parameters, "columns": columns, "rows": []}
    return kept


def _columns_of(rows: object) -> list[Any]:
    """Columns by the first row, where that is an object."""
    if isinstance(rows, list) and rows and isinstance(rows[0], Mapping):
        return list(rows[0])
    return []


def _text(value: object) -> str:
    """A text, or a number as one. Raises _Bad."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _Bad("must be a text")
    text = str(value)
    if _CONTROL.search(text):
        raise _Bad("contains a control character")
    if text.rstrip().endswith("\\"):
        raise _Bad("ends with a backslash")
    return text


def _number(value: object) -> str:
    if isinstance(value, bool) or not (
        isinstance(value, int) or (isinstance(value, str) and "$" in value)
    ):
        raise _Bad("must be a whole number, or a text with a macro")
    return _text(value)


def _megabytes(value: object) -> str:
    return f"{_number(value)}M"


def _texts(value: object) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise _Bad("must be a list of texts")
    found = []
    for place, each in enumerate(value):
        try:
            found.append(_text(each))
        except _Bad as error:
            raise _Bad(str(error), f"[{place}]") from error
    return found


def _words(value: object) -> str:
    """A ClassAd list, in whose texts macros may stand."""
    return "{" + ", ".join(map(quote, _texts(value))) + "}"


def _word(value: object) -> str:
    return quote(_text(value))


def _names(value: object) -> str:
    names = _texts(value)
    for place, name in enumerate(names):
        if "," in name:
            raise _Bad("the name of a file cannot contain a comma", f"[{place}]")
    return ", ".join(names)


def _quoted(word: str) -> str:
    """A word of the quoted form of arguments and environment."""
    return "'" + word.replace("'", "''").replace('"', '""') + "'"


def _arguments(value: object) -> str:
    if isinstance(value, str):
        return _text(value)
    return '"' + " ".join(map(_quoted, _texts(value))) + '"'


def _environment(value: object) -> str:
    if not isinstance(value, Mapping):
        raise _Bad("must be an object of texts")
    pairs = []
    for name, each in value.items():
        if not _VARIABLE.match(name):
            raise _Bad("is no name of a variable", f".{str(name)[:80]}")
        try:
            pairs.append(_quoted(f"{name}={_text(each)}"))
        except _Bad as error:
            raise _Bad(str(error), f".{name}") from error
    return '"' + " ".join(pairs) + '"'


_MEMBERS: Mapping[str, tuple[str, Callable[[object], str]]] = {
    "executable": ("executable", _text),
    "shell": ("shell", _text),
    "arguments": ("arguments", _arguments),
    "environment": ("environment", _environment),
    "inputs": ("transfer_input_files", _names),
    "outputs": ("transfer_output_files", _names),
    "stdin": ("input", _text),
    "stdout": ("output", _text),
    "stderr": ("error", _text),
    "directory": ("initialdir", _text),
    "container_image": ("container_image", _text),
    "cores": ("request_cpus", _number),
    "memory_mb": ("request_memory", _number),
    "gpus": ("request_gpus", _number),
    "disk_mb": ("request_disk", _megabytes),
    "requirements": ("requirements", _text),
    "max_cores": ("+MaxCpus", _number),
    "cpu_time_s": ("+CPUTimeSeconds", _number),
    "sites": ("+Sites", _words),
    "banned_sites": ("+BannedSites", _words),
    "queues": ("+Queues", _words),
    "platforms": ("+Platforms", _words),
    "pilot_types": ("+PilotTypes", _words),
    "submit_pools": ("+SubmitPools", _words),
    "middlewares": ("+Middlewares", _words),
    "tags": ("+Tags", _words),
    "setup": ("+Setup", _word),
    "job_type": ("+JobType", _word),
    "wall_time_s": ("allowed_execute_duration", _number),
    "priority": ("priority", _number),
    "retries": ("max_retries", _number),
}
_OF_QUEUE = frozenset({"attributes", "commands", "queue", "parameters"})
#: All members of a description in JSON; beside them stand the options of its cluster.
MEMBERS = frozenset(_MEMBERS) | _OF_QUEUE
#: Names that would be no command on a line of their own.
_NO_COMMANDS = frozenset({"queue", "if", "elif", "else", "endif", "include", "use"})
_SOURCES = ("rows", "file", "matching")


def _add_attributes(made: JsonDescription, given: object) -> None:
    if not isinstance(given, Mapping):
        made.fault("must be an object", "attributes")
        return
    for name, value in given.items():
        member = f"attributes.{str(name)[:80]}"
        if not _ATTRIBUTE.match(str(name)):
            made.fault("is no name of an attribute", member)
            continue
        try:
            is_plain = isinstance(value, bool) or not isinstance(value, str)
            made.add(member, f"+{name} = {json.dumps(value) if is_plain else _text(value)}")
        except _Bad as error:
            made.fault(str(error), member)


def _add_commands(made: JsonDescription, given: object) -> None:
    """Add commands of submit language that have no member of their own."""
    if not isinstance(given, Mapping):
        made.fault("must be an object", "commands")
        return
    taken = {*COMMANDS, *(name.lower() for name, _ in _MEMBERS.values())}
    for name, value in given.items():
        member, lowered = f"commands.{str(name)[:80]}", str(name).lower()
        if not _ATTRIBUTE.match(str(name)) or lowered in _NO_COMMANDS:
            made.fault("is no name of a command", member)
        elif lowered in taken:
            made.fault("has a member of its own", member)
        else:
            try:
                made.add(member, f"{name} = {_text(value)}")
            except _Bad as error:
                made.fault(str(error), member)


def _add_queue(made: JsonDescription, values: Mapping[str, Any]) -> None:
    count = values.get("queue")
    if count is None:
        count = 1
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        made.fault("must be a whole number from 1", "queue")
        return
    parameters = values.get("parameters")
    if parameters is None:
        made.add("queue", f"queue {count}")
        return
    if isinstance(parameters, Mapping):
        _add_parameters(made, parameters, count)
    else:
        made.fault("must be an object", "parameters")


def _add_parameters(made: JsonDescription, parameters: Mapping[str, Any], count: int) -> None:
    unknown = sorted(set(parameters) - {"columns", "slice", *_SOURCES})
    for name in unknown:
        made.fault("there is no such member", f"parameters.{str(name)[:80]}")
    given = [name for name in _SOURCES if parameters.get(name) is not None]
    if len(given) != 1:
        made.fault("needs one of rows, file and matching", "parameters")
        return
    columns = _columns(made, parameters)
    if columns is None:
        return
    try:
        _add_table(made, parameters, f"queue {count} {','.join(columns)}", given[0], columns)
    except _Bad as error:
        made.fault(str(error), f"parameters.{given[0]}{error.place}")


def _add_table(
    made: JsonDescription,
    parameters: Mapping[str, Any],
    begin: str,
    source: str,
    columns: Sequence[str],
) -> None:
    given = parameters.get("slice")
    cut = "" if given is None else given
    if not isinstance(cut, str) or _CONTROL.search(cut):
        made.fault("must be a slice such as [10:20]", "parameters.slice")
        return
    if cut and not (cut.startswith("[") and cut.endswith("]")):
        made.fault("must be a slice such as [10:20]", "parameters.slice")
        return
    if source == "rows":
        made.rows = [] if made.is_stored else _rows(made, parameters["rows"], columns)
        made.add(ROWS, f"{begin} from {cut} {ROWS}")
    elif source == "file":
        made.add("parameters.file", f"{begin} from {cut} {_text(parameters['file'])}")
    else:
        patterns = " ".join(_texts(parameters["matching"]))
        made.add("parameters.matching", f"{begin} matching files {cut} {patterns}")


def _columns(made: JsonDescription, parameters: Mapping[str, Any]) -> list[str] | None:
    given = parameters.get("columns") or _columns_of(parameters.get("rows"))
    if not isinstance(given, list) or not given:
        made.fault("must be a list of names", "parameters.columns")
        return None
    faults = 0
    seen: set[str] = set()
    for place, name in enumerate(given):
        message = ""
        if not isinstance(name, str) or not _COLUMN.match(name):
            message = "is no name of a column"
        elif name.lower() in seen:
            message = f"there are two columns {name}"
        else:
            seen.add(name.lower())
        if message:
            made.fault(message, f"parameters.columns[{place}]")
            faults += 1
    return None if faults else given


def _rows(made: JsonDescription, rows: object, columns: Sequence[str]) -> list[str]:
    """Rows as they are stored. Adds the faults of each."""
    if not isinstance(rows, list):
        raise _Bad("must be a list of rows")
    if not rows:
        raise _Bad("there are no rows")
    found: list[str] = []
    for place, row in enumerate(rows):
        member = f"{ROWS}[{place}]"
        if isinstance(row, Mapping):
            strange = sorted(str(name)[:80] for name in row.keys() - set(columns))
            missing = [name for name in columns if name not in row]
            if strange or missing:
                message = f"there is no column {strange[0]}" if strange else f"lacks {missing[0]}"
                made.fault(message, member)
                continue
            row = [row[name] for name in columns]
        if not isinstance(row, list):
            made.fault("must be a list or an object", member)
        elif len(row) != len(columns):
            made.fault(f"has {len(row)} values, and there are {len(columns)} columns", member)
        else:
            _add_row(made, found, row, member)
    return found


def _add_row(made: JsonDescription, found: list[str], row: Sequence[object], member: str) -> None:
    cells = []
    for place, value in enumerate(row):
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            made.fault("must be a text or a number", f"{member}[{place}]")
            return
        cell = str(value)
        if _CONTROL.search(cell):
            made.fault("contains a control character", f"{member}[{place}]")
            return
        cells.append(cell)
    found.append(CELL_END.join(cells))
