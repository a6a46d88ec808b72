"""Submitting ready nodes: jobs, inner DAGs and placement requests, as there is room for them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from django.db import transaction
from django.db.models import F

from wms.core.loops import wake
from wms.dags import lifecycle, steering
from wms.dags.decisions import after_failed_submit
from wms.dags.features import features_of
from wms.dags.inner import start_inner, start_request
from wms.dags.making import LIMIT_S, Fault, make_specs
from wms.dags.models import MatchRecord, Node, NodeTimer
from wms.dags.moves import Each
from wms.dags.policies import matchmaking_policy
from wms.dags.rounds import Round, is_provisioned
from wms.dags.settling import Verdict, attempt_of, begin
from wms.dags.states import NodeKind, ScriptKind
from wms.dags.throttles import room_of, take_ready
from wms.jobs import services as jobs
from wms.jobs.specs import JobSpec
from wms.pilots.director import DIRECT_TASK

#: So many nodes are submitted in one round, so that it ends however wide the DAG is.
BATCH = 2000


def submit_ready(round_: Round) -> tuple[list[Verdict], bool]:
    """Submit the ready nodes that there is room for, in their order.

    Returns verdicts about those that cannot be, and whether more could follow at once.
    """
    if not round_.dag.ready_count or waits_for_provisioner(round_):
        return [], False
    # Shared limits count what the rows say, this DAG's own among them.
    round_.close()
    room = room_of(round_, most=BATCH)
    if room.nodes == 0 and room.data_nodes == 0:
        return [], False
    nodes = take_ready(round_, room)
    verdicts, is_cut = submit(round_, nodes)
    return verdicts, is_cut or len(nodes) >= BATCH


def submit(round_: Round, nodes: Sequence[Node]) -> tuple[list[Verdict], bool]:
    """Submit these ready nodes. Returns verdicts about those that cannot be, and whether some are
    left because making their jobs took long.

    A fault of the DAG as a whole holds it; what was submitted before goes on.
    """
    waiting, verdicts = _not_yet_begun(round_, nodes)
    others = [node for node in waiting if node.kind in _STARTERS]
    failed, is_cut = _start_others(round_, others)
    verdicts += failed
    with_jobs = [node for node in waiting if node.kind not in _STARTERS]
    made = make_specs(round_.dag, with_jobs)
    faults = [(node, each) for node, each in made if isinstance(each, Fault)]
    _submit_jobs(round_, [(node, each) for node, each in made if not isinstance(each, Fault)])
    for node, fault in faults:
        if fault.is_lasting:
            verdicts.append(_failed_submit(round_, node, fault))
        else:
            _stop(round_, fault, has_begun=len(made) > len(faults))
    is_stopped = any(not fault.is_lasting for _, fault in faults)
    return verdicts, (is_cut or len(made) < len(with_jobs)) and not is_stopped


def waits_for_provisioner(round_: Round) -> bool:
    """Whether a provisioner has not yet said that it is ready."""
    provisioners = Node.objects.filter(dag=round_.dag, kind=NodeKind.PROVISIONER)
    return any(not is_provisioned(node) for node in provisioners)


def _start_others(round_: Round, nodes: Sequence[Node]) -> tuple[list[Verdict], bool]:
    """Start inner DAGs and placements, one at least and as many as there is time for.

    Returns verdicts about those that cannot be started, and whether some are left.
    """
    verdicts: list[Verdict] = []
    started: list[Node] = []
    until_s = time.monotonic() + LIMIT_S
    for node in nodes:
        if started and time.monotonic() > until_s:
            break
        started.append(node)
        failed = _STARTERS[NodeKind(node.kind)](round_, node)
        verdicts += [failed] if failed is not None else []
    _set_timers(round_, started)
    return verdicts, len(started) < len(nodes)


_STARTERS = {NodeKind.SUBDAG: start_inner, NodeKind.DATA: start_request}


def _not_yet_begun(round_: Round, nodes: Sequence[Node]) -> tuple[list[Node], list[Verdict]]:
    """Those that can be submitted; a node that became ready while its DAG stood still may have its
    PRE script, or nothing at all, before it."""
    special = [node.pk for node in nodes if node.features and _has_more_before(node)]
    verdicts = begin(round_, special)
    return [node for node in nodes if node.pk not in set(special)], verdicts


def _has_more_before(node: Node) -> bool:
    features = features_of(node.features)
    has_pre = features.script(ScriptKind.PRE) is not None
    return features.is_noop or (has_pre and "pre" not in (node.progress or {}))


def _submit_jobs(round_: Round, made: Sequence[tuple[Node, list[JobSpec]]]) -> None:
    if not made:
        return
    dag = round_.dag
    sizes = [len(specs) for _, specs in made]
    ids = jobs.submit_jobs(
        [spec for _, specs in made for spec in specs],
        owner=dag.owner,
        workspace=dag.workspace,
        actor=round_.actor,
        topic=lifecycle.JOB_TOPIC,
        topic_key=dag.pk,
        clusters=sizes,
    )
    firsts, place = [], 0
    for size in sizes:
        firsts.append(ids[place])
        place += size
    nodes = [node for node, _ in made]
    round_.move(
        "submit",
        [node.pk for node in nodes],
        each=Each("job_id", "bigint", firsts, fact="job"),
    )
    lists = [(node, size) for node, size in zip(nodes, sizes, strict=True) if size > 1]
    for node, size in lists:
        node.progress = {**(node.progress or {}), "total": size, "left": size}
    Node.objects.bulk_update([node for node, _ in lists], ["progress"], batch_size=500)
    _set_timers(round_, nodes)
    transaction.on_commit(partial(wake, DIRECT_TASK))


def _set_timers(round_: Round, nodes: Sequence[Node]) -> None:
    limited = {
        node: limits
        for node in nodes
        if node.features and (limits := features_of(node.features).time_limits) is not None
    }
    # One that was recalled, or runs again by hand, has those of its earlier submission.
    if limited:
        NodeTimer.objects.filter(node__in=limited).delete()
    timers = []
    for node, limits in limited.items():
        given = {NodeTimer.Kind.QUEUE: limits.queue_s, NodeTimer.Kind.RUN: limits.run_s}
        timers += [
            NodeTimer(
                dag=round_.dag,
                node=node,
                kind=kind,
                retry_number=node.retry_number,
                limit_s=limit_s,
                due_at=round_.now + timedelta(seconds=limit_s),
            )
            for kind, limit_s in given.items()
            if limit_s
        ]
    NodeTimer.objects.bulk_create(timers, batch_size=1000)


def _failed_submit(round_: Round, node: Node, fault: Fault) -> Verdict:
    attempt = attempt_of(round_, node, features_of(node.features))
    reason = f"submit failed: {fault.reason}"
    return Verdict(node, after_failed_submit(attempt), reason, has_jobs=False)


def _stop(round_: Round, fault: Fault, *, has_begun: bool) -> None:
    """Hold a DAG of which a node cannot be submitted.

    If nothing of it has run yet, it looks for another site instead, as often as the policy lets
    it; or its release lets it do so.
    """
    dag, reason, policy = round_.dag, fault.reason, matchmaking_policy()
    begun = has_begun or dag.done_count or dag.failed_count or dag.submitted_count
    if begun or dag.parent_node_id is not None:
        lifecycle.apply_to_dags("hold", [dag.pk], actor=round_.actor, reason=reason)
    elif fault.is_of_site and dag.policy_rematch_count < policy.max_rematches:
        steering.take_back(
            [dag],
            end=MatchRecord.End.UNFIT,
            actor=round_.actor,
            reason=reason,
            avoid_s=policy.avoid_s,
            policy_rematch_count=F("policy_rematch_count") + 1,
        )
    else:
        lifecycle.apply_to_dags(
            "hold", [dag.pk], actor=round_.actor, reason=reason, **lifecycle.UNBOUND
        )
        lifecycle.end_matches([dag.pk], end=MatchRecord.End.HOLD, reason=reason)
    round_.close()
    dag.refresh_from_db()
