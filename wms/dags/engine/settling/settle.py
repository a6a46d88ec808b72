"""Outcomes of nodes carried out by the engine: retries, scripts, ends, release of children.

Plain nodes are settled by the thousands. Also the start of ready nodes with a PRE script, a save
point or nothing to run; the input of a node's decision; and the check whether nodes of the DAG may
begin.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from wms.core.statemachine import Increment
from wms.dags import lifecycle
from wms.dags.engine.gates import begin_gates
from wms.dags.engine.node_features import Features, features_of
from wms.dags.engine.node_work import work_of
from wms.dags.engine.round import NodeOutcome, Round, nodes_by_id
from wms.dags.engine.settling.decisions import Attempt, Next, after_job
from wms.dags.engine.settling.tolerance import fail_nodes
from wms.dags.growth.ends import grow_after
from wms.dags.joins.deciding import follow_ends
from wms.dags.joins.outcomes import facts_of_outcomes
from wms.dags.models import Node, NodeEvent, Rescue
from wms.dags.rescue.rescue_files import write_save_point
from wms.dags.scripts.run_requests import ScriptRequest, request_runs
from wms.dags.states import DagState, NodeCause, NodeState, ScriptKind

#: The nodes of an endless chain that run nothing would keep the engine with one DAG.
_MOST_STEPS = 200


@dataclass(slots=True)
class PlainEnds:
    """Nodes with one job and no features whose jobs ended: thousands at a time."""

    done: list[int] = field(default_factory=list)
    retried: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    failed: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))


def attempt_of(round_: Round, node: Node, features: Features) -> Attempt:
    """Input of the decisions about the node's present attempt."""
    may_retry = not round_.is_ending and round_.dag.state not in (DagState.REMOVED,)
    return Attempt(
        features=features,
        retries_left=node.max_retries - node.retry_number if may_retry else 0,
        always_run_post=round_.options.always_run_post,
    )


def settle(round_: Round, outcomes: Sequence[NodeOutcome]) -> None:
    """Carry out the outcomes, and those of the nodes that they release, until there are none.

    One of them may abort the DAG, unless it is ending already: `round_.aborted_by`, and no node
    begins any more. The rest of a long chain begins in the next round.
    """
    for _ in range(_MOST_STEPS):
        if not round_.is_ending:
            round_.aborted_by = round_.aborted_by or abort_among(outcomes)
        released = carry_out(round_, outcomes)
        outcomes = begin(round_, released) if round_.aborted_by is None else []
        if not outcomes:
            return
    lifecycle.notify_engine_to_start(round_.dag.pk)


def settle_plain(round_: Round, ends: PlainEnds) -> list[int]:
    """Move plain nodes whose jobs ended; returns special nodes that are ready now."""
    round_.move("succeed", ends.done, source=NodeState.SUBMITTED.value)
    for reason, ids in ends.retried.items():
        _retry(round_, ids, reason, NodeCause.JOB, ends_attached=False)
    ended = list(ends.done)
    lost: list[int] = []
    for reason, ids in ends.failed.items():
        reason = reason or "the job failed"
        failed = fail_nodes(round_, ids, reason=reason, cause=NodeCause.JOB)
        ended += failed.tolerated
        lost += failed.lost
    return finish(round_, ended, lost)


def finish(round_: Round, done: Collection[int], failed: Collection[int]) -> list[int]:
    """Tell the children of nodes that have ended; returns those that are ready and special.

    Children of failed nodes are given up, unless they wait for the mere end. Nodes whose failure is
    tolerated are among those that are done.
    """
    rank = round_.front_rank() if round_.options.depth_first else round_.number
    special: list[int] = []
    for parents, only_weak in ((done, False), (failed, True)):
        special += round_.release(parents, rank=rank, only_weak=only_weak)
    futile = round_.give_up_below(failed)
    if round_.dag.has_joins:
        special += follow_ends(round_, rank=rank, done=done, failed=failed, futile=futile)
    return special


def begin(round_: Round, node_ids: Iterable[int]) -> list[NodeOutcome]:
    """Begin ready nodes that do not simply wait for their turn: PRE scripts, NOOP, save points.

    Only of a DAG that runs; of another they are begun when it goes on. Returns outcomes about those
    that have nothing to run.
    """
    ids = list(node_ids)
    if not ids or not may_begin(round_):
        return []
    nodes = [node for node in nodes_by_id(ids).values() if node.state == "ready"]
    nodes.sort(key=lambda node: node.ordinal)
    with_pre, outcomes, gates = [], [], []
    for node in nodes:
        features = features_of(node.features)
        if features.save_point is not None and _starts_first(node):
            write_save_point(round_.dag, node, features.save_point)
        if features.script(ScriptKind.PRE) is not None and work_of(node).pre_code is None:
            with_pre.append(node)
        elif features.gate is not None:
            gates.append(node)
        elif features.is_noop:
            attempt = attempt_of(round_, node, features)
            outcomes.append(NodeOutcome(node, after_job(attempt, 0), has_jobs=False))
    round_.move("start pre", [node.pk for node in with_pre])
    request_runs(round_, [ScriptRequest(node, ScriptKind.PRE) for node in with_pre])
    return outcomes + begin_gates(round_, gates)


def _starts_first(node: Node) -> bool:
    """Whether the node has not been begun before: only then its save point is written."""
    moved = NodeEvent.objects.filter(node=node).exclude(event__in=("make ready", "rerun"))
    return node.retry_number == 0 and not moved.exists() and not _has_save_point(node)


def _has_save_point(node: Node) -> bool:
    path = features_of(node.features).save_point or ""
    return Rescue.objects.filter(dag_id=node.dag_id, path=path).exists()


def may_begin(round_: Round) -> bool:
    """Whether nodes of the DAG may begin now; while it is ending that is the FINAL node."""
    return round_.dag.state == DagState.RUNNING or (
        round_.is_ending and round_.dag.state == DagState.HALTED
    )


def abort_among(outcomes: Sequence[NodeOutcome]) -> NodeOutcome | None:
    """The first of the outcomes that aborts the DAG, if any does."""
    return next((v for v in outcomes if v.decision.aborts_with is not None), None)


def carry_out(round_: Round, outcomes: Sequence[NodeOutcome]) -> list[int]:
    """Apply the outcomes; returns special nodes that are ready now."""
    grown = grow_after(round_, outcomes)
    outcomes, facts = grown.outcomes, facts_of_outcomes(round_, grown.outcomes, grown.facts)
    by_next: dict[tuple[Next, str, str, int], list[NodeOutcome]] = defaultdict(list)
    for outcome in outcomes:
        # One whose outcome is told has an event of its own.
        alone = outcome.node.pk if outcome.node.pk in facts else 0
        by_next[outcome.decision.next, outcome.reason, outcome.cause, alone].append(outcome)
    done: list[int] = []
    failed: list[int] = []
    ready: list[int] = []
    for (step, reason, cause, alone), group in by_next.items():
        ids = [outcome.node.pk for outcome in group]
        told = facts.get(alone)
        if step is Next.SUCCEED:
            why = cause if reason else ""
            done += round_.move("succeed", ids, reason=reason, cause=why, facts=told)
        elif step is Next.SKIP:
            why = reason or "PRE_SKIP"
            done += round_.move("skip", ids, reason=why, cause=cause, facts=told)
        elif step is Next.FAIL:
            why = reason or "the node failed"
            ended = fail_nodes(round_, ids, reason=why, cause=cause, facts=told)
            done += ended.tolerated
            failed += ended.lost
        elif step is Next.RETRY:
            ready += _retry(round_, ids, reason, cause, ends_attached=True)
        elif step is Next.SUBMIT:
            ready += _pass_pre(round_, group)
        else:
            _run_post(round_, group)
    return ready + finish(round_, done, failed)


def _retry(
    round_: Round, ids: Collection[int], reason: str, cause: str, *, ends_attached: bool
) -> list[int]:
    is_first = round_.options.retry_node_first
    return round_.move(
        "retry",
        ids,
        reason=reason or "the node failed",
        cause=cause,
        retry_number=Increment(),
        ends_attached=ends_attached,
        ready_rank=round_.front_rank() if is_first else round_.number,
    )


def _pass_pre(round_: Round, outcomes: Sequence[NodeOutcome]) -> list[int]:
    """PRE ended well: the node waits for its turn behind those that are ready."""
    ids = [outcome.node.pk for outcome in outcomes]
    rank = round_.front_rank() if round_.options.depth_first else round_.number
    return round_.move("pass pre", ids, ready_rank=rank)


def _run_post(round_: Round, outcomes: Sequence[NodeOutcome]) -> None:
    moved = set(round_.move("start post", [outcome.node.pk for outcome in outcomes]))
    request_runs(
        round_,
        [
            ScriptRequest(v.node, ScriptKind.POST, v.decision.code, v.has_jobs)
            for v in outcomes
            if v.node.pk in moved
        ],
    )
