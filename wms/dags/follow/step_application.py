"""Application of a job log's steps to the rows of a followed DAG's nodes, and the DAG's end.

Also its start, which makes nodes without parents ready.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from wms.core.statemachine import Increment
from wms.dags.engine.round import Round
from wms.dags.engine.settling.decisions import Decision
from wms.dags.engine.settling.ending import (
    Ending,
    begin_ending,
    ending_now,
    go_on_ending,
    note_ending,
    noted_ending,
)
from wms.dags.engine.settling.settle import finish
from wms.dags.follow.projection import NodeStep
from wms.dags.models import Edge, Node
from wms.dags.states import (
    COUNTED_KINDS,
    NODE_IN_FLIGHT,
    NODE_TERMINAL,
    DagStatus,
    EndingEvent,
    NodeKind,
    NodeState,
)


def apply_steps(round_: Round, steps: Sequence[NodeStep]) -> str:
    """Apply the steps to the nodes, in large sets. Returns the fault, or an empty text."""
    for wave in _waves(steps, _parents(steps)):
        fault = _carry_out(round_, wave)
        if fault:
            return fault
    return ""


def _waves(steps: Iterable[NodeStep], parents: Mapping[int, Sequence[int]]) -> list[list[NodeStep]]:
    """Ordered sets of steps, each with at most one step of a node.

    In a set, submitted nodes end first; their children may begin in the same set.
    """
    waves: list[list[NodeStep]] = []
    last: dict[int, int] = {}
    #: First set in which the children of an ended node may begin.
    first_child_wave: dict[int, int] = {}
    for step in steps:
        node = step.node.id
        number = last.get(node, -1) + 1
        if _begins(step):
            number = max(
                [number, *(first_child_wave.get(parent, 0) for parent in parents.get(node, ()))]
            )
        last[node] = number
        first_child_wave[node] = number + step.is_unsubmitted
        while len(waves) <= number:
            waves.append([])
        waves[number].append(step)
    return waves


def _begins(step: NodeStep) -> bool:
    return step.event == "submit" or step.is_unsubmitted


def _parents(steps: Iterable[NodeStep]) -> dict[int, list[int]]:
    """Parents, by node, that have steps themselves; of nodes that begin in these steps."""
    beginning = {step.node.id for step in steps if _begins(step)}
    arcs = Edge.objects.filter(
        child_id__in=beginning, parent_id__in={step.node.id for step in steps}
    )
    parents: dict[int, list[int]] = defaultdict(list)
    for child, parent in arcs.values_list("child_id", "parent_id"):
        parents[child].append(parent)
    return parents


def _carry_out(round_: Round, steps: Iterable[NodeStep]) -> str:
    ending: dict[tuple[str, str], list[NodeStep]] = defaultdict(list)
    beginning: dict[tuple[str, str], list[NodeStep]] = defaultdict(list)
    for step in steps:
        (beginning if _begins(step) else ending)[step.event, step.reason].append(step)
    return _apply_sets(round_, ending) or _apply_sets(round_, beginning)


def _apply_sets(round_: Round, sets: Mapping[tuple[str, str], Sequence[NodeStep]]) -> str:
    ended: dict[str, list[int]] = defaultdict(list)
    for (event, reason), steps in sets.items():
        moved = _move(round_, event, steps, reason)
        if len(moved) < len(steps):
            return _fault(steps, moved)
        ended[event] += moved
    finish(round_, ended["succeed"] + ended["skip"], ended["fail"])
    return ""


def _move(round_: Round, event: str, steps: Sequence[NodeStep], reason: str) -> list[int]:
    ids = [step.node.id for step in steps]
    if event == "retry":
        return round_.move(
            "retry",
            ids,
            reason=reason,
            retry_number=Increment(),
            ready_rank=round_.number,
        )
    if event == "skip":
        ids = round_.move("start pre", ids)
    elif event == "submit":
        # Nobody makes FINAL and its like ready but the engine that runs the DAG.
        beside = [step.node.id for step in steps if step.node.kind not in COUNTED_KINDS]
        round_.move("make ready", beside)
    return round_.move(event, ids, reason=reason)


def _fault(steps: Sequence[NodeStep], moved: Sequence[int]) -> str:
    known = set(moved)
    first = next(step.node for step in steps if step.node.id not in known)
    state = Node.objects.values_list("state", flat=True).get(pk=first.id)
    if state == NodeState.WAITING:
        return f"node {first.name} began although parents of it had not ended"
    return f"node {first.name} began while it was {state}"


def start_roots(round_: Round) -> None:
    """Make the nodes without parents ready."""
    roots = Node.objects.filter(
        dag=round_.dag, state=NodeState.WAITING, unfinished_parents=0, kind__in=COUNTED_KINDS
    )
    round_.move("make ready", list(roots.values_list("pk", flat=True)), ready_rank=round_.number)


def conclude(round_: Round, abort: tuple[str, Decision] | None) -> None:
    """End the DAG if all nodes that could run have ended, FINAL included."""
    dag = round_.dag
    if not dag.is_ending:
        ending = _ending_of_abort(*abort) if abort is not None else ending_now(round_)
        if ending is None:
            return
        note_ending(dag, ending, None)
    if Node.objects.filter(
        dag=dag, state__in=NODE_IN_FLIGHT, kind__in=[*COUNTED_KINDS, NodeKind.FINAL]
    ).exists():
        return
    final = round_.auxiliary_nodes().get(NodeKind.FINAL, [])
    if not final:
        begin_ending(round_, noted_ending(dag))
    elif all(node.state in NODE_TERMINAL for node in final):
        go_on_ending(round_)


def _ending_of_abort(name: str, decision: Decision) -> Ending:
    reason = f"ABORT-DAG-ON: node {name} ended with {decision.code}"
    if not decision.aborts_with:
        return Ending(DagStatus.OK, 0, reason, EndingEvent.COMPLETE)
    return Ending(DagStatus.ABORTED, decision.aborts_with, reason, EndingEvent.FAIL)
