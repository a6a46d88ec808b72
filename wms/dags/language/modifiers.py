"""The commands that say something of nodes by one or two values."""

from __future__ import annotations

import posixpath
import re
from typing import Literal

from wms.dags.language.bounds import MAX_NAME_LENGTH, MAX_RETRIES
from wms.dags.language.faults import Fault
from wms.dags.language.lexer import keyword, unquote
from wms.dags.language.numbers import LARGEST, exit_code, whole
from wms.dags.language.reading import Here
from wms.dags.language.spec import AbortRule, Retry, TimeLimits, Tolerance
from wms.dags.rescue.names import aside_fault

_CHANGE = re.compile(r"(\+?[A-Za-z_][A-Za-z0-9_.]*)(\*?=)(.+)\Z", re.DOTALL)
_FACTOR = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})?\Z")
_SAVE_DIRECTORY = "save_files"


def retry(here: Here, rest: str) -> None:
    """`RETRY name n [UNLESS-EXIT v] [AVOID-SITES] [WITH command*=factor command=value ...]`."""
    name, *behind = here.source.head(rest) or [""]
    # Thousands of nodes are tried again in the same way: the value is theirs together.
    known = here.reading.retries
    told = known.get(behind[0]) if behind else None
    if told is None:
        told = known["".join(behind)] = _read_retry(here.words(rest))
    for node in here.nodes(unquote(name)):
        node.retry = told


def _read_retry(words: list[str]) -> Retry:
    if len(words) < 2:
        raise Fault("expected: RETRY name number")
    count = whole(words[1], "the number of retries", most=MAX_RETRIES)
    unless_exit, avoids_sites = None, False
    rest = words[2:]
    while rest:
        option = keyword(rest[0])
        if option == "WITH":
            return Retry(count, unless_exit, avoids_sites, tuple(map(_change, _some(rest[1:]))))
        if option == "UNLESS-EXIT" and len(rest) > 1:
            unless_exit, rest = exit_code(rest[1], "UNLESS-EXIT"), rest[2:]
        elif option == "AVOID-SITES":
            avoids_sites, rest = True, rest[1:]
        else:
            raise Fault(f"unexpected after the number of retries: {' '.join(rest)[:80]}")
    return Retry(count, unless_exit, avoids_sites)


def _some(changes: list[str]) -> list[str]:
    if not changes:
        raise Fault("WITH needs a change: command*=factor or command=value")
    return changes


def _change(text: str) -> tuple[str, Literal["*", "="], str]:
    found = _CHANGE.match(text)
    if found is None:
        raise Fault(f"expected command*=factor or command=value, found: {text[:80]}")
    name, sign, value = found.groups()
    name = name if name.startswith("+") else name.lower()
    if sign == "=":
        return name, "=", value
    if _FACTOR.match(value) is None or float(value) <= 0:
        raise Fault(f"{name} is changed by a factor above 0, found: {value[:80]}")
    return name, "*", value


def priority(here: Here, rest: str) -> None:
    """`PRIORITY name number`."""
    name, value = _two(here, rest, "PRIORITY name number")
    number = whole(value, "a priority", least=-LARGEST)
    for node in here.nodes(name):
        node.priority = number


def pre_skip(here: Here, rest: str) -> None:
    """`PRE_SKIP name code`."""
    name, value = _two(here, rest, "PRE_SKIP name code")
    code = whole(value, "the code of PRE_SKIP", most=255)
    for node in here.nodes(name):
        node.pre_skip = code


def done(here: Here, rest: str) -> None:
    """`DONE name`."""
    words = here.words(rest)
    if len(words) != 1:
        raise Fault("expected: DONE name")
    here.node(words[0]).is_done = True


def abort_dag_on(here: Here, rest: str) -> None:
    """`ABORT-DAG-ON name code [RETURN code]`."""
    words = here.words(rest)
    has_return = len(words) == 4 and keyword(words[2]) == "RETURN"
    if len(words) != 2 and not has_return:
        raise Fault("expected: ABORT-DAG-ON name code, and RETURN code if wanted")
    code = exit_code(words[1], "the code of ABORT-DAG-ON")
    returned = whole(words[3], "the code of RETURN", most=255) if has_return else None
    rule = AbortRule(code, returned)
    for node in here.nodes(words[0]):
        node.abort = rule


def tolerance(here: Here, rest: str) -> None:
    """`TOLERANCE name n|n% [FAIL-FAST|WAIT]`; more than 100 percent is more than all.

    Source: DagParser::ParseTolerance (HTCondor 25.14, dag_parser.cpp).
    """
    words = here.words(rest)
    if len(words) > 2 and words[2] == "%":
        words[1:3] = [words[1] + "%"]
    option = keyword(words[2]) if len(words) == 3 else ""
    if len(words) not in {2, 3} or option not in {"", "FAIL-FAST", "WAIT"}:
        raise Fault("expected: TOLERANCE name number, with % if wanted, and FAIL-FAST or WAIT")
    is_percent = words[1].endswith("%")
    limit = whole(words[1].removesuffix("%"), "a tolerance")
    told = Tolerance(limit, is_percent, option != "WAIT")
    for node in here.nodes(words[0]):
        node.tolerance = told


def timeout(here: Here, rest: str) -> None:
    """`TIMEOUT name [QUEUE seconds] [RUN seconds]`, at least one of them."""
    words = here.words(rest)
    given = {keyword(word): value for word, value in zip(words[1::2], words[2::2], strict=False)}
    if len(words) not in {3, 5} or len(given) != len(words) // 2 or given.keys() - {"QUEUE", "RUN"}:
        raise Fault("expected: TIMEOUT name, then QUEUE seconds or RUN seconds or both")
    seconds = {name: whole(value, f"{name} in seconds", least=1) for name, value in given.items()}
    limits = TimeLimits(queue_s=seconds.get("QUEUE", 0), run_s=seconds.get("RUN", 0))
    for node in here.nodes(words[0]):
        node.time_limits = limits


def always_run_post(here: Here, rest: str) -> None:
    """`ALWAYS-RUN-POST name`."""
    words = here.words(rest)
    if len(words) != 1:
        raise Fault("expected: ALWAYS-RUN-POST name")
    for node in here.nodes(words[0]):
        node.always_runs_post = True


def category(here: Here, rest: str) -> None:
    """`CATEGORY name category`."""
    name, category_name = _two(here, rest, "CATEGORY name category")
    full_name = _category(here, category_name)
    for node in here.nodes(name):
        node.category = full_name


def max_jobs(here: Here, rest: str) -> None:
    """`MAXJOBS category number`; what stands in an outer file replaces what a splice says."""
    name, value = _two(here, rest, "MAXJOBS category number")
    limit = whole(value, "the limit of MAXJOBS")
    full_name = _category(here, name)
    reading = here.reading
    limits = reading.spec.categories
    if reading.limit_depths.get(full_name, here.scope.depth) < here.scope.depth:
        return
    if reading.limit_depths.get(full_name) == here.scope.depth and limits[full_name] != limit:
        here.warn(f"category {name} had the limit {limits[full_name]}: the last one counts")
    if limit == 0:
        here.warn(f"no node of category {name} is ever started: its limit is 0")
    limits[full_name] = limit
    reading.limit_depths[full_name] = here.scope.depth


def _category(here: Here, name: str) -> str:
    full_name = here.scope.category(name)
    if not name.strip("+") or len(full_name) > MAX_NAME_LENGTH:
        raise Fault(f"the name of a category has 1 to {MAX_NAME_LENGTH} characters: {name[:80]}")
    return full_name


def save_point_file(here: Here, rest: str) -> None:
    """`SAVE_POINT_FILE name [file]`; a plain name is one in the directory of save points."""
    words = here.words(rest)
    if len(words) not in {1, 2}:
        raise Fault("expected: SAVE_POINT_FILE name, and a file if wanted")
    node = here.node(words[0])
    dag_file = posixpath.basename(here.reading.dag_files[0])
    name = words[1] if len(words) == 2 else f"{node.name}-{dag_file}.save"
    if "/" not in name:
        name = f"{_SAVE_DIRECTORY}/{name}"
    path = here.reading.path(here.reading.origin.directory, name)
    if fault := aside_fault(path):
        raise Fault(f"an older save point could not be kept beside it: {fault}")
    node.save_point = path


def _two(here: Here, rest: str, expected: str) -> tuple[str, str]:
    words = here.words(rest)
    if len(words) != 2:
        raise Fault(f"expected: {expected}")
    return words[0], words[1]
