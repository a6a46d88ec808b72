"""DAG commands for the run as a whole: CONFIG, ENV, SET_JOB_ATTR, REJECT, and exported files.

Exported files are those of NODE_STATUS_FILE, JOBSTATE_LOG and DOT; their names are stored.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

from matching.ads.classads import AdError, parse_expression
from matching.descriptions.environments import BadEnvironment, parse_environment
from wms.dags.language.commands.config import read_config
from wms.dags.language.faults import Fault
from wms.dags.language.lexer import keyword
from wms.dags.language.numbers import LARGEST, whole
from wms.dags.language.parse_state import Cursor
from wms.dags.language.size_limits import MAX_ENVIRONMENT_LENGTH

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(\S.*)\Z", re.DOTALL)
_DOT_OPTIONS = frozenset({"UPDATE", "DONT-UPDATE", "OVERWRITE", "DONT-OVERWRITE"})


def config(cursor: Cursor, rest: str) -> None:
    """`CONFIG file`: settings for this run."""
    words = cursor.words(rest)
    if len(words) != 1:
        raise Fault("expected: CONFIG file")
    if _has_no_effect(cursor):
        return
    state = cursor.state
    path = cursor.path(words[0])
    if state.config_at is not None:
        first_path, location = state.config_at
        if first_path != path:
            where = f"{location.file}, line {location.line}"
            raise Fault(f"a run has one CONFIG file at most: {first_path} of {where} is it")
        return
    text = state.text(path)
    if text is None:
        raise Fault(f"file {path} of CONFIG is not there")
    state.config_at = path, cursor.location
    read_config(text, path, state)


def env(cursor: Cursor, rest: str) -> None:
    """`ENV SET k=v;...`, `ENV GET names`: environment of the scripts."""
    option, *behind = cursor.source.head(rest) or [""]
    option = keyword(option)
    if option not in {"SET", "GET"} or not behind:
        raise Fault("expected: ENV SET name=value;..., or ENV GET names")
    if _has_no_effect(cursor):
        return
    if option == "GET":
        cursor.warn("ENV GET has no effect: there is no environment of who submits")
        return
    fault = f"ENV SET gives at most {MAX_ENVIRONMENT_LENGTH} characters in all"
    if len(behind[0]) > 2 * MAX_ENVIRONMENT_LENGTH:
        raise Fault(fault)
    try:
        given = parse_environment(behind[0])
    except BadEnvironment as error:
        raise Fault(str(error)) from None
    environment = cursor.state.spec.environment
    before = {name: environment[name] for name in given.keys() & environment.keys()}
    length = cursor.state.environment_length + _length(given) - _length(before)
    if length > MAX_ENVIRONMENT_LENGTH:
        raise Fault(fault)
    cursor.state.environment_length = length
    environment.update(given)


def _length(environment: Mapping[str, str]) -> int:
    return sum(len(name) + len(value) for name, value in environment.items())


def set_job_attr(cursor: Cursor, rest: str) -> None:
    """`SET_JOB_ATTR name = value`: attribute of the DAG's own ad."""
    match = _ASSIGNMENT.match(rest.strip())
    if match is None:
        raise Fault("expected: SET_JOB_ATTR name = value")
    if _has_no_effect(cursor):
        return
    name, value = match.groups()
    try:
        parse_expression(value)
    except AdError as error:
        raise Fault(f"{name}: {error.message}") from None
    cursor.state.spec.attributes[name] = value


def _has_no_effect(cursor: Cursor) -> bool:
    """Whether the line stands in a splice or an included file, where it only gets a warning."""
    if cursor.depth:
        cursor.warn("has no effect in splices, fragments and included files")
    return cursor.depth > 0


def node_status_file(cursor: Cursor, rest: str) -> None:
    """`NODE_STATUS_FILE file [seconds] [ALWAYS-UPDATE]`, the options in any order and number.

    Source: DagParser::ParseNodeStatus (HTCondor 25.14, dag_parser.cpp).
    """
    words = cursor.words(rest)
    if not words:
        raise Fault("expected: NODE_STATUS_FILE file, and seconds and ALWAYS-UPDATE if wanted")
    for option in words[1:]:
        if keyword(option) != "ALWAYS-UPDATE":
            whole(option, "the time between updates in seconds", least=-LARGEST)
    _set_export_file(cursor, words[0], "status_file")


def jobstate_log(cursor: Cursor, rest: str) -> None:
    """`JOBSTATE_LOG file`."""
    words = cursor.words(rest)
    if len(words) != 1:
        raise Fault("expected: JOBSTATE_LOG file")
    _set_export_file(cursor, words[0], "jobstate_log")


def dot(cursor: Cursor, rest: str) -> None:
    """`DOT file [UPDATE|DONT-UPDATE] [OVERWRITE|DONT-OVERWRITE] [INCLUDE header]`."""
    words = cursor.words(rest)
    if not words:
        raise Fault("expected: DOT file")
    options = iter(words[1:])
    for option in options:
        if keyword(option) == "INCLUDE":
            cursor.path(next(options, ""))
        elif keyword(option) not in _DOT_OPTIONS:
            raise Fault(f"unexpected after the file: {option[:80]}")
    _set_export_file(cursor, words[0], "dot_file")


def _set_export_file(cursor: Cursor, name: str, field: str) -> None:
    """Set the name of an exported file; the first one of its kind counts."""
    if cursor.scope.depth:
        cursor.warn("has no effect in splices and fragments")
        return
    path = _export_path(cursor, name)
    spec = cursor.state.spec
    if getattr(spec, field):
        cursor.warn(f"{getattr(spec, field)} is asked for already: the first one counts")
    else:
        setattr(spec, field, path)


def _export_path(cursor: Cursor, name: str) -> str:
    """Path of an exported file; of one outside of the workspace only the base name is kept."""
    try:
        cursor.state.origin.inside(cursor.scope.directory, name)
    except Fault:
        path = cursor.path(posixpath.basename(posixpath.normpath(name)))
        cursor.warn(f"{name[:200]} is not in the workspace: the file is called {path} here")
        return path
    return cursor.path(name)


def reject(cursor: Cursor, rest: str) -> None:
    """`REJECT`: the file must not be run."""
    raise Fault("the file is marked by REJECT: it is not to be run")
