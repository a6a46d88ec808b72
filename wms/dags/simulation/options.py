"""Options of a simulated run, read from JSON: those of a run in the API, slots, and triggers.

Triggers are actions on the DAG after the start of a job. Also the resume point, further DAG files,
and whether a halted DAG and held jobs are released. Conformance cases may use option names of
DAGMan as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from wms.core.errors import Finding, InvalidInput
from wms.dags.language.spec import RunOptions
from wms.dags.rescue.rescue_files import BY_DEFAULT, Resumption, read_resumption

#: Option names of cases and those of the engine.
_SYNONYMS = {
    "max_hold": "max_hold_scripts",
    "reset_retries_upon_rescue": "reset_retries",
    "stork_max_attempts": "data_attempts",
}
_RUN_OPTIONS = {**{each.name: each.name for each in fields(RunOptions)}, **_SYNONYMS}
#: Arcs are never replaced by join nodes, and cycles are always looked for.
_WITHOUT_EFFECT = frozenset({"join_nodes", "startup_cycle_detect"})
_TRIGGERS = ("halt_when", "remove_when", "hold_release_when", "kill_when")
_OTHER_OPTIONS: dict[str, type | tuple[type, ...]] = {
    "resume": (str, int),
    "save_point": str,
    "auto_rescue": bool,
    "do_rescue_from": int,
    "load_save": str,
    "force": bool,
    "no_update": bool,
    "extra_dags": list,
    "resume_after": (int, float),
    "release_held": bool,
    "slots": int,
    **dict.fromkeys(_TRIGGERS, str),
}


@dataclass(frozen=True, slots=True)
class Trigger:
    """Action on the DAG one second after a job start, given by node and number of the start."""

    action: str
    component: str
    start_number: int


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """Options of a simulated run.

    `slots` limits concurrent jobs, 0 is no limit. `resume_after_s` is counted from a halt.
    """

    run_options: Mapping[str, Any] = field(default_factory=dict)
    resumption: Resumption = BY_DEFAULT
    keeps_files: bool = False
    extra_dags: tuple[str, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    resume_after_s: float | None = None
    releases_held: bool = False
    slots: int = 0


def read_options(given: Mapping[str, Any]) -> SimulationOptions:
    """Options from an object of a JSON file. Raises InvalidInput with every fault."""
    faults = [
        Finding(fault, field=f"option {name}")
        for name, value in given.items()
        if (fault := _fault(name, value))
    ]
    if faults:
        raise InvalidInput(faults)
    return SimulationOptions(
        run_options={
            _RUN_OPTIONS[name]: value for name, value in given.items() if name in _RUN_OPTIONS
        },
        resumption=_resumption(given),
        keeps_files=given.get("no_update", False),
        extra_dags=tuple(given.get("extra_dags", ())),
        triggers=tuple(_trigger(name, given[name]) for name in _TRIGGERS if name in given),
        resume_after_s=given.get("resume_after"),
        releases_held=given.get("release_held", False),
        slots=given.get("slots", 0),
    )


def _resumption(given: Mapping[str, Any]) -> Resumption:
    if not {"resume", "save_point"}.isdisjoint(given):
        return read_resumption(str(given.get("resume", "")), given.get("save_point", ""))
    return Resumption(
        takes_newest=given.get("auto_rescue", True),
        rescue_number=given.get("do_rescue_from"),
        save_point=given.get("load_save", ""),
        is_fresh=given.get("force", False),
    )


def _fault(name: str, value: Any) -> str:
    if name in _RUN_OPTIONS or name in _WITHOUT_EFFECT:
        # What values these may have is checked with those of any run.
        return ""
    if name not in _OTHER_OPTIONS:
        return "there is no such option"
    expected = _OTHER_OPTIONS[name]
    is_valid = isinstance(value, expected) and (expected is bool or not isinstance(value, bool))
    if not is_valid:
        return f"{value!r} is not what it takes"
    if name in _TRIGGERS and _start_of(value) is None:
        return f"NODE.start or NODE.start@NUMBER, not {value!r}"
    return ""


def _start_of(text: str) -> tuple[str, int] | None:
    name, at, number = text.rpartition("@")
    if not at:
        name, number = text, "0"
    component, dot, word = name.rpartition(".")
    if not dot or word != "start" or not component or not number.isdecimal():
        return None
    return component, int(number)


def _trigger(name: str, text: str) -> Trigger:
    component, start = _start_of(text) or ("", 0)
    return Trigger(name.removesuffix("_when"), component, start)
