"""End of a DAG by success, failure, abort or removal: what still runs is stopped.

Inner DAGs are stopped too. Unless the DAG is a success, a rescue is written. How it will end is
noted while its FINAL node runs, which decides the exit code and may make the DAG fail; then the
status and the exit code are stored. A halted DAG ends once nothing of it runs. Also the decision
whether a DAG ends now, and the removal of given inner DAGs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from wms.core.inbox import announce
from wms.core.models import InboxEntry
from wms.dags import lifecycle
from wms.dags.engine.node_work import not_provisioned, requests_of_nodes
from wms.dags.engine.round import NodeOutcome, Round
from wms.dags.engine.settling.node_clusters import cluster_jobs
from wms.dags.engine.settling.tolerance import judge_failures
from wms.dags.engine.submitting.nodes_without_jobs import inner_dags
from wms.dags.joins.deciding import follow_ends
from wms.dags.joins.selectors import has_failed, unhandled_failures
from wms.dags.lifecycle import INNER_TOPIC
from wms.dags.models import Dag, Node, NodeTimer, ScriptRun
from wms.dags.rescue.rescue_files import write_rescue_of
from wms.dags.scripts.run_leases import cancel_runs
from wms.dags.states import (
    AUXILIARY_KINDS,
    DAG_TERMINAL,
    NODE_IN_FLIGHT,
    DagCause,
    DagState,
    DagStatus,
    EndingEvent,
    NodeCause,
    NodeKind,
    NodeState,
    ScriptKind,
    ScriptState,
)
from wms.jobs import operations as jobs
from wms.jobs.states import TERMINAL, JobCause
from wms.placement import operations as placement
from wms.placement.allocations import release_of_workspaces

_FAILURE = 1
_REMOVED = 2


_CAUSES = {
    DagStatus.NODE_FAILED: DagCause.NODE_FAILED,
    DagStatus.ABORTED: DagCause.ABORTED,
    DagStatus.REMOVED: DagCause.REMOVED,
    DagStatus.HALTED: DagCause.HALTED,
}


@dataclass(frozen=True, slots=True)
class Ending:
    """End of a DAG, as far as it is known before its FINAL node has run."""

    status: DagStatus
    exit_code: int
    reason: str
    event: EndingEvent
    #: It is a success, and nodes failed that a further run may do.
    tolerates: bool = False

    @property
    def is_success(self) -> bool:
        """Whether the DAG is completed."""
        return self.event is EndingEvent.COMPLETE

    @property
    def leaves_rescue(self) -> bool:
        """Whether there is something that a further run may do."""
        return self.tolerates or not self.is_success

    @property
    def cause(self) -> str:
        """Cause of the DAG's state."""
        if self.tolerates:
            return DagCause.TOLERATED
        return "" if self.is_success else _CAUSES.get(self.status, "")


_ENDING_OF_SUCCESS = Ending(DagStatus.OK, 0, "", EndingEvent.COMPLETE)


def ending_of_abort(outcome: NodeOutcome) -> Ending:
    """ABORT-DAG-ON has hit. With the code 0 the DAG is a success."""
    code = outcome.decision.aborts_with or 0
    reason = f"ABORT-DAG-ON: node {outcome.node.name} ended with {outcome.decision.code}"
    if code == 0:
        return Ending(DagStatus.OK, 0, reason, EndingEvent.COMPLETE)
    return Ending(DagStatus.ABORTED, code, reason, EndingEvent.FAIL)


def ending_of_removal(reason: str) -> Ending:
    """Somebody removes the DAG."""
    return Ending(DagStatus.REMOVED, _REMOVED, reason, EndingEvent.REMOVE)


def ending_now(round_: Round) -> Ending | None:
    """End of the DAG if none of its nodes can go on; None while one can."""
    dag = round_.dag
    if dag.done_count == dag.node_count:
        return _ENDING_OF_SUCCESS
    if dag.ended_count == dag.node_count:
        if not dag.futile_count and not has_failed(dag):
            return Ending(DagStatus.OK, 0, _reason_of_success(dag), EndingEvent.COMPLETE)
        return _ending_with_failures(dag)
    if dag.state == DagState.HALTED and dag.is_placed and not _is_under_way(dag):
        return Ending(DagStatus.HALTED, _FAILURE, f"halted: {dag.state_reason}", EndingEvent.FAIL)
    return _ending_of_provisioner(round_)


def begin_ending(round_: Round, ending: Ending) -> None:
    """Stop what runs, write the rescue, and let FINAL run; without one the DAG ends now."""
    dag = round_.dag
    # Removed once more while FINAL runs, it does not wait for that.
    is_impatient = dag.is_ending
    _stop_all(round_, ending, with_final=is_impatient)
    rescue = write_rescue_of(dag) if ending.leaves_rescue else None
    note_ending(dag, ending, rescue.number if rescue is not None else None)
    final = round_.auxiliary_nodes().get(NodeKind.FINAL, [])
    if final and not is_impatient and _start_final(round_, final[0]):
        return
    _end(round_, ending)


def end_completed(rounds: Sequence[Round]) -> list[int]:
    """End DAGs together all of whose nodes are done; return the ids of those that ended.

    One that has a FINAL node, a script or an inner DAG that still runs, or another DAG around it
    needs a round of its own. The statements are as many as for one.
    """
    over = [each.dag for each in rounds if each.dag.done_count == each.dag.node_count]
    alone = [dag.pk for dag in over if dag.parent_node_id is None]
    ids = sorted({*alone} - _with_more_to_end(alone)) if alone else []
    if not ids:
        return []
    NodeTimer.objects.filter(dag__in=ids).delete()
    ending = _ENDING_OF_SUCCESS
    _apply(
        ending,
        ids,
        rounds[0],
        ending_status=ending.status,
        ending_code=ending.exit_code,
        ending_reason=ending.reason,
        ending_cause=ending.cause,
        ending_rescue=None,
    )
    return ids


def _with_more_to_end(dag_ids: Sequence[int]) -> set[int]:
    """Those of the DAGs with more than nodes of the graph, which are all done. One query."""
    beside = Node.objects.filter(dag__in=dag_ids, kind__in=AUXILIARY_KINDS)
    scripts = ScriptRun.objects.filter(dag__in=dag_ids).exclude(state=ScriptState.ENDED)
    inner = Dag.objects.filter(parent_node__dag__in=dag_ids).exclude(state__in=DAG_TERMINAL)
    found = beside.order_by().values_list("dag_id")
    others = scripts.order_by().values_list("dag_id"), inner.values_list("parent_node__dag_id")
    return {pk for (pk,) in found.union(*others)}


def note_ending(dag: Dag, ending: Ending, rescue_number: int | None) -> None:
    """Store how a DAG will end; only its FINAL node runs from now on."""
    dag.ending_event = ending.event.value
    dag.ending_status = int(ending.status)
    dag.ending_code = ending.exit_code
    dag.ending_reason = ending.reason
    dag.ending_cause = ending.cause
    dag.ending_rescue = rescue_number
    dag.save(
        update_fields=[
            "ending_event",
            "ending_status",
            "ending_code",
            "ending_reason",
            "ending_cause",
            "ending_rescue",
        ]
    )


def noted_ending(dag: Dag) -> Ending:
    """Stored end of a DAG that is ending."""
    status = DagStatus(dag.ending_status)
    event, tolerates = EndingEvent(dag.ending_event), dag.ending_cause == DagCause.TOLERATED
    return Ending(status, dag.ending_code, dag.ending_reason, event, tolerates)


def go_on_ending(round_: Round) -> None:
    """End the DAG when its FINAL node has ended: what that gave is the DAG's exit code.

    A FINAL node that failed makes the DAG fail, and the rescue is written anew.
    """
    dag = round_.dag
    final = round_.auxiliary_nodes().get(NodeKind.FINAL, [])
    ending = noted_ending(dag)
    if any(node.state not in (NodeState.DONE, NodeState.FAILED) for node in final):
        return
    if all(node.state == NodeState.DONE for node in final):
        _end_after_final(round_, ending)
        return
    reason = f"the FINAL node failed: {final[0].state_reason}"
    is_removed = ending.event is EndingEvent.REMOVE
    failed = Ending(
        ending.status or DagStatus.NODE_FAILED,
        _REMOVED if is_removed else _FAILURE,
        f"{ending.reason}; {reason}" if ending.reason else reason,
        EndingEvent.REMOVE if is_removed else EndingEvent.FAIL,
    )
    write_rescue_of(dag)
    _end(round_, failed)


def _end_after_final(round_: Round, ending: Ending) -> None:
    """FINAL was done: the DAG's exit code is 0, while its status goes on telling what happened."""
    if ending.is_success:
        _end(round_, ending)
        return
    reason = f"{ending.reason}; the FINAL node succeeded"
    # What somebody removed stays so.
    is_removed = ending.event is EndingEvent.REMOVE
    event = ending.event if is_removed else EndingEvent.COMPLETE
    _end(round_, Ending(ending.status, 0, reason, event))


def _end(round_: Round, ending: Ending) -> None:
    dag = round_.dag
    NodeTimer.objects.filter(dag=dag).delete()
    with round_.handed_over():
        _apply(ending, [dag.pk], round_)
    if ending.event is EndingEvent.REMOVE and dag.parent_node_id is None:
        release_of_workspaces([dag.workspace_id], now=round_.now)
    if dag.parent_node_id is not None:
        outer = Node.objects.values_list("dag_id", flat=True).get(pk=dag.parent_node_id)
        kind = InboxEntry.Kind.DAG
        announce([InboxEntry(topic=INNER_TOPIC, key=outer, kind=kind, subject_id=dag.pk)])


def _apply(ending: Ending, dag_ids: Sequence[int], round_: Round, **changes: Any) -> None:
    facts = {"status": int(ending.status), "exit_code": ending.exit_code}
    lifecycle.apply_to_dags(
        ending.event,
        dag_ids,
        actor=round_.actor,
        reason=ending.reason,
        cause=ending.cause,
        facts=dict.fromkeys(dag_ids, facts),
        ended_at=round_.now,
        status=ending.status,
        exit_code=ending.exit_code,
        ending_event="",
        **changes,
    )


def _start_final(round_: Round, final: Node) -> bool:
    """Make FINAL ready. False when it has run, or the DAG is removed and has no site.

    A DAG that ends otherwise while it has no site runs FINAL at the next one.
    """
    dag = round_.dag
    if final.state != NodeState.WAITING or dag.state in DAG_TERMINAL:
        return False
    if not dag.is_placed and dag.ending_event == EndingEvent.REMOVE:
        return False
    round_.move("make ready", [final.pk], ready_rank=round_.number)
    lifecycle.notify_engine_to_start(dag.pk)
    return True


def _stop_all(round_: Round, ending: Ending, *, with_final: bool) -> None:
    """Stop all nodes of the DAG that run; at an end by itself only services do."""
    dag, why = round_.dag, f"the DAG ends: {ending.reason or 'all is done'}"
    under_way = Node.objects.filter(dag=dag, state__in=NODE_IN_FLIGHT)
    if not with_final:
        under_way = under_way.exclude(kind=NodeKind.FINAL)
    nodes = list(under_way.only("pk", "job_id", "kind", "state"))
    ready_services = Node.objects.filter(dag=dag, kind=NodeKind.SERVICE, state=NodeState.READY)
    cancel_runs(dag.pk, reason=why, now=round_.now)
    if nodes:
        _stop_jobs(round_, nodes, why)
    inner = inner_dags([dag.pk])
    if inner:
        stop_inner(round_, inner, why)
    if ending.status == DagStatus.HALTED:
        # Their PRE scripts waited for their turn: nothing of them was run.
        waited = [node.pk for node in nodes if node.state == NodeState.PRE_RUNNING]
        round_.move(
            "put off", waited, reason=why, cause=NodeCause.DAG_ENDED, ready_rank=round_.number
        )
        nodes = [node for node in nodes if node.pk not in set(waited)]
    stopped = [node.pk for node in nodes] + list(ready_services.values_list("pk", flat=True))
    failed = round_.move("fail", stopped, reason=why, cause=NodeCause.DAG_ENDED)
    futile = round_.give_up_below(failed)
    if dag.has_joins:
        follow_ends(round_, rank=round_.number, failed=failed, futile=futile, begins=False)


def _stop_jobs(round_: Round, nodes: Sequence[Node], why: str) -> None:
    clusters = [node.job_id for node in nodes if node.job_id is not None]
    alive = cluster_jobs(clusters).exclude(state__in=TERMINAL)
    ids = list(alive.values_list("pk", flat=True))
    jobs.kill_jobs(ids, actor=round_.actor, reason=why, cause=JobCause.DAG_ENDED)
    requests = requests_of_nodes(nodes)
    if requests:
        placement.remove_batches(requests, actor=round_.actor, reason=why)


def stop_inner(round_: Round, dag_ids: Sequence[int], why: str) -> None:
    """Remove inner DAGs, the innermost first; nobody waits for them any more."""
    # Locked as everybody locks DAGs, by rising ids.
    locked = {
        dag.pk: dag
        for dag in Dag.objects.filter(pk__in=dag_ids)
        .select_related("owner", "site", "workspace")
        .order_by("pk")
        .select_for_update(of=("self",))
    }
    for dag_id in reversed(dag_ids):
        inner = locked[dag_id]
        inner.refresh_from_db(fields=["state", "ending_event"])
        if inner.state not in DAG_TERMINAL:
            with Round(inner, round_.now, round_.actor) as of_inner:
                begin_ending(of_inner, ending_of_removal(why))


def _is_under_way(dag: Dag) -> bool:
    if dag.submitted_count:
        return True
    scripts = ScriptRun.objects.filter(dag=dag).exclude(state=ScriptState.ENDED)
    # A halted DAG lets no PRE begin that still waits for its turn.
    waits = Q(kind=ScriptKind.PRE, state=ScriptState.WAITING)
    return scripts.exclude(waits).exclude(kind=ScriptKind.HOLD).exists()


def _ending_of_provisioner(round_: Round) -> Ending | None:
    """A provisioner that ended before it said that it is ready ends the DAG."""
    dag = round_.dag
    if _is_under_way(dag):
        return None
    failed = not_provisioned(dag).filter(state__in=(NodeState.DONE, NodeState.FAILED)).first()
    if failed is None:
        return None
    reason = f"the provisioner {failed.name} ended before it was ready: {failed.state_reason}"
    return Ending(DagStatus.NODE_FAILED, _FAILURE, reason, EndingEvent.FAIL)


def _ending_with_failures(dag: Dag) -> Ending:
    """End of a DAG of which nodes failed and none can go on: rules of its own may tolerate that."""
    judgement = judge_failures(dag)
    reason = "; ".join(filter(None, (_reason_of_failure(dag), judgement.words)))
    if judgement.is_success:
        return Ending(DagStatus.OK, 0, reason, EndingEvent.COMPLETE, tolerates=True)
    return Ending(DagStatus.NODE_FAILED, _FAILURE, reason, EndingEvent.FAIL)


def _reason_of_failure(dag: Dag) -> str:
    first = unhandled_failures(dag).order_by("state_since").first()
    reason = f"{_nodes(dag.failed_count)} failed"
    if dag.futile_count:
        reason += f", {_nodes(dag.futile_count)} could not run"
    return f"{reason}; first {first.name}: {first.state_reason}" if first is not None else reason


def _reason_of_success(dag: Dag) -> str:
    told = [f"{_nodes(dag.skipped_count)} skipped"] if dag.skipped_count else []
    told += [f"{_nodes(dag.failed_count)} failed, which was handled"] if dag.failed_count else []
    return ", ".join(told)


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"
