"""CONFIG files: DAGMan's settings, as the options of a run."""

from __future__ import annotations

import re
from collections.abc import Callable

from wms.dags.language.bounds import MAX_DATA_ATTEMPTS, MAX_RESCUES
from wms.dags.language.faults import Fault
from wms.dags.language.lexer import SourceText, is_comment
from wms.dags.language.numbers import LARGEST, whole
from wms.dags.language.reading import Reading
from wms.dags.language.spec import Place

_SETTING = re.compile(r"([A-Za-z_][A-Za-z0-9_.]*)\s*=\s*(.*)\Z", re.DOTALL)
_TRUTH = {"true": True, "t": True, "yes": True, "1": True}
_TRUTH |= {"false": False, "f": False, "no": False, "0": False}


def _limit(text: str) -> int:
    return whole(text, "the value")


def _truth(text: str) -> bool:
    if text.lower() not in _TRUTH:
        raise Fault(f"the value is true or false, found: {text[:80]}")
    return _TRUTH[text.lower()]


def _rescues(text: str) -> int:
    return whole(text, "the value", most=MAX_RESCUES)


def _attempts(text: str) -> int:
    return whole(text, "the value", least=1, most=MAX_DATA_ATTEMPTS)


def _priority(text: str) -> int:
    return whole(text, "the value", least=-LARGEST)


#: The names of RunOptions for those of DAGMan, and how their values are read.
OPTIONS: dict[str, tuple[str, Callable[[str], int | bool]]] = {
    "DAGMAN_MAX_JOBS_SUBMITTED": ("max_jobs", _limit),
    "DAGMAN_MAX_JOBS_IDLE": ("max_idle", _limit),
    "DAGMAN_MAX_PRE_SCRIPTS": ("max_pre", _limit),
    "DAGMAN_MAX_POST_SCRIPTS": ("max_post", _limit),
    "DAGMAN_MAX_HOLD_SCRIPTS": ("max_hold_scripts", _limit),
    "DAGMAN_MAX_JOB_HOLDS": ("max_job_holds", _limit),
    "DAGMAN_DEFAULT_PRIORITY": ("priority", _priority),
    "DAGMAN_ALWAYS_RUN_POST": ("always_run_post", _truth),
    "DAGMAN_SUBMIT_DEPTH_FIRST": ("depth_first", _truth),
    "DAGMAN_RETRY_NODE_FIRST": ("retry_node_first", _truth),
    "DAGMAN_RESET_RETRIES_UPON_RESCUE": ("reset_retries", _truth),
    "DAGMAN_MAX_RESCUE_NUM": ("max_rescue", _rescues),
    "STORK_MAX_RETRY": ("data_attempts", _attempts),
}
_STRICT = "DAGMAN_USE_STRICT"
_MOST_STRICT = 3


def read_config(text: str, file: str, reading: Reading) -> None:
    """Take the settings of a file into the options of the run; faults and warnings are told."""
    source = SourceText(text, file)
    for at, raw in enumerate(source.lines):
        if not raw.strip() or is_comment(raw):
            continue
        place = Place(file, at + 1)
        found = _SETTING.match(source.join(at).strip())
        if found is None:
            reading.told.fault(f"expected NAME = value, found: {raw.strip()[:80]}", place, "CONFIG")
            continue
        try:
            _take(found[1], found[2].strip(), place, reading)
        except Fault as fault:
            reading.told.fault(f"{found[1]}: {fault}", place, "CONFIG")


def _take(name: str, value: str, place: Place, reading: Reading) -> None:
    known = name.upper()
    if known == _STRICT:
        reading.told.strictness = whole(value, "the value", most=_MOST_STRICT)
    elif known in OPTIONS:
        option, read = OPTIONS[known]
        reading.spec.options[option] = read(value)
    else:
        reading.told.warn(f"{name} has no effect here", place, "CONFIG")
