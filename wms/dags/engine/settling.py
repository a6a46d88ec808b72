"""Carrying out what was decided about nodes: they go on, end, and release those that follow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from wms.dags import lifecycle
from wms.dags.engine.decisions import Attempt, Decision, Next, after_job
from wms.dags.engine.node_features import Features, features_of
from wms.dags.engine.node_work import work_of
from wms.dags.engine.round import Round, nodes_by_id
from wms.dags.engine.sql import NEXT_RETRY
from wms.dags.models import Node, NodeEvent, Rescue
from wms.dags.rescue.rescue_files import write_save_point
from wms.dags.scripts.run_requests import ScriptRequest, request_runs
from wms.dags.states import DagState, NodeCause, NodeState, ScriptKind

#: The nodes of an endless chain that run nothing would keep the engine with one DAG.
_MOST_STEPS = 200


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was decided about a node, why, and whether something of it was submitted before."""

    node: Node
    decision: Decision
    reason: str = ""
    cause: str = ""
    has_jobs: bool = True


@dataclass(slots=True)
class PlainEnds:
    """Nodes with one job and no features whose jobs ended: thousands at a time."""

    done: list[int] = field(default_factory=list)
    retried: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    failed: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))


def attempt_of(round_: Round, node: Node, features: Features) -> Attempt:
    """What decisions about the node's present attempt depend on."""
    may_retry = not round_.is_aside and round_.dag.state not in (DagState.REMOVED,)
    return Attempt(
        features=features,
        retries_left=node.max_retries - node.retry_number if may_retry else 0,
        always_run_post=round_.options.always_run_post,
    )


def settle(round_: Round, verdicts: Sequence[Verdict]) -> None:
    """Carry the verdicts out, and what follows from them, until nothing follows any more.

    One of them may abort the DAG, if it is not ending already: then nothing follows, and the round
    is told. What a long chain leaves is begun in the next round.
    """
    for _ in range(_MOST_STEPS):
        if not round_.is_aside:
            round_.aborted_by = round_.aborted_by or _abort_among(verdicts)
        released = _carry_out(round_, verdicts)
        verdicts = begin(round_, released) if round_.aborted_by is None else []
        if not verdicts:
            return
    lifecycle.notify_engine_to_start(round_.dag.pk)


def settle_plain(round_: Round, ends: PlainEnds) -> list[int]:
    """Carry out what becomes of plain nodes; returns special ones that are ready now."""
    round_.move("succeed", ends.done, source=NodeState.SUBMITTED.value)
    for reason, ids in ends.retried.items():
        _retry(round_, ids, reason, NodeCause.JOB, forgets=False)
    for reason, ids in ends.failed.items():
        round_.move("fail", ids, reason=reason or "the job failed", cause=NodeCause.JOB)
    return finish(round_, ends.done, [pk for ids in ends.failed.values() for pk in ids])


def finish(round_: Round, done: Collection[int], failed: Collection[int]) -> list[int]:
    """Tell the children of nodes that have ended; returns those that are ready and special.

    Children of failed nodes are given up, unless they wait for the mere end.
    """
    rank = round_.front_rank() if round_.options.depth_first else round_.number
    special: list[int] = []
    for parents, only_weak in ((done, False), (failed, True)):
        special += round_.release(parents, rank=rank, only_weak=only_weak)
    round_.give_up_below(failed)
    return special


def begin(round_: Round, node_ids: Iterable[int]) -> list[Verdict]:
    """Begin ready nodes that do not simply wait for their turn: PRE scripts, NOOP, save points.

    Only of a DAG that runs; of another they are begun when it goes on. Returns verdicts about those
    that have nothing to run.
    """
    ids = list(node_ids)
    if not ids or not may_begin(round_):
        return []
    nodes = [node for node in nodes_by_id(ids).values() if node.state == "ready"]
    nodes.sort(key=lambda node: node.ordinal)
    with_pre, verdicts = [], []
    for node in nodes:
        features = features_of(node.features)
        if features.save_point is not None and _starts_first(node):
            write_save_point(round_.dag, node, features.save_point)
        if features.script(ScriptKind.PRE) is not None and work_of(node).pre_code is None:
            with_pre.append(node)
        elif features.is_noop:
            attempt = attempt_of(round_, node, features)
            verdicts.append(Verdict(node, after_job(attempt, 0), has_jobs=False))
    round_.move("start pre", [node.pk for node in with_pre])
    request_runs(round_, [ScriptRequest(node, ScriptKind.PRE) for node in with_pre])
    return verdicts


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
        round_.is_aside and round_.dag.state == DagState.HALTED
    )


def _abort_among(verdicts: Sequence[Verdict]) -> Verdict | None:
    return next((v for v in verdicts if v.decision.aborts_with is not None), None)


def _carry_out(round_: Round, verdicts: Sequence[Verdict]) -> list[int]:
    """Apply the verdicts; returns special nodes that are ready now."""
    by_next: dict[tuple[Next, str, str], list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        by_next[verdict.decision.next, verdict.reason, verdict.cause].append(verdict)
    done: list[int] = []
    failed: list[int] = []
    ready: list[int] = []
    for (step, reason, cause), group in by_next.items():
        ids = [verdict.node.pk for verdict in group]
        if step is Next.SUCCEED:
            done += round_.move("succeed", ids, reason=reason, cause=cause if reason else "")
        elif step is Next.SKIP:
            done += round_.move("skip", ids, reason=reason or "PRE_SKIP", cause=cause)
        elif step is Next.FAIL:
            failed += round_.move("fail", ids, reason=reason or "the node failed", cause=cause)
        elif step is Next.RETRY:
            ready += _retry(round_, ids, reason, cause, forgets=True)
        elif step is Next.SUBMIT:
            ready += _pass_pre(round_, group)
        else:
            _run_post(round_, group)
    return ready + finish(round_, done, failed)


def _retry(
    round_: Round, ids: Collection[int], reason: str, cause: str, *, forgets: bool
) -> list[int]:
    is_first = round_.options.retry_node_first
    return round_.move(
        "retry",
        ids,
        reason=reason or "the node failed",
        cause=cause,
        expressions={"retry_number": NEXT_RETRY},
        forgets=forgets,
        ready_rank=round_.front_rank() if is_first else round_.number,
    )


def _pass_pre(round_: Round, verdicts: Sequence[Verdict]) -> list[int]:
    """PRE ended well: the node waits for its turn behind those that are ready."""
    ids = [verdict.node.pk for verdict in verdicts]
    rank = round_.front_rank() if round_.options.depth_first else round_.number
    return round_.move("pass pre", ids, ready_rank=rank)


def _run_post(round_: Round, verdicts: Sequence[Verdict]) -> None:
    moved = set(round_.move("start post", [verdict.node.pk for verdict in verdicts]))
    request_runs(
        round_,
        [
            ScriptRequest(v.node, ScriptKind.POST, v.decision.code, v.has_jobs)
            for v in verdicts
            if v.node.pk in moved
        ],
    )
