"""What a simulation is told of the components of a DAG: how their runs end, and how long they take.

A component is a node (its jobs), or a script of it: `A`, `A.pre`, `A.post`, `A.hold`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wms.core.errors import Finding, InvalidInput

#: The time of a simulation is counted in these.
US_PER_S = 1_000_000
#: A run that lasts longer than this (30 years) is a mistake.
_LONGEST_S = 30 * 366 * 86_400
#: The component of an attempt of a placement request.
TRY = "try"
_KINDS = frozenset({"pre", "post", "hold", TRY})


@dataclass(frozen=True, slots=True)
class Result:
    """How one run of a component ends: by a code, a signal, or removed from the queue.

    `is_held`: it is put on hold when it starts for the first time. `is_ready`: a provisioner says
    that it is ready as soon as it runs.
    """

    code: int = 0
    is_removed: bool = False
    is_held: bool = False
    is_ready: bool = False

    @property
    def signal(self) -> int | None:
        """The signal that ends it, if one does."""
        return -self.code if self.code < 0 else None


SUCCESS = Result()


@dataclass(frozen=True, slots=True)
class Usual:
    """How long runs take that nothing was said about, in seconds."""

    job_s: float = 0.5
    script_s: float = 0.1
    try_s: float = 0.5
    service_s: float = 0.5


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Results and durations by component.

    `results` are one for each run, of which the last repeats; without any, runs succeed. A result
    that is a list is of a job list, one for each process. `durations_s` may be of one run (`A@1`,
    counted from 0), of a component, or of all of a kind (`*`, `*.pre`).
    """

    results: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    durations_s: Mapping[str, float] = field(default_factory=dict)
    usual: Usual = Usual()
    #: Provisioners say that they are ready, services last as long as the DAG.
    is_obliging: bool = False

    def result(self, component: str, run: int, process: int = 0) -> Result:
        """How this run of a component ends, counted from 0."""
        given = self.results.get(component)
        if not given:
            return SUCCESS
        result = given[min(run, len(given) - 1)]
        if isinstance(result, list):
            result = result[min(process, len(result) - 1)] if result else 0
        return read_result(result)

    def duration_us(self, name: str, kind: str, run: int, usual_s: float) -> int:
        """How long this run takes; `kind` is empty for the node's jobs."""
        for key in _keys(name, kind, run):
            if key in self.durations_s:
                return round(self.durations_s[key] * US_PER_S)
        return round(usual_s * US_PER_S)

    def says_how_long(self, name: str, run: int, kind: str = "") -> bool:
        """Whether a duration is given for this run, by its own name or for all of its kind."""
        return any(key in self.durations_s for key in _keys(name, kind, run))


def component_of(name: str, kind: str) -> str:
    """What a component is called."""
    return f"{name}.{kind}" if kind else name


def _keys(name: str, kind: str, run: int) -> Iterator[str]:
    for who in (name, "*"):
        component = component_of(who, kind)
        yield f"{component}@{run}"
        if kind:
            yield f"{who}@{run}.{kind}"
        yield component


def read_result(value: Any) -> Result:
    """A result as it is written. Raises ValueError."""
    if isinstance(value, int) and not isinstance(value, bool) and -255 <= value <= 255:
        return Result(value)
    if isinstance(value, str):
        word, _, code = value.partition(":")
        if word == "removed" and not code:
            return Result(is_removed=True)
        if word in {"hold", "ready"}:
            number = int(code or 0)
            return Result(number, is_held=word == "hold", is_ready=word == "ready")
    raise ValueError(f"a result is a code, 'removed', 'hold:CODE' or 'ready:CODE', not {value!r}")


def read_behaviour(
    results: Mapping[str, Any],
    durations: Mapping[str, Any],
    *,
    usual: Usual = Usual(),
    is_obliging: bool = False,
) -> Behaviour:
    """Results and durations as a JSON file has them, checked. Raises InvalidInput."""
    faults = list(_faults_of_results(results)) + list(_faults_of_durations(durations))
    if faults:
        raise InvalidInput(faults)
    return Behaviour(
        results={name: _as_list(value) for name, value in results.items()},
        durations_s={name: float(value) for name, value in durations.items()},
        usual=usual,
        is_obliging=is_obliging,
    )


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _faults_of_results(results: Mapping[str, Any]) -> Iterator[Finding]:
    for component, value in results.items():
        for each in _as_list(value):
            for result in _as_list(each):
                try:
                    read_result(result)
                except ValueError as error:
                    yield Finding(str(error), field=f"behaviour of {component}")


def _faults_of_durations(durations: Mapping[str, Any]) -> Iterator[Finding]:
    for component, value in durations.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 <= value <= _LONGEST_S:
            yield Finding(
                f"a duration is a number of seconds, not {value!r}",
                field=f"duration of {component}",
            )


def names_in(keys: Sequence[str] | Mapping[str, Any]) -> Iterator[str]:
    """The names of nodes that keys of results and durations are of, `*` left out."""
    for key in keys:
        name = key.split("@")[0]
        stem, _, kind = name.rpartition(".")
        if stem and kind in _KINDS:
            name = stem
        if name != "*":
            yield name
