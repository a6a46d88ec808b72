"""Services on gates of a DAG: open, or close, with permission, reason and audit.

A gate that is opened is done, one that is closed has failed; the nodes below follow at once.
"""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction
from django.utils import timezone

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import Conflict, Finding, InvalidInput, ReasonRequired
from wms.core.models import Role
from wms.core.policy import require_role
from wms.core.transitions import Applied
from wms.dags import lifecycle
from wms.dags.engine.gates import forget_times, gate_of, is_waiting, outcome_of_gate
from wms.dags.engine.round import Round
from wms.dags.engine.settling.ending import begin_ending, ending_of_abort
from wms.dags.engine.settling.settle import abort_among, carry_out
from wms.dags.models import Dag, Node
from wms.dags.policy import require_decision
from wms.dags.services.dags import lock_in_reach
from wms.dags.services.nodes import MAX_NODES
from wms.dags.states import DAG_TERMINAL, NodeCause, NodeKind, NodeState

#: Limit of names in the audit record; the DAG's events have all.
_NAMES_AUDITED = 200


@transaction.atomic
def decide_gates(
    dag_id: int, names: Collection[str], *, opens: bool, actor: Actor, reason: str
) -> Applied:
    """Open gates that wait, or close them; those that are so already are skipped.

    The DAG may be held or halted: what is below begins when it goes on. The ids in the result are
    nodes. Raises NotFound, NotPermitted, ReasonRequired, InvalidInput, Conflict.
    """
    [dag] = lock_in_reach([dag_id], actor)
    require_role(actor, Role.USER, "open or close gates")
    gates = _find_gates(dag, names)
    require_decision(actor, dag, ((gate.name, gate_of(gate).who) for gate in gates))
    if not reason.strip():
        raise ReasonRequired("open gate" if opens else "close gate")
    _refuse_ended(dag)
    wanted = NodeState.DONE if opens else NodeState.FAILED
    waiting = [gate for gate in gates if gate.state != wanted]
    _refuse_others(waiting)
    ids = [gate.pk for gate in waiting]
    outcomes = [
        outcome_of_gate(gate, opens=opens, reason=reason, cause=NodeCause.PERSON)
        for gate in waiting
    ]
    with Round(dag, timezone.now(), actor) as round_:
        forget_times(ids)
        round_.aborted_by = abort_among(outcomes)
        # What is ready then is begun by the engine, in a round of its own.
        carry_out(round_, outcomes)
        if round_.aborted_by is not None:
            begin_ending(round_, ending_of_abort(round_.aborted_by))
    if waiting:
        lifecycle.notify_engine_to_start(dag.pk)
        _audit("open gate" if opens else "close gate", dag, waiting, actor, reason)
    return Applied(ids, sorted({gate.pk for gate in gates}.difference(ids)))


def _find_gates(dag: Dag, names: Collection[str]) -> list[Node]:
    """Gates of these names, with their work. Raises InvalidInput for what is none."""
    if not names or len(names) > MAX_NODES:
        raise InvalidInput.of(f"name 1 to {MAX_NODES} gates", field="nodes")
    found = Node.objects.filter(dag=dag, name__in=names).select_related("work")
    by_name = {node.name: node for node in found}
    faults = []
    for name in dict.fromkeys(names):
        if name not in by_name:
            faults.append(Finding(f"the DAG has no node {name}", field="nodes"))
        elif by_name[name].kind != NodeKind.GATE:
            faults.append(Finding(f"node {name} is no gate", field="nodes"))
    if faults:
        raise InvalidInput(faults[:200])
    return sorted(by_name.values(), key=lambda node: node.ordinal)


def _refuse_ended(dag: Dag) -> None:
    if dag.is_followed:
        raise Conflict(f"DAG {dag.pk} follows the log of another engine, which steers its nodes.")
    if dag.state in DAG_TERMINAL:
        raise Conflict(f"DAG {dag.pk} has ended: rerun the gate, or rescue the DAG.")
    if dag.is_ending:
        raise Conflict(f"DAG {dag.pk} is ending: its FINAL node runs.")


def _refuse_others(gates: Collection[Node]) -> None:
    """Raise InvalidInput for gates that do not wait for anybody."""
    faults = []
    for gate in gates:
        if gate_of(gate).opens_at is not None and gate.state == NodeState.READY:
            faults.append(Finding(f"gate {gate.name} opens by itself", field="nodes"))
        elif not is_waiting(gate):
            message = f"gate {gate.name} does not wait to be opened: it is {gate.state}"
            faults.append(Finding(message, field="nodes"))
    if faults:
        raise InvalidInput(faults[:200])


def _audit(action: str, dag: Dag, gates: Collection[Node], actor: Actor, reason: str) -> None:
    names = [gate.name for gate in gates]
    which = f"node {names[0]}" if len(names) == 1 else f"{len(names)} nodes"
    record_action(
        action,
        target=f"DAG {dag.pk}, {which}"[:160],
        actor=actor,
        reason=reason,
        facts={"nodes": names[:_NAMES_AUDITED]},
    )
