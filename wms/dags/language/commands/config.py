"""Reader of CONFIG files: DAGMan's settings as options of a run, with faults and warnings.

DAGMAN_USE_STRICT sets the level by which warnings become faults.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from wms.dags.language.faults import Fault
from wms.dags.language.lexer import SourceText, is_comment
from wms.dags.language.numbers import LARGEST, whole
from wms.dags.language.parse_state import ParseState
from wms.dags.language.size_limits import MAX_DATA_ATTEMPTS, MAX_RESCUES
from wms.dags.language.spec import SourceLocation

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
    "PILOTAGE_TIMEOUT_QUEUE": ("timeout_queue_s", _limit),
    "PILOTAGE_TIMEOUT_RUN": ("timeout_run_s", _limit),
}
_STRICT = "DAGMAN_USE_STRICT"
#: Begins the names of settings that DAGMan does not have.
_OWN = "PILOTAGE_"
_MOST_STRICT = 3


def read_config(text: str, file: str, state: ParseState) -> None:
    """Read the settings of a file into the options of the run; collect its faults and warnings."""
    source = SourceText(text, file)
    source.split()
    for at, raw in enumerate(source.lines):
        if not raw.strip() or is_comment(raw):
            continue
        location = SourceLocation(file, at + 1)
        setting = _SETTING.match(source.join(at).strip())
        if setting is None:
            state.collector.add_fault(
                f"expected NAME = value, found: {raw.strip()[:80]}", location, "CONFIG"
            )
            continue
        try:
            _apply_setting(setting[1], setting[2].strip(), location, state)
        except Fault as fault:
            state.collector.add_fault(f"{setting[1]}: {fault}", location, "CONFIG")


def _apply_setting(name: str, value: str, location: SourceLocation, state: ParseState) -> None:
    upper_name = name.upper()
    if upper_name == _STRICT:
        state.collector.strictness = whole(value, "the value", most=_MOST_STRICT)
    elif upper_name in OPTIONS:
        option, read = OPTIONS[upper_name]
        state.spec.options[option] = read(value)
        if upper_name.startswith(_OWN):
            state.note_addition(f"{upper_name}, and would set no such limit", location, "CONFIG")
    else:
        state.collector.add_warning(f"{name} has no effect here", location, "CONFIG")
