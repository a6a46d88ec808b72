"""Shared round: DAGs that begin, or of which only plain nodes have ended well, move on together.

Thousands of small DAGs cost as many statements as one, and so do their ends where all nodes are
done. What asks for more than the usual - another kind of news, a fault, another end - is left to a
round of the DAG's own (`wms.dags.engine.cycle`), which is told by an entry in its inbox.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.db import transaction
from django.db.models import F, Q

from wms.core.loops import wake_loop
from wms.dags import lifecycle
from wms.dags.engine import transitions
from wms.dags.engine.inbox import take_plain_news
from wms.dags.engine.node_work import not_provisioned
from wms.dags.engine.round import COUNTERS, ENGINE, Round, rounds_of
from wms.dags.engine.settling.ending import end_completed
from wms.dags.engine.settling.settle import begin, settle
from wms.dags.engine.submitting.job_factory import LIMIT_S, Fault, make_specs
from wms.dags.engine.submitting.ready_nodes import STARTERS, Submitted, has_more_before
from wms.dags.engine.submitting.submission_reads import SubmissionReads
from wms.dags.engine.submitting.throttles import (
    LimitsInUse,
    ReadyNode,
    capacity_under,
    ready_by_dag,
    take_ready,
)
from wms.dags.joins.deciding import follow_ends
from wms.dags.models import Dag, Node, ScriptRun
from wms.dags.scripts.run_requests import grant_runs
from wms.dags.states import AUXILIARY_KINDS, COUNTED_KINDS, DagState, NodeState, ScriptState
from wms.jobs import operations as jobs
from wms.jobs.specs import JobSpec
from wms.jobs.writing.job_writer import JobOrigin
from wms.pilots.pressure.director import DIRECT_TASK

#: So many DAGs take part in one, so that they are not locked for long.
MOST_DAGS = 200
#: A DAG with more ready nodes has rounds of its own.
_MOST_READY = 200
#: Nodes of the DAGs that begin together: how many of them begin is not known before.
_MOST_FRESH = 10_000


class _OwnRoundNeeded(Exception):
    """What a shared round has found cannot be done in it; it is rolled back."""


@dataclass(frozen=True, slots=True)
class Together:
    """DAGs that a shared round has advanced, and those that it has left to rounds of their own.

    What is in neither was locked by somebody else.
    """

    advanced: frozenset[int] = frozenset()
    left: frozenset[int] = frozenset()


def advance_together(dag_ids: Collection[int], *, now: datetime) -> Together:
    """Advance those of the DAGs that have the usual news only. One transaction."""
    dags: dict[int, Dag] = {}
    ends: dict[int, list[int]] = {}
    try:
        with transaction.atomic():
            dags = _locked(dag_ids)
            usual = [pk for pk, dag in dags.items() if _is_usual(dag)]
            ends = take_plain_news(usual, fresh=_fresh([dags[pk] for pk in usual]))
            with rounds_of([dags[pk] for pk in ends], now) as rounds:
                if rounds:
                    _act(rounds, ends)
    except _OwnRoundNeeded:
        ends = {}
    return Together(frozenset(ends), frozenset(dags.keys() - ends.keys()))


def _locked(dag_ids: Collection[int]) -> dict[int, Dag]:
    dags = Dag.objects.filter(pk__in=dag_ids).order_by("pk")
    locked = dags.select_for_update(skip_locked=True, of=("self",))
    related = locked.select_related("owner", "site", "workspace", "accounting_group")
    return {dag.pk: dag for dag in related}


def _is_usual(dag: Dag) -> bool:
    is_running = dag.state == DagState.RUNNING and not dag.is_ending and not dag.is_followed
    return is_running and dag.ready_count <= _MOST_READY


def _fresh(dags: Iterable[Dag]) -> set[int]:
    """The small ones of which no node is ready, under way or over, without any beside the graph."""
    fresh: set[int] = set()
    nodes = 0
    for dag in dags:
        is_small = dag.node_count <= min(_MOST_READY, _MOST_FRESH - nodes)
        # Of what an earlier run has ended, joins are only counted.
        if is_small and not dag.has_joins and not any(getattr(dag, name) for name in COUNTERS):
            fresh.add(dag.pk)
            nodes += dag.node_count
    if not fresh:
        return fresh
    beside = Node.objects.filter(dag__in=fresh, kind__in=AUXILIARY_KINDS)
    return fresh.difference(beside.values_list("dag_id", flat=True))


def _act(rounds: Sequence[Round], ends: Mapping[int, list[int]]) -> None:
    """The steps of a round, in their order, each for all DAGs."""
    _begin([round_ for round_ in rounds if not ends[round_.dag.pk]])
    _settle(rounds, ends)
    left = _submit_ready(rounds)
    _grant_runs(rounds)
    left |= {round_.dag.pk for round_ in rounds if round_.checks_auxiliary}
    over = [each for each in rounds if _is_over(each.dag) and each.dag.pk not in left]
    left |= {each.dag.pk for each in over} - set(end_completed(over))
    lifecycle.notify_engine(*sorted(left))


def _begin(rounds: Sequence[Round]) -> None:
    """Make the nodes of these fresh DAGs ready that wait for no parent."""
    by_id = {round_.dag.pk: round_ for round_ in rounds}
    if not by_id:
        return
    roots = Node.objects.filter(
        dag__in=by_id, state=NodeState.WAITING, unfinished_parents=0, kind__in=COUNTED_KINDS
    ).annotate(is_special=Q(features__isnull=False))
    in_turn = roots.order_by("dag_id", F("priority").desc(), "ordinal")
    by_number: dict[int, list[int]] = defaultdict(list)
    special: dict[int, list[int]] = defaultdict(list)
    for node_id, dag_id, is_special in in_turn.values_list("pk", "dag_id", "is_special"):
        by_number[by_id[dag_id].number].append(node_id)
        if is_special:
            special[dag_id].append(node_id)
    for number, node_ids in by_number.items():
        moved = transitions.move(
            "make ready", node_ids, dag_id=list(by_id), actor=ENGINE, ready_rank=number
        )
        for round_ in rounds:
            round_.count(moved.by_dag)
    for dag_id, node_ids in special.items():
        _begin_special(by_id[dag_id], node_ids)


def _begin_special(round_: Round, node_ids: Sequence[int]) -> None:
    settle(round_, begin(round_, node_ids))
    if round_.aborted_by is not None:
        raise _OwnRoundNeeded


def _settle(rounds: Sequence[Round], ends: Mapping[int, list[int]]) -> None:
    done = [pk for node_ids in ends.values() for pk in node_ids]
    moved = transitions.move(
        "succeed", done, dag_id=list(ends), actor=ENGINE, source=NodeState.SUBMITTED.value
    )
    ranks = {
        each.dag.pk: each.front_rank() if each.options.depth_first else each.number
        for each in rounds
    }
    released = transitions.count_down(done, ranks=ranks, actor=ENGINE)
    for round_ in rounds:
        round_.count(moved.by_dag)
        round_.count(released.by_dag)
        special = [
            *released.special.get(round_.dag.pk, ()),
            *_follow_joins(round_, ends[round_.dag.pk], ranks[round_.dag.pk]),
        ]
        if special:
            _begin_special(round_, special)


def _follow_joins(round_: Round, done: Sequence[int], rank: int) -> list[int]:
    return follow_ends(round_, rank=rank, done=done) if round_.dag.has_joins else []


def _is_over(dag: Dag) -> bool:
    return dag.ended_count == dag.node_count


def _grant_runs(rounds: Iterable[Round]) -> None:
    by_id = {round_.dag.pk: round_ for round_ in rounds}
    waiting = ScriptRun.objects.filter(dag__in=list(by_id), state=ScriptState.WAITING)
    for dag_id in waiting.order_by("dag_id").values_list("dag_id", flat=True).distinct():
        grant_runs(by_id[dag_id])


def _submit_ready(rounds: Iterable[Round]) -> set[int]:
    """Submit the ready nodes that the throttles allow; the DAGs that need a round of their own."""
    ready = [round_ for round_ in rounds if round_.dag.ready_count]
    if not ready:
        return set()
    begun_late = not_provisioned(*(round_.dag for round_ in ready)).values_list("dag_id", flat=True)
    left = set(begun_late)
    usual = []
    for round_, nodes in _next([each for each in ready if each.dag.pk not in left]):
        if any(node.kind in STARTERS or has_more_before(node) for node in nodes):
            left.add(round_.dag.pk)
        elif nodes:
            usual.append((round_, nodes))
    return left | _submit(usual) if usual else left


def _next(rounds: Sequence[Round]) -> Iterator[tuple[Round, list[ReadyNode]]]:
    """The rounds with the ready nodes that are to be submitted."""
    limits = LimitsInUse([round_.dag for round_ in rounds])
    by_dag = ready_by_dag([round_.dag for round_ in rounds])
    for round_ in rounds:
        dag, nodes = round_.dag, by_dag.get(round_.dag.pk, [])
        capacity = capacity_under(dag, round_.options, limits.of(dag), most=len(nodes))
        if capacity.categories or min(capacity.nodes, capacity.data_nodes) < len(nodes):
            nodes = take_ready(round_, capacity)
        limits.add(dag, nodes)
        yield round_, nodes


def _submit(rounds: Sequence[tuple[Round, list[ReadyNode]]]) -> set[int]:
    """Submit jobs of these nodes; the DAGs of which any is left, or is at fault."""
    left: set[int] = set()
    reads = SubmissionReads()
    reads.descriptions_of(node for _, nodes in rounds for node in nodes)
    first = rounds[0][0].dag
    submitted = Submitted([round_ for round_, _ in rounds])
    until_s = time.monotonic() + LIMIT_S
    with jobs.submission(
        owner=first.owner,
        workspace=first.workspace,
        actor=ENGINE,
        topic=lifecycle.JOB_TOPIC,
        topic_key=first.pk,
        expected=sum(len(nodes) for _, nodes in rounds),
    ) as add:
        for round_, nodes in rounds:
            dag = round_.dag
            made = _made(dag, nodes, reads) if time.monotonic() < until_s else []
            if len(made) < len(nodes):
                left.add(dag.pk)
            origin = JobOrigin(dag.owner_id, dag.workspace_id, dag.pk)
            for node, specs in made:
                submitted.add(round_, node, add(specs, origin=origin))
        submitted.send()
    submitted.close()
    transaction.on_commit(partial(wake_loop, DIRECT_TASK))
    return left


def _made(
    dag: Dag, nodes: Sequence[ReadyNode], reads: SubmissionReads
) -> list[tuple[ReadyNode, list[JobSpec]]]:
    """Jobs of the nodes before the first fault, or of as many as there is time for."""
    made = []
    for node, specs in make_specs(dag, nodes, reads):
        if isinstance(specs, Fault):
            break
        made.append((node, specs))
    return made
