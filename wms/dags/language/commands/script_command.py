"""DAG command SCRIPT: PRE, POST and HOLD scripts of nodes, and the macros of their arguments.

Names that are no macros get a warning; `wms.dags.scripts.macros` expands the others. Source:
DagParser::ParseScript (HTCondor 25.14, dag_parser.cpp) takes what follows the node's name as it
stands, and Script::BackgroundRun (condor_dagman/script.cpp) splits that at blanks and tabs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from wms.dags.language.faults import Fault
from wms.dags.language.lexer import keyword, split_blanks, take_word
from wms.dags.language.numbers import whole
from wms.dags.language.parse_state import Cursor
from wms.dags.language.spec import ScriptSpec
from wms.dags.states import ScriptKind
from wms.jobs.content.paths import MAX_PATH_BYTES

_KINDS = {kind.name: kind for kind in ScriptKind}
_STREAMS: dict[str, Literal["STDOUT", "STDERR", "ALL"]] = {
    "STDOUT": "STDOUT",
    "STDERR": "STDERR",
    "ALL": "ALL",
}
_EXPECTED = "expected: SCRIPT PRE|POST|HOLD name executable, and its arguments"
#: Macros that may be a whole argument, in any case.
MACROS = frozenset(
    {
        "$JOB", "$NODE", "$RETRY", "$MAX_RETRIES", "$DAGID", "$DAG_STATUS", "$FAILED_COUNT",
        "$FUTILE_COUNT", "$DONE_COUNT", "$QUEUED_COUNT", "$NODE_COUNT",
    }
)  # fmt: skip
#: And in the arguments of POST and HOLD scripts.
MACROS_OF_JOBS = frozenset(
    {
        "$JOBID", "$CLUSTERID", "$JOB_COUNT", "$JOB_ABORT_COUNT", "$RETURN", "$SUCCESS",
        "$EXIT_CODES", "$EXIT_CODE_LIST", "$EXIT_CODE_COUNTS", "$PRE_SCRIPT_RETURN",
    }
)  # fmt: skip
#: Without a pause, a script that says "not yet" would be run again and again.
_LEAST_DEFER_S = 1
_MACRO = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(slots=True)
class _Options:
    defer_status: int | None = None
    defer_s: int = 0
    debug_file: str = ""
    debug_stream: Literal["", "STDOUT", "STDERR", "ALL"] = ""


def script(cursor: Cursor, rest: str) -> None:
    """`SCRIPT [DEFER status s] [DEBUG file stream] PRE|POST|HOLD name executable arguments...`.

    The executable and its arguments are separated by blanks; quotes are ordinary characters.
    """
    options, kind_name, rest = _read_options(cursor, rest)
    name, rest = take_word(rest)
    command = split_blanks(rest)
    if not command:
        raise Fault(_EXPECTED)
    kind = _KINDS.get(kind_name.upper())
    if kind is None:
        raise Fault(f"a script is PRE, POST or HOLD, found: {kind_name[:80]}")
    if len(command[0]) > MAX_PATH_BYTES:
        raise Fault(f"the program of a script has a path of at most {MAX_PATH_BYTES} characters")
    spec = ScriptSpec(
        command[0],
        tuple(command[1:]),
        cursor.location,
        options.defer_status,
        options.defer_s,
        options.debug_file,
        options.debug_stream,
    )
    _warn_of_macros(cursor, kind, spec.arguments)
    for node in cursor.nodes(name):
        program = cursor.state.origin.program(node.directory, spec.executable)
        if not program.startswith("/"):
            cursor.state.path(node.directory, program)
        if spec.debug_file:
            cursor.state.path(node.directory, spec.debug_file)
        script = spec if program == spec.executable else replace(spec, executable=program)
        node.scripts = {**(node.scripts or {}), kind: script}


def _read_options(cursor: Cursor, rest: str) -> tuple[_Options, str, str]:
    """Options before the kind of the script, the word for the kind, and the rest of the line."""
    options = _Options()
    while True:
        word, rest = take_word(rest)
        option = keyword(word)
        if option not in {"DEFER", "DEBUG"}:
            return options, word, rest
        first, rest = take_word(rest)
        second, rest = take_word(rest)
        if not second:
            raise Fault(_EXPECTED)
        if option == "DEFER":
            options.defer_status = whole(first, "the status of DEFER", most=255)
            options.defer_s = whole(second, "the time of DEFER in seconds")
            if options.defer_s < _LEAST_DEFER_S:
                cursor.warn(f"a script is put off for {_LEAST_DEFER_S} second at least: it is then")
                options.defer_s = _LEAST_DEFER_S
        else:
            stream = _STREAMS.get(second.upper())
            if stream is None:
                raise Fault(f"DEBUG takes STDOUT, STDERR or ALL, found: {second[:80]}")
            options.debug_file, options.debug_stream = cursor.path(first), stream


def _warn_of_macros(cursor: Cursor, kind: ScriptKind, arguments: tuple[str, ...]) -> None:
    for argument in arguments:
        if not argument.startswith("$") or not _MACRO.match(argument):
            continue
        name = argument.upper()
        if kind is ScriptKind.PRE and name in MACROS_OF_JOBS:
            cursor.warn(f"{argument} means nothing in a PRE script: it stays as it is", level=1)
        elif name not in MACROS and name not in MACROS_OF_JOBS:
            cursor.warn(f"{argument} is no macro of scripts: it stays as it is", level=1)
