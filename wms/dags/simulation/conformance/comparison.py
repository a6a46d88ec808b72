"""Comparison of the outcome of a run with the expectations of a conformance case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wms.dags.simulation.outcome import Outcome, parse_json_object
from wms.dags.simulation.trace import Run, max_concurrency


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference from an expectation of a case, in one of its submissions (from 1)."""

    expectation: str
    message: str
    submission: int = 1

    def __str__(self) -> str:
        prefix = f"submission {self.submission}: " if self.submission > 1 else ""
        return f"{prefix}{self.message}"


_Check = Callable[[Any, Outcome], Iterator[str]]


def differences(
    expect: Mapping[str, Any], outcome: Outcome, *, may_refuse_cycle: bool = False
) -> list[Difference]:
    """Differences of the outcome from the expectations of a case.

    `may_refuse_cycle`: a DAG that is refused for its cycle agrees, too.
    """
    if may_refuse_cycle and outcome.dag_state == "invalid":
        return [Difference("cycle", message) for message in _check_refused_cycle(outcome)]
    return [
        Difference(name, message)
        for name, check in _CHECKS.items()
        if name in expect
        for message in check(expect[name], outcome)
    ]


def _check_refused_cycle(outcome: Outcome) -> Iterator[str]:
    if not any("cycle" in message.lower() for message in outcome.messages):
        yield f"refused, but not for a cycle: {'; '.join(outcome.messages)}"
    if outcome.trace.runs or outcome.rescue_done is not None:
        yield "refused for a cycle, and yet something ran"


def _one_of(expected: Any, found: Any) -> bool:
    return found in expected if isinstance(expected, list) else found == expected


def _same(name: str, value: Callable[[Outcome], Any]) -> _Check:
    def check(expected: Any, outcome: Outcome) -> Iterator[str]:
        found = value(outcome)
        if not _one_of(expected, found):
            messages = "; ".join(outcome.messages)[:500] if name == "dag_state" else ""
            why = f" ({messages})" if messages else ""
            yield f"{name}: expected {expected!r}, found {found!r}{why}"

    return check


def _nodes(expected: Mapping[str, Any], outcome: Outcome) -> Iterator[str]:
    for name, state in expected.items():
        found = outcome.state_of(name)
        if not _one_of(state, found):
            yield f"node {name}: expected {state!r}, found {found!r}"


def _counts(what: str, values: Callable[[Outcome], Mapping[str, int]]) -> _Check:
    def check(expected: Mapping[str, Any], outcome: Outcome) -> Iterator[str]:
        found = values(outcome)
        for component, number in expected.items():
            if not _one_of(number, found.get(component, 0)):
                yield f"{what} of {component}: expected {number}, found {found.get(component, 0)}"

    return check


def _order(expected: Sequence[Sequence[str]], outcome: Outcome) -> Iterator[str]:
    components = outcome.trace.components
    for first, second in expected:
        runs, later = components.get(first, []), components.get(second, [])
        yield from (f"order: there is no {each}" for each in _unknown([first, second], outcome))
        if runs and later and not _is_before(runs, later):
            yield f"order: {first} ended after {second} had started"


def _not_order(expected: Sequence[Sequence[str]], outcome: Outcome) -> Iterator[str]:
    components = outcome.trace.components
    for first, second in expected:
        runs, later = components.get(first, []), components.get(second, [])
        if not runs or not later or _is_before(runs, later):
            yield f"not_order: {second} did not start before {first} ended"


def _is_before(runs: Sequence[Run], later: Sequence[Run]) -> bool:
    ends = [run.end_position for run in runs]
    first_start = min(run.start_position for run in later)
    return all(end is not None and end < first_start for end in ends)


def _unknown(components: Sequence[str], outcome: Outcome) -> list[str]:
    """Components that did not run and belong to no node, as after a mistake in the case."""
    ran = outcome.trace.components
    return [
        component
        for component in components
        if component not in ran
        and outcome.state_of(component) is None
        and outcome.state_of(component.rpartition(".")[0]) is None
    ]


def _start_order(expected: Sequence[str], outcome: Outcome) -> Iterator[str]:
    yield from _start_order_any([expected], outcome)


def _start_order_any(expected: Sequence[Sequence[str]], outcome: Outcome) -> Iterator[str]:
    found = outcome.trace.start_order
    if found not in [list(each) for each in expected]:
        several = "one of " if len(expected) > 1 else ""
        shown = ", ".join(" ".join(each) for each in expected)
        yield f"start order: expected {several}{shown}, found {' '.join(found)}"


def _args(expected: Mapping[str, Any], outcome: Outcome) -> Iterator[str]:
    components = outcome.trace.components
    for component, lists in expected.items():
        runs = components.get(component, [])
        is_script = any(run.kind in {"pre", "post", "hold"} for run in runs)
        found = [list(run.arguments[1:] if is_script else run.arguments) for run in runs]
        if found != lists:
            yield f"arguments of {component}: expected {lists!r}, found {found!r}"


def _max_running(expected: Mapping[str, int], outcome: Outcome) -> Iterator[str]:
    for what, most in expected.items():
        found = max_concurrency(_runs_of(what, outcome.trace.runs))
        if found > most:
            yield f"running at once of {what}: expected at most {most}, found {found}"


def _runs_of(what: str, runs: Sequence[Run]) -> list[Run]:
    if what.startswith("category:"):
        category = what.removeprefix("category:")
        # Nodes count, not the processes of their lists.
        return [run for run in runs if run.is_job and run.category == category and not run.process]
    if what == "*":
        return [run for run in runs if run.is_job]
    if what.startswith("*."):
        return [run for run in runs if run.kind == what[2:]]
    return [run for run in runs if run.component == what]


def _rescue_done(expected: Any, outcome: Outcome) -> Iterator[str]:
    if expected == "any":
        return
    found = outcome.rescue_done
    if expected is None and found is not None:
        yield f"rescue: expected none, found {outcome.rescue_path} with {found!r}"
    elif expected is not None and (found is None or set(found) != set(expected)):
        yield f"rescue: expected {sorted(expected)!r}, found {found!r}"


def _rescue_file(expected: str, outcome: Outcome) -> Iterator[str]:
    if not outcome.rescue_path.endswith(expected):
        yield f"rescue file: expected one that ends in {expected}, found {outcome.rescue_path!r}"


def _files_exist(expected: Sequence[str], outcome: Outcome) -> Iterator[str]:
    for ending in expected:
        if not outcome.has_file(f"case.dag{ending}"):
            yield f"there is no file case.dag{ending}"


def _file_contains(expected: Mapping[str, Any], outcome: Outcome) -> Iterator[str]:
    for path, texts in expected.items():
        content = outcome.file(path)
        if content is None:
            yield f"there is no file {path}"
            continue
        for text in [texts] if isinstance(texts, str) else texts:
            if text not in content:
                yield f"{path} does not contain {text!r}: {content[:1000]!r}"


def _json_contains(expected: Mapping[str, Mapping[str, Any]], outcome: Outcome) -> Iterator[str]:
    for path, values in expected.items():
        found = parse_json_object(outcome.file(path) or "")
        if found is None:
            yield f"there is no file {path}, or it is not JSON"
            continue
        for key, value in values.items():
            if not _one_of(value, found.get(key)):
                yield f"{path}: {key}: expected {value!r}, found {found.get(key)!r}"


def _error(expected: str | None, outcome: Outcome) -> Iterator[str]:
    messages = outcome.messages
    if expected is not None and not any(expected.lower() in each.lower() for each in messages):
        yield f"error: expected {expected!r} in the messages, found {messages!r}"


def _error_at(expected: Sequence[Any], outcome: Outcome) -> Iterator[str]:
    places = [(each.file, each.line) for each in outcome.findings]
    if tuple(expected) not in places:
        yield f"error: expected one at {expected[0]}:{expected[1]}, found them at {places!r}"


_CHECKS: dict[str, _Check] = {
    "dag_state": _same("dag_state", lambda outcome: outcome.dag_state),
    "dag_status": _same("dag_status", lambda outcome: outcome.dag_status),
    "exit_code": _same("exit_code", lambda outcome: outcome.exit_code),
    "nodes": _nodes,
    "attempts": _counts("runs", lambda outcome: outcome.trace.attempts),
    "procs": _counts("processes", lambda outcome: outcome.trace.processes),
    "order": _order,
    "not_order": _not_order,
    "start_order": _start_order,
    "start_order_any": _start_order_any,
    "args": _args,
    "max_running": _max_running,
    "rescue_done": _rescue_done,
    "rescue_file": _rescue_file,
    "files_exist": _files_exist,
    "file_contains": _file_contains,
    "json_contains": _json_contains,
    "error": _error,
    "error_at": _error_at,
}
