"""Behaviour file of a simulation, read from JSON: result and duration of each run in it.

Runs are those of components: a component is a node (its jobs), a script of it, or an attempt of
its placement: `A`, `A.pre`, `A.post`, `A.hold`, `A.try`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wms.core.errors import Finding, InvalidInput

#: Microseconds, the unit of simulated time, in a second.
US_PER_S = 1_000_000
#: Limit of a duration (30 years).
_MAX_DURATION_S = 30 * 366 * 86_400
#: Kind of the component of an attempt of a placement request.
TRANSFER = "try"
#: The number in the name of a pass, with what is behind it.
_PASS = re.compile(r"#[0-9]+(?=\.[a-z]+\Z|\Z)")
_KINDS = frozenset({"pre", "post", "hold", TRANSFER})


@dataclass(frozen=True, slots=True)
class RunResult:
    """Result of one run of a component: exit code, signal (negative), or removed from the queue.

    `is_held`: it is put on hold when it starts for the first time. `is_ready`: a provisioner
    reports that it is ready as soon as it runs.
    """

    code: int = 0
    is_removed: bool = False
    is_held: bool = False
    is_ready: bool = False

    @property
    def signal(self) -> int | None:
        """Number of the signal that ends the run, or None."""
        return -self.code if self.code < 0 else None


SUCCESS = RunResult()


@dataclass(frozen=True, slots=True)
class DefaultDurations:
    """Durations in seconds of runs that have no duration of their own."""

    job_s: float = 0.5
    script_s: float = 0.1
    transfer_s: float = 0.5
    service_s: float = 0.5
    gate_s: float = 0.5


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Results and durations by component.

    `results` has one entry for each run, the last repeats; without any, runs succeed. An entry that
    is a list has one result for each process of a job list. Keys of `durations_s` are one run
    (`A@1`, counted from 0), a component, or all components of a kind (`*`, `*.pre`). A pass of a
    repeated node, `A#2`, of which nothing is said is like its first one.
    """

    results: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    durations_s: Mapping[str, float] = field(default_factory=dict)
    defaults: DefaultDurations = DefaultDurations()
    #: Provisioners report that they are ready, services run as long as the DAG, gates are opened.
    is_cooperative: bool = False

    def result(self, component: str, run: int, process: int = 0) -> RunResult:
        """Result of a run of a component; runs count from 0."""
        entries = self.results.get(component) or self.results.get(_of_first_pass(component))
        if not entries:
            return SUCCESS
        result = entries[min(run, len(entries) - 1)]
        if isinstance(result, list):
            result = result[min(process, len(result) - 1)] if result else 0
        return read_result(result)

    def duration_us(self, name: str, kind: str, run: int, default_s: float) -> int:
        """Duration of a run; `kind` is empty for the node's jobs."""
        for key in _duration_keys(name, kind, run):
            if key in self.durations_s:
                return round(self.durations_s[key] * US_PER_S)
        return round(default_s * US_PER_S)

    def has_duration(self, name: str, run: int, kind: str = "") -> bool:
        """Whether a duration is given for this run, its component or its kind."""
        return any(key in self.durations_s for key in _duration_keys(name, kind, run))


def component_name(name: str, kind: str) -> str:
    """Name of a component: `A`, or with a kind `A.pre`."""
    return f"{name}.{kind}" if kind else name


def _of_first_pass(component: str) -> str:
    return _PASS.sub("", component)


def _duration_keys(name: str, kind: str, run: int) -> Iterator[str]:
    for node in dict.fromkeys((name, _of_first_pass(name), "*")):
        component = component_name(node, kind)
        yield f"{component}@{run}"
        if kind:
            yield f"{node}@{run}.{kind}"
        yield component


def read_result(value: Any) -> RunResult:
    """Result read from its form in JSON: a code, or a word. Raises ValueError."""
    if isinstance(value, int) and not isinstance(value, bool) and -255 <= value <= 255:
        return RunResult(value)
    if isinstance(value, str):
        word, _, code = value.partition(":")
        if word == "removed" and not code:
            return RunResult(is_removed=True)
        if word in {"hold", "ready"}:
            number = int(code or 0)
            return RunResult(number, is_held=word == "hold", is_ready=word == "ready")
    raise ValueError(f"a result is a code, 'removed', 'hold:CODE' or 'ready:CODE', not {value!r}")


def read_behaviour(
    results: Mapping[str, Any],
    durations: Mapping[str, Any],
    *,
    defaults: DefaultDurations = DefaultDurations(),
    is_cooperative: bool = False,
) -> Behaviour:
    """Behaviour from the results and durations of a JSON file. Raises InvalidInput."""
    faults = list(_faults_of_results(results)) + list(_faults_of_durations(durations))
    if faults:
        raise InvalidInput(faults)
    return Behaviour(
        results={name: _as_list(value) for name, value in results.items()},
        durations_s={name: float(value) for name, value in durations.items()},
        defaults=defaults,
        is_cooperative=is_cooperative,
    )


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _faults_of_results(results: Mapping[str, Any]) -> Iterator[Finding]:
    for component, value in results.items():
        for entry in _as_list(value):
            for result in _as_list(entry):
                try:
                    read_result(result)
                except ValueError as error:
                    yield Finding(str(error), field=f"behaviour of {component}")


def _faults_of_durations(durations: Mapping[str, Any]) -> Iterator[Finding]:
    for component, value in durations.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 <= value <= _MAX_DURATION_S:
            yield Finding(
                f"a duration is a number of seconds, not {value!r}",
                field=f"duration of {component}",
            )


def node_names_in(keys: Sequence[str] | Mapping[str, Any]) -> Iterator[str]:
    """Node names in keys of results and durations, without `*`."""
    for key in keys:
        name = key.split("@")[0]
        stem, _, kind = name.rpartition(".")
        if stem and kind in _KINDS:
            name = stem
        if name != "*":
            yield name
