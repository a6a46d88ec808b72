"""Moving the nodes of a followed DAG by the steps that its log gave, and ending it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from wms.dags.decisions import Decision
from wms.dags.ending import Ending, begin_ending, ending_now, go_on_ending
from wms.dags.follow.projection import FollowedNode, Step
from wms.dags.models import Dag, Node
from wms.dags.rounds import Round
from wms.dags.settling import finish
from wms.dags.states import (
    COUNTED_KINDS,
    NODE_IN_FLIGHT,
    NODE_TERMINAL,
    DagStatus,
    NodeKind,
    NodeState,
)


def apply_steps(round_: Round, steps: Iterable[Step]) -> str:
    """Carry the steps out, in sets as large as their order allows; what is wrong, or nothing.

    A set has one step of a node at most. In it, nodes end first and others are submitted after
    that, since they may have waited for them.
    """
    wave: dict[int, Step] = {}
    for step in steps:
        if step.node.id in wave or step.is_unsubmitted:
            fault = _flush(round_, wave)
            if fault:
                return fault
        wave[step.node.id] = step
        if step.is_unsubmitted:
            fault = _flush(round_, wave)
            if fault:
                return fault
    return _flush(round_, wave)


def _flush(round_: Round, wave: dict[int, Step]) -> str:
    steps = list(wave.values())
    wave.clear()
    by_event: dict[tuple[str, str], list[Step]] = defaultdict(list)
    for step in steps:
        by_event[step.event, step.reason].append(step)
    submitted = by_event.pop(("submit", ""), [])
    ended: dict[str, list[int]] = defaultdict(list)
    for (event, reason), group in by_event.items():
        ids = [step.node.id for step in group]
        moved = _move(round_, event, ids, reason)
        if len(moved) < len(ids):
            return _fault(group, moved)
        ended[event] += moved
    finish(round_, ended["succeed"] + ended["skip"], ended["fail"])
    moved = _submit(round_, submitted)
    return _fault(submitted, moved) if len(moved) < len(submitted) else ""


def _move(round_: Round, event: str, ids: Sequence[int], reason: str) -> list[int]:
    if event == "retry":
        return round_.move(
            "retry",
            ids,
            reason=reason,
            expressions={"retry_number": "node.retry_number + 1"},
            ready_rank=round_.number,
        )
    if event == "skip":
        ids = round_.move("start pre", ids)
    return round_.move(event, ids, reason=reason)


def _submit(round_: Round, steps: Sequence[Step]) -> list[int]:
    beside = [step.node.id for step in steps if step.node.kind not in COUNTED_KINDS]
    # Nobody makes these ready but the engine that runs the DAG.
    round_.move("make ready", beside)
    return round_.move("submit", [step.node.id for step in steps])


def _fault(steps: Sequence[Step], moved: Sequence[int]) -> str:
    missing = {step.node.id: step.node for step in steps if step.node.id not in set(moved)}
    first: FollowedNode = min(missing.values(), key=lambda node: node.id)
    state = Node.objects.values_list("state", flat=True).get(pk=first.id)
    if state == NodeState.WAITING:
        return f"node {first.name} began although parents of it had not ended"
    return f"node {first.name} began while it was {state}"


def start_roots(round_: Round) -> None:
    """Make ready what waits for nobody."""
    roots = Node.objects.filter(
        dag=round_.dag, state=NodeState.WAITING, unfinished_parents=0, kind__in=COUNTED_KINDS
    )
    round_.move("make ready", list(roots.values_list("pk", flat=True)), ready_rank=round_.number)


def conclude(round_: Round, abort: tuple[str, Decision] | None) -> None:
    """End the DAG if the log has told the end of all that could run, FINAL included."""
    dag = round_.dag
    if dag.ending is None:
        ending = _ending_of_abort(*abort) if abort is not None else ending_now(round_)
        if ending is None:
            return
        _note(dag, ending)
    if Node.objects.filter(
        dag=dag, state__in=NODE_IN_FLIGHT, kind__in=[*COUNTED_KINDS, NodeKind.FINAL]
    ).exists():
        return
    final = round_.beside().get(NodeKind.FINAL, [])
    if not final:
        begin_ending(round_, _noted(dag))
    elif all(node.state in NODE_TERMINAL for node in final):
        go_on_ending(round_)


def _ending_of_abort(name: str, decision: Decision) -> Ending:
    reason = f"ABORT-DAG-ON: node {name} ended with {decision.code}"
    if not decision.aborts_with:
        return Ending(DagStatus.OK, 0, reason, "complete")
    return Ending(DagStatus.ABORTED, decision.aborts_with, reason, "fail")


def _note(dag: Dag, ending: Ending) -> None:
    dag.ending = {
        "status": int(ending.status),
        "exit_code": ending.exit_code,
        "reason": ending.reason,
        "event": ending.event,
        "rescue": None,
    }
    Dag.objects.filter(pk=dag.pk).update(ending=dag.ending)


def _noted(dag: Dag) -> Ending:
    known = dag.ending or {}
    return Ending(DagStatus(known["status"]), known["exit_code"], known["reason"], known["event"])
