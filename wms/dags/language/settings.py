"""What is set for the run as a whole: CONFIG, ENV, SET_JOB_ATTR, and the files to be written."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

from matching.classads import AdError, parse_expression
from matching.environments import BadEnvironment, parse_environment
from wms.dags.language.bounds import MAX_ENVIRONMENT_LENGTH
from wms.dags.language.config import read_config
from wms.dags.language.faults import Fault
from wms.dags.language.lexer import keyword
from wms.dags.language.numbers import LARGEST, whole
from wms.dags.language.reading import Here

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(\S.*)\Z", re.DOTALL)
_DOT_OPTIONS = frozenset({"UPDATE", "DONT-UPDATE", "OVERWRITE", "DONT-OVERWRITE"})


def config(here: Here, rest: str) -> None:
    """`CONFIG file`: settings for this run."""
    words = here.words(rest)
    if len(words) != 1:
        raise Fault("expected: CONFIG file")
    if _has_no_effect(here):
        return
    reading = here.reading
    path = here.path(words[0])
    if reading.config_at is not None:
        known, place = reading.config_at
        if known != path:
            where = f"{place.file}, line {place.line}"
            raise Fault(f"a run has one CONFIG file at most: {known} of {where} is it")
        return
    text = reading.text(path)
    if text is None:
        raise Fault(f"file {path} of CONFIG is not there")
    reading.config_at = path, here.place
    read_config(text, path, reading)


def env(here: Here, rest: str) -> None:
    """`ENV SET k=v;...`, `ENV GET names`: the environment of the scripts."""
    option, *behind = here.source.head(rest) or [""]
    option = keyword(option)
    if option not in {"SET", "GET"} or not behind:
        raise Fault("expected: ENV SET name=value;..., or ENV GET names")
    if _has_no_effect(here):
        return
    if option == "GET":
        here.warn("ENV GET has no effect: there is no environment of who submits")
        return
    fault = f"ENV SET gives at most {MAX_ENVIRONMENT_LENGTH} characters in all"
    if len(behind[0]) > 2 * MAX_ENVIRONMENT_LENGTH:
        raise Fault(fault)
    try:
        given = parse_environment(behind[0])
    except BadEnvironment as error:
        raise Fault(str(error)) from None
    environment = here.reading.spec.environment
    before = {name: environment[name] for name in given.keys() & environment.keys()}
    length = here.reading.environment_length + _length(given) - _length(before)
    if length > MAX_ENVIRONMENT_LENGTH:
        raise Fault(fault)
    here.reading.environment_length = length
    environment.update(given)


def _length(environment: Mapping[str, str]) -> int:
    return sum(len(name) + len(value) for name, value in environment.items())


def set_job_attr(here: Here, rest: str) -> None:
    """`SET_JOB_ATTR name = value`: an attribute of the DAG's own ad."""
    found = _ASSIGNMENT.match(rest.strip())
    if found is None:
        raise Fault("expected: SET_JOB_ATTR name = value")
    if _has_no_effect(here):
        return
    name, value = found.groups()
    try:
        parse_expression(value)
    except AdError as error:
        raise Fault(f"{name}: {error.message}") from None
    here.reading.spec.attributes[name] = value


def _has_no_effect(here: Here) -> bool:
    """Warn where a line does not count since it does not stand in a DAG file itself."""
    if here.depth:
        here.warn("has no effect in splices and in included files")
    return here.depth > 0


def node_status_file(here: Here, rest: str) -> None:
    """`NODE_STATUS_FILE file [seconds] [ALWAYS-UPDATE]`, the options in any order and number.

    Source: DagParser::ParseNodeStatus (HTCondor 25.14, dag_parser.cpp).
    """
    words = here.words(rest)
    if not words:
        raise Fault("expected: NODE_STATUS_FILE file, and seconds and ALWAYS-UPDATE if wanted")
    for option in words[1:]:
        if keyword(option) != "ALWAYS-UPDATE":
            whole(option, "the time between updates in seconds", least=-LARGEST)
    _ask_for_file(here, words[0], "status_file")


def jobstate_log(here: Here, rest: str) -> None:
    """`JOBSTATE_LOG file`."""
    words = here.words(rest)
    if len(words) != 1:
        raise Fault("expected: JOBSTATE_LOG file")
    _ask_for_file(here, words[0], "jobstate_log")


def dot(here: Here, rest: str) -> None:
    """`DOT file [UPDATE|DONT-UPDATE] [OVERWRITE|DONT-OVERWRITE] [INCLUDE header]`."""
    words = here.words(rest)
    if not words:
        raise Fault("expected: DOT file")
    options = iter(words[1:])
    for option in options:
        if keyword(option) == "INCLUDE":
            here.path(next(options, ""))
        elif keyword(option) not in _DOT_OPTIONS:
            raise Fault(f"unexpected after the file: {option[:80]}")
    _ask_for_file(here, words[0], "dot_file")


def _ask_for_file(here: Here, name: str, field: str) -> None:
    """Keep the name of a file that is to be written; the first of its kind counts."""
    if here.scope.depth:
        here.warn("has no effect in splices")
        return
    path = _path_to_write(here, name)
    spec = here.reading.spec
    if getattr(spec, field):
        here.warn(f"{getattr(spec, field)} is asked for already: the first one counts")
    else:
        setattr(spec, field, path)


def _path_to_write(here: Here, name: str) -> str:
    """The path of a file that is made on demand: of one elsewhere only the name is kept."""
    try:
        here.reading.origin.inside(here.scope.directory, name)
    except Fault:
        path = here.path(posixpath.basename(posixpath.normpath(name)))
        here.warn(f"{name[:200]} is not in the workspace: the file is called {path} here")
        return path
    return here.path(name)


def reject(here: Here, rest: str) -> None:
    """`REJECT`: the file says that it is not to be run."""
    raise Fault("the file is marked by REJECT: it is not to be run")
