"""Submission of ready nodes within the throttles: jobs, inner DAGs and placement requests.

Also sets the timers of these nodes, and fails those that cannot be submitted; a fault of the DAG
as a whole holds it or takes it from its site.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial

from django.db import transaction

from wms.core.loops import wake_loop
from wms.core.statemachine import Increment, OwnValues, Sent
from wms.dags import lifecycle, operations
from wms.dags.engine import transitions
from wms.dags.engine.node_features import features_of
from wms.dags.engine.node_work import not_provisioned, write_work
from wms.dags.engine.round import NodeOutcome, Round, nodes_by_id
from wms.dags.engine.settling.decisions import after_failed_submit
from wms.dags.engine.settling.settle import attempt_of, begin
from wms.dags.engine.submitting.job_factory import LIMIT_S, Fault, make_specs
from wms.dags.engine.submitting.nodes_without_jobs import start_inner, start_request
from wms.dags.engine.submitting.throttles import ReadyNode, capacity_of, ready_nodes, take_ready
from wms.dags.models import MatchRecord, Node, NodeTimer, NodeWork
from wms.dags.services.policies import matchmaking_policy
from wms.dags.states import COUNTED_KINDS, DagCause, NodeCause, NodeKind, NodeState, ScriptKind
from wms.jobs import operations as jobs
from wms.pilots.pressure.director import DIRECT_TASK

#: So many nodes are submitted in one round, so that it ends however wide the DAG is.
BATCH = 2000
#: And moved by one statement.
_MOVED_AT_ONCE = 125


def submit_ready(round_: Round) -> tuple[list[NodeOutcome], bool]:
    """Submit the ready nodes that the throttles allow, in their order; auxiliary nodes first.

    Returns outcomes about those that cannot be, and whether more could follow at once. A fault of
    the DAG as a whole holds it; what was submitted before goes on.
    """
    nodes, is_full = _next(round_)
    if not nodes:
        return [], False
    waiting, outcomes = _not_yet_begun(round_, nodes)
    failed, is_cut = _start_others(round_, [node.pk for node in waiting if node.kind in STARTERS])
    with_jobs = [node for node in waiting if node.kind not in STARTERS]
    submitted, faults = _submit_jobs(round_, with_jobs)
    outcomes += [*failed, *_failed_submits(round_, faults)]
    of_dag = [fault for _, fault in faults if not fault.is_lasting]
    for fault in of_dag:
        has_begun = any(node.kind in COUNTED_KINDS for node in submitted)
        _stop(round_, fault, has_begun=has_begun)
    is_cut = is_full or is_cut or len(submitted) + len(faults) < len(with_jobs)
    return outcomes, is_cut and not of_dag


def _next(round_: Round) -> tuple[list[ReadyNode], bool]:
    """Ready nodes to be submitted now, and whether more are left than a round takes."""
    counted = 0 if round_.is_ending else round_.dag.ready_count
    if not counted and not round_.checks_auxiliary:
        return [], False
    is_provisioned = round_.is_ending or not not_provisioned(round_.dag).exists()
    auxiliary = _ready_auxiliary(round_, is_provisioned) if round_.checks_auxiliary else []
    if not counted or not is_provisioned:
        return auxiliary, False
    capacity = capacity_of(round_, most=BATCH)
    if capacity.nodes == 0 and capacity.data_nodes == 0:
        return auxiliary, False
    nodes = take_ready(round_, capacity)
    return auxiliary + nodes, len(nodes) >= BATCH


def _ready_auxiliary(round_: Round, is_provisioned: bool) -> list[ReadyNode]:
    """FINAL of a DAG that is ending; else the provisioner, and services once it is ready."""
    kinds = [NodeKind.FINAL] if round_.is_ending else [NodeKind.PROVISIONER]
    kinds += [NodeKind.SERVICE] if is_provisioned and not round_.is_ending else []
    ready = Node.objects.filter(dag=round_.dag, state=NodeState.READY, kind__in=kinds)
    return ready_nodes(ready.order_by("kind", "ordinal"))


def _failed_submits(
    round_: Round, faults: Sequence[tuple[ReadyNode, Fault]]
) -> Iterator[NodeOutcome]:
    """Outcomes of the nodes that no other site can run either."""
    lasting = [(node.pk, fault.reason) for node, fault in faults if fault.is_lasting]
    nodes = nodes_by_id(pk for pk, _ in lasting)
    for pk, reason in lasting:
        attempt = attempt_of(round_, nodes[pk], features_of(nodes[pk].features))
        decision = after_failed_submit(attempt)
        told = f"submit failed: {reason}"
        yield NodeOutcome(nodes[pk], decision, told, NodeCause.SUBMISSION, has_jobs=False)


def _start_others(round_: Round, node_ids: Sequence[int]) -> tuple[list[NodeOutcome], bool]:
    """Start inner DAGs and placements, one at least and as many as there is time for.

    Returns outcomes about those that cannot be started, and whether some are left.
    """
    outcomes: list[NodeOutcome] = []
    started = 0
    until_s = time.monotonic() + LIMIT_S
    nodes = (
        Node.objects.select_related("work").prefetch_related("submit_description").in_bulk(node_ids)
    )
    for node in (nodes[pk] for pk in node_ids):
        if started and time.monotonic() > until_s:
            break
        started += 1
        failed = STARTERS[NodeKind(node.kind)](round_, node)
        outcomes += [failed] if failed is not None else []
    _set_timers(round_, ready_nodes(Node.objects.filter(pk__in=node_ids[:started])))
    return outcomes, started < len(node_ids)


#: What starts nodes of the kinds that have no jobs.
STARTERS = {NodeKind.SUBDAG: start_inner, NodeKind.DATA: start_request}


def _not_yet_begun(
    round_: Round, nodes: Sequence[ReadyNode]
) -> tuple[list[ReadyNode], list[NodeOutcome]]:
    """Nodes that can be submitted; one that became ready while its DAG stood still may have its
    PRE script, or nothing at all, before it."""
    special = {node.pk for node in nodes if has_more_before(node)}
    outcomes = begin(round_, special)
    return [node for node in nodes if node.pk not in special], outcomes


def has_more_before(node: ReadyNode) -> bool:
    """Whether a ready node still has its PRE script before its job, or nothing to run at all."""
    if not node.features:
        return False
    features = features_of(node.features)
    has_pre = features.script(ScriptKind.PRE) is not None
    runs_nothing = features.is_noop or features.gate is not None
    return runs_nothing or (has_pre and node.pre_code is None)


class Submitted:
    """Nodes of rounds whose jobs are submitted; moved in batches while the jobs of others are made.

    First everything is added, then `send`, then `close`.
    """

    def __init__(self, rounds: Sequence[Round]) -> None:
        self.nodes: list[ReadyNode] = []
        self._rounds = rounds
        self._lists: list[NodeWork] = []
        self._batch: dict[int, int] = {}
        self._sent: list[Sent] = []
        self._with_limits: dict[int, tuple[Round, list[ReadyNode]]] = {}

    def add(self, round_: Round, node: ReadyNode, job_ids: Sequence[int]) -> None:
        """Note a node and its jobs."""
        self.nodes.append(node)
        self._batch[node.pk] = job_ids[0]
        if len(job_ids) > 1:
            count = len(job_ids)
            self._lists.append(NodeWork(node_id=node.pk, job_count=count, jobs_left=count))
        if node.features:
            self._with_limits.setdefault(round_.dag.pk, (round_, []))[1].append(node)
        if len(self._batch) >= _MOVED_AT_ONCE:
            self.send()

    def send(self) -> None:
        """Move those that are not yet; without waiting for it, where nothing is waited for."""
        if self._batch:
            first_jobs = OwnValues("job", list(self._batch.values()), fact="job")
            self._sent.append(
                transitions.send(
                    "submit",
                    list(self._batch),
                    dag_id=[each.dag.pk for each in self._rounds],
                    actor=self._rounds[0].actor,
                    own_values=first_jobs,
                )
            )
            self._batch = {}

    def close(self) -> None:
        """Count those that moved, and write what else their submission means."""
        for sent in self._sent:
            by_dag = transitions.moved_by(sent).by_dag
            for round_ in self._rounds:
                round_.count(by_dag)
        write_work(self._lists, "job_count", "jobs_left")
        for round_, nodes in self._with_limits.values():
            _set_timers(round_, nodes)


def _submit_jobs(
    round_: Round, nodes: Sequence[ReadyNode]
) -> tuple[list[ReadyNode], list[tuple[ReadyNode, Fault]]]:
    """Submit the jobs of as many nodes as there is time for; return these, and the faulty ones."""
    if not nodes:
        return [], []
    faults: list[tuple[ReadyNode, Fault]] = []
    submitted = Submitted([round_])
    with jobs.submission(
        owner=round_.dag.owner,
        workspace=round_.dag.workspace,
        actor=round_.actor,
        topic=lifecycle.JOB_TOPIC,
        topic_key=round_.dag.pk,
        expected=len(nodes),
    ) as add:
        for node, made in make_specs(round_.dag, nodes):
            if isinstance(made, Fault):
                faults.append((node, made))
            else:
                submitted.add(round_, node, add(made))
        submitted.send()
    submitted.close()
    if submitted.nodes:
        transaction.on_commit(partial(wake_loop, DIRECT_TASK))
    return submitted.nodes, faults


def _set_timers(round_: Round, nodes: Sequence[ReadyNode]) -> None:
    limited = [
        (node.pk, node.retry_number, limits)
        for node in nodes
        if node.features and (limits := features_of(node.features).time_limits) is not None
    ]
    # One that was recalled, or runs again by hand, has those of its earlier submission.
    if limited:
        NodeTimer.objects.filter(node_id__in=[pk for pk, _, _ in limited]).delete()
    timers = []
    for node_id, retry_number, limits in limited:
        given = {NodeTimer.Kind.QUEUE: limits.queue_s, NodeTimer.Kind.RUN: limits.run_s}
        timers += [
            NodeTimer(
                dag=round_.dag,
                node_id=node_id,
                kind=kind,
                retry_number=retry_number,
                limit_s=limit_s,
                due_at=round_.now + timedelta(seconds=limit_s),
            )
            for kind, limit_s in given.items()
            if limit_s
        ]
    NodeTimer.objects.bulk_create(timers, batch_size=1000)


def _stop(round_: Round, fault: Fault, *, has_begun: bool) -> None:
    """Hold a DAG of which a node cannot be submitted.

    If nothing of it has run yet, it looks for another site instead, as often as the policy lets
    it; or its release lets it do so.
    """
    dag, reason, policy = round_.dag, fault.reason, matchmaking_policy()
    begun = has_begun or dag.done_count or dag.failed_count or dag.submitted_count
    with round_.handed_over():
        if begun or dag.parent_node_id is not None:
            lifecycle.apply_to_dags(
                "hold", [dag.pk], actor=round_.actor, reason=reason, cause=DagCause.SUBMISSION
            )
        elif fault.is_of_site and dag.policy_rematch_count < policy.max_rematches:
            operations.take_back(
                [dag],
                end=MatchRecord.End.UNFIT,
                actor=round_.actor,
                reason=reason,
                avoid_s=policy.avoid_s,
                policy_rematch_count=Increment(),
            )
        else:
            lifecycle.apply_to_dags(
                "hold", [dag.pk], actor=round_.actor, reason=reason, cause=DagCause.SUBMISSION,
                **lifecycle.UNBOUND,
            )  # fmt: skip
            lifecycle.end_matches([dag.pk], end=MatchRecord.End.HOLD, reason=reason)
