"""The conformance cases of the pressure computation: own ones, or those of `--pressure-cases`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from matching import core_seconds
from matching.pressure import formulas as pressure
from matching.pressure import held_pilots as pressure_lifecycle
from matching.pressure import removal as pressure_removal
from matching.pressure import simulation as pressure_model
from wms.pilots.agent.session import lifetime_rules

CASES = Path(__file__).with_name("pressure_cases.json")
#: Named after words that Python keeps for itself.
RENAMED = {"class": "class_", "global": "global_"}
#: Compared as sets: their order is not told.
SETS = {"triggered", "entry_limits"}

Values = Mapping[str, Any]


def _nested(kinds: Mapping[str, Callable[..., Any]], inputs: Values) -> dict[str, Any]:
    """The inputs, those that have fields of their own as values of these types."""
    given = {name: value for name, value in inputs.items() if value is not None}
    return {
        RENAMED.get(name, name): kinds[name](**value) if name in kinds else value
        for name, value in given.items()
    }


def _min_idle(inputs: Values) -> Any:
    slots = dict.fromkeys(("entry", "group", "frontend", "global"), pressure.Slots)
    kinds = {**slots, "limits": pressure.FrontendLimits}
    return pressure.min_idle(**_nested(kinds, inputs))


def _factory_request(inputs: Values) -> Any:
    counts = dict.fromkeys(("mine", "entry", "class"), pressure_removal.Counts)
    kinds = {**counts, "limits": pressure_removal.FactoryLimits}
    return pressure_removal.factory_request(**_nested(kinds, inputs))


def _factory_cleanup(inputs: Values) -> Any:
    kinds = {"mine": pressure_removal.Removable, "class": pressure_removal.Counts}
    return pressure_removal.factory_cleanup(**_nested(kinds, inputs))


def _removal_decision(inputs: Values) -> Any:
    decisions = pressure_removal.removal_decision(
        [pressure_removal.Observed(**cycle) for cycle in inputs["cycles"]],
        pressure_removal.RemovalConfig(**inputs.get("config", {})),
        view_complete=inputs.get("view_complete", True),
    )
    return {
        "all": decisions.all,
        "last": decisions.last,
        "first_cycle_not_NO": decisions.first_cycle_not_NO,
    }


def _usable_slot(inputs: Values) -> Any:
    return pressure.usable_slot(
        pressure.SlotState(**inputs["slot"]),
        pressure.SmallestRequest(**(inputs.get("smallest_request") or {})),
    )


def _closed_loop(inputs: Values) -> Any:
    course = pressure_model.closed_loop(**_nested({}, inputs))
    told = {"total_submitted": course.total_submitted, "cycles": course.cycles}
    return asdict(course) | told


def _request_lease(inputs: Values) -> Any:
    # The level bounds nothing here: it is topped up again as pilots start.
    given = {name: value for name, value in inputs.items() if name != "req_min_idle"}
    return pressure.request_lease(**_nested({}, given))


def _stale_decision(inputs: Values) -> Any:
    ages = {"configured_idle_age": "idle", "configured_running_age": "running"}
    given = dict(inputs)
    configured = {state: given.pop(name, None) for name, state in ages.items()}
    action = pressure_lifecycle.stale_decision(**given, configured_age=configured[given["state"]])
    return {"action": action}


def _plain(function: Callable[..., Any], result: str = "") -> Callable[[Values], Any]:
    def call(inputs: Values) -> Any:
        told = function(**_nested({}, inputs))
        return {result: told} if result else told

    return call


FUNCTIONS: dict[str, Callable[[Values], Any]] = {
    "effective_idle": _plain(pressure.effective_idle),
    "min_idle": _min_idle,
    "max_run": _plain(pressure.max_run, "max_run"),
    "exact_share": _plain(pressure.exact_share),
    "down_entry": lambda inputs: dict(
        zip(("min_idle", "max_run"), pressure.down_entry(**inputs), strict=True)
    ),
    "view_guard": _plain(pressure.view_guard),
    "usable_slot": _usable_slot,
    "request_lease": _request_lease,
    "factory_request": _factory_request,
    "factory_cleanup": _factory_cleanup,
    "removal_decision": _removal_decision,
    "closed_loop": _closed_loop,
    "held_decision": _plain(pressure_lifecycle.held_decision, "action"),
    "stale_decision": _stale_decision,
    "queue_self_removal": _plain(pressure_lifecycle.queue_self_removal, "action"),
    "lifetime": _plain(lifetime_rules.lifetime),
    "pilot_shutdown": _plain(lifetime_rules.pilot_shutdown),
    "core_accounting": _plain(core_seconds.core_accounting),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    path = Path(metafunc.config.getoption("--pressure-cases") or CASES)
    cases = json.loads(path.read_text())["cases"]
    tried = [case for case in cases if not _is_warning(case)]
    metafunc.parametrize("case", tried, ids=[case["id"] for case in tried])


def _is_warning(case: Values) -> bool:
    """Whether the case only warns of what another system does."""
    return bool(case.get("recommended_for_us", {}).get("not_applicable"))


def test_the_case_comes_out_as_expected(case: dict[str, Any]) -> None:
    assert case["function"] in FUNCTIONS, f"there is no function {case['function']}"
    expected = {**case["expected"], **case.get("recommended_for_us", {})}

    answer = FUNCTIONS[case["function"]](case["inputs"])

    told = asdict(answer) if is_dataclass(answer) else answer
    assert _comparable({name: told[name] for name in expected}) == _comparable(expected)


def _comparable(values: Values) -> Any:
    """As JSON has it, so that tuples equal lists."""
    sorted_sets = {
        name: sorted(value) if name in SETS and value is not None else value
        for name, value in values.items()
    }
    return json.loads(json.dumps(sorted_sets, default=asdict))
