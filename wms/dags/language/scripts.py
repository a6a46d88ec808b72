"""SCRIPT."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from wms.dags.language.faults import Fault
from wms.dags.language.lexer import keyword
from wms.dags.language.numbers import whole
from wms.dags.language.reading import Here
from wms.dags.language.spec import ScriptSpec
from wms.dags.states import ScriptKind

_KINDS = {kind.name: kind for kind in ScriptKind}
_STREAMS: dict[str, Literal["STDOUT", "STDERR", "ALL"]] = {
    "STDOUT": "STDOUT",
    "STDERR": "STDERR",
    "ALL": "ALL",
}
_EXPECTED = "expected: SCRIPT PRE|POST|HOLD name executable, and its arguments"
#: What a whole argument may stand for, in any case.
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
        "$EXIT_CODES", "$EXIT_CODE_COUNTS", "$PRE_SCRIPT_RETURN",
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


def script(here: Here, rest: str) -> None:
    """`SCRIPT [DEFER status s] [DEBUG file stream] PRE|POST|HOLD name executable arguments...`."""
    words = here.words(rest)
    options, words = _read_options(here, words)
    if len(words) < 3:
        raise Fault(_EXPECTED)
    kind = _KINDS.get(words[0].upper())
    if kind is None:
        raise Fault(f"a script is PRE, POST or HOLD, found: {words[0][:80]}")
    told = ScriptSpec(
        words[2],
        tuple(words[3:]),
        here.place,
        options.defer_status,
        options.defer_s,
        options.debug_file,
        options.debug_stream,
    )
    _warn_of_macros(here, kind, told.arguments)
    for node in here.nodes(words[1]):
        if not told.executable.startswith("/"):
            here.reading.path(node.directory, told.executable)
        node.scripts = {**(node.scripts or {}), kind: told}


def _read_options(here: Here, words: list[str]) -> tuple[_Options, list[str]]:
    options = _Options()
    while words:
        option = keyword(words[0])
        if option not in {"DEFER", "DEBUG"}:
            break
        if len(words) < 3:
            raise Fault(_EXPECTED)
        if option == "DEFER":
            options.defer_status = whole(words[1], "the status of DEFER", most=255)
            options.defer_s = whole(words[2], "the time of DEFER in seconds")
            if options.defer_s < _LEAST_DEFER_S:
                here.warn(f"a script is put off for {_LEAST_DEFER_S} second at least: it is then")
                options.defer_s = _LEAST_DEFER_S
        else:
            stream = _STREAMS.get(words[2].upper())
            if stream is None:
                raise Fault(f"DEBUG takes STDOUT, STDERR or ALL, found: {words[2][:80]}")
            options.debug_file, options.debug_stream = here.path(words[1]), stream
        words = words[3:]
    return options, words


def _warn_of_macros(here: Here, kind: ScriptKind, arguments: tuple[str, ...]) -> None:
    for argument in arguments:
        if not argument.startswith("$") or not _MACRO.match(argument):
            continue
        name = argument.upper()
        if kind is ScriptKind.PRE and name in MACROS_OF_JOBS:
            here.warn(f"{argument} means nothing in a PRE script: it stays as it is", level=1)
        elif name not in MACROS and name not in MACROS_OF_JOBS:
            here.warn(f"{argument} is no macro of scripts: it stays as it is", level=1)
