"""DAG commands that set properties of nodes: RETRY, PRIORITY, ABORT-DAG-ON, TIMEOUT and others.

Also PRE_SKIP, DONE, TOLERANCE, ALWAYS-RUN-POST, CATEGORY, MAXJOBS (a limit of a category) and
SAVE_POINT_FILE.
"""

from __future__ import annotations

import posixpath
import re
from typing import Literal

from wms.dags.language.commands.success import category_tolerance, is_of_category
from wms.dags.language.faults import Fault
from wms.dags.language.lexer import keyword, unquote
from wms.dags.language.numbers import LARGEST, exit_code, whole
from wms.dags.language.parse_state import Cursor
from wms.dags.language.size_limits import MAX_NAME_LENGTH, MAX_RETRIES
from wms.dags.language.spec import AbortRule, Retry, TimeLimits, Tolerance
from wms.dags.rescue.names import aside_fault

_CHANGE = re.compile(r"(\+?[A-Za-z_][A-Za-z0-9_.]*)(\*?=)(.+)\Z", re.DOTALL)
_FACTOR = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})?\Z")
_SAVE_DIRECTORY = "save_files"


def retry(cursor: Cursor, rest: str) -> None:
    """`RETRY name n [UNLESS-EXIT v] [AVOID-SITES] [WITH command*=factor command=value ...]`."""
    name, *behind = cursor.source.head(rest) or [""]
    # Thousands of nodes are tried again in the same way: the value is theirs together.
    known = cursor.state.retries
    spec = known.get(behind[0]) if behind else None
    if spec is None:
        spec = known["".join(behind)] = _read_retry(cursor.words(rest))
    if spec.avoids_sites or spec.changes:
        cursor.note_addition("AVOID-SITES and WITH")
    for node in cursor.nodes(unquote(name)):
        node.retry = spec


def _read_retry(words: list[str]) -> Retry:
    if len(words) < 2:
        raise Fault("expected: RETRY name number")
    count = whole(words[1], "the number of retries", most=MAX_RETRIES)
    unless_exit, avoids_sites = None, False
    rest = words[2:]
    while rest:
        option = keyword(rest[0])
        if option == "WITH":
            return Retry(count, unless_exit, avoids_sites, tuple(map(_change, _required(rest[1:]))))
        if option == "UNLESS-EXIT" and len(rest) > 1:
            unless_exit, rest = exit_code(rest[1], "UNLESS-EXIT"), rest[2:]
        elif option == "AVOID-SITES":
            avoids_sites, rest = True, rest[1:]
        else:
            raise Fault(f"unexpected after the number of retries: {' '.join(rest)[:80]}")
    return Retry(count, unless_exit, avoids_sites)


def _required(changes: list[str]) -> list[str]:
    if not changes:
        raise Fault("WITH needs a change: command*=factor or command=value")
    return changes


def _change(text: str) -> tuple[str, Literal["*", "="], str]:
    match = _CHANGE.match(text)
    if match is None:
        raise Fault(f"expected command*=factor or command=value, found: {text[:80]}")
    name, sign, value = match.groups()
    name = name if name.startswith("+") else name.lower()
    if sign == "=":
        return name, "=", value
    if _FACTOR.match(value) is None or float(value) <= 0:
        raise Fault(f"{name} is changed by a factor above 0, found: {value[:80]}")
    return name, "*", value


def priority(cursor: Cursor, rest: str) -> None:
    """`PRIORITY name number`."""
    name, value = _two_words(cursor, rest, "PRIORITY name number")
    number = whole(value, "a priority", least=-LARGEST)
    for node in cursor.nodes(name):
        node.priority = number


def pre_skip(cursor: Cursor, rest: str) -> None:
    """`PRE_SKIP name code`."""
    name, value = _two_words(cursor, rest, "PRE_SKIP name code")
    code = whole(value, "the code of PRE_SKIP", most=255)
    for node in cursor.nodes(name):
        node.pre_skip = code


def done(cursor: Cursor, rest: str) -> None:
    """`DONE name`."""
    words = cursor.words(rest)
    if len(words) != 1:
        raise Fault("expected: DONE name")
    cursor.node(words[0]).is_done = True


def abort_dag_on(cursor: Cursor, rest: str) -> None:
    """`ABORT-DAG-ON name code [RETURN code]`."""
    words = cursor.words(rest)
    has_return = len(words) == 4 and keyword(words[2]) == "RETURN"
    if len(words) != 2 and not has_return:
        raise Fault("expected: ABORT-DAG-ON name code, and RETURN code if wanted")
    code = exit_code(words[1], "the code of ABORT-DAG-ON")
    returned = whole(words[3], "the code of RETURN", most=255) if has_return else None
    rule = AbortRule(code, returned)
    for node in cursor.nodes(words[0]):
        node.abort = rule


def tolerance(cursor: Cursor, rest: str) -> None:
    """`TOLERANCE name n|n% [FAIL-FAST|WAIT]`; percentages above 100 are allowed.

    Source: DagParser::ParseTolerance (HTCondor 25.14, dag_parser.cpp). `TOLERANCE CATEGORY` is
    another command: see `language.success`.
    """
    words = cursor.words(rest)
    if is_of_category(words):
        category_tolerance(cursor, words)
        return
    if len(words) > 2 and words[2] == "%":
        words[1:3] = [words[1] + "%"]
    option = keyword(words[2]) if len(words) == 3 else ""
    if len(words) not in {2, 3} or option not in {"", "FAIL-FAST", "WAIT"}:
        raise Fault("expected: TOLERANCE name number, with % if wanted, and FAIL-FAST or WAIT")
    is_percent = words[1].endswith("%")
    limit = whole(words[1].removesuffix("%"), "a tolerance")
    spec = Tolerance(limit, is_percent, option != "WAIT")
    for node in cursor.nodes(words[0]):
        node.tolerance = spec


def timeout(cursor: Cursor, rest: str) -> None:
    """`TIMEOUT name [QUEUE seconds] [RUN seconds]`, at least one of them; 0 is no limit."""
    words = cursor.words(rest)
    given = {keyword(word): value for word, value in zip(words[1::2], words[2::2], strict=False)}
    if len(words) not in {3, 5} or len(given) != len(words) // 2 or given.keys() - {"QUEUE", "RUN"}:
        raise Fault("expected: TIMEOUT name, then QUEUE seconds or RUN seconds or both")
    seconds = {name: whole(value, f"{name} in seconds") for name, value in given.items()}
    limits = TimeLimits(queue_s=seconds.get("QUEUE", 0), run_s=seconds.get("RUN", 0))
    cursor.note_addition("TIMEOUT")
    for node in cursor.nodes(words[0]):
        node.time_limits = limits


def always_run_post(cursor: Cursor, rest: str) -> None:
    """`ALWAYS-RUN-POST name`."""
    words = cursor.words(rest)
    if len(words) != 1:
        raise Fault("expected: ALWAYS-RUN-POST name")
    cursor.note_addition("ALWAYS-RUN-POST for single nodes")
    for node in cursor.nodes(words[0]):
        node.always_runs_post = True


def category(cursor: Cursor, rest: str) -> None:
    """`CATEGORY name category`."""
    name, category_name = _two_words(cursor, rest, "CATEGORY name category")
    full_name = _category(cursor, category_name)
    for node in cursor.nodes(name):
        node.category = full_name


def max_jobs(cursor: Cursor, rest: str) -> None:
    """`MAXJOBS category number`; a limit in an outer file replaces that of a splice."""
    name, value = _two_words(cursor, rest, "MAXJOBS category number")
    limit = whole(value, "the limit of MAXJOBS")
    full_name = _category(cursor, name)
    state = cursor.state
    limits = state.spec.categories
    if state.limit_depths.get(full_name, cursor.scope.depth) < cursor.scope.depth:
        return
    if state.limit_depths.get(full_name) == cursor.scope.depth and limits[full_name] != limit:
        cursor.warn(f"category {name} had the limit {limits[full_name]}: the last one counts")
    if limit == 0:
        cursor.warn(f"no node of category {name} is ever started: its limit is 0")
    limits[full_name] = limit
    state.limit_depths[full_name] = cursor.scope.depth


def _category(cursor: Cursor, name: str) -> str:
    full_name = cursor.scope.category(name)
    if not name.strip("+") or len(full_name) > MAX_NAME_LENGTH:
        raise Fault(f"the name of a category has 1 to {MAX_NAME_LENGTH} characters: {name[:80]}")
    return full_name


def save_point_file(cursor: Cursor, rest: str) -> None:
    """`SAVE_POINT_FILE name [file]`; a file name without a folder is put into `save_files/`."""
    words = cursor.words(rest)
    if len(words) not in {1, 2}:
        raise Fault("expected: SAVE_POINT_FILE name, and a file if wanted")
    node = cursor.node(words[0])
    dag_file = posixpath.basename(cursor.state.dag_files[0])
    name = words[1] if len(words) == 2 else f"{node.name}-{dag_file}.save"
    if "/" not in name:
        name = f"{_SAVE_DIRECTORY}/{name}"
    path = cursor.state.path(cursor.state.origin.directory, name)
    if fault := aside_fault(path):
        raise Fault(f"an older save point could not be kept beside it: {fault}")
    node.save_point = path


def _two_words(cursor: Cursor, rest: str, expected: str) -> tuple[str, str]:
    words = cursor.words(rest)
    if len(words) != 2:
        raise Fault(f"expected: {expected}")
    return words[0], words[1]
