"""Services on nodes of a DAG: rerun, mark as done or failed, change, mark as provisioned.

With permission and audit. Children, descendants and the counters of the DAG follow; a rerun opens a
DAG that has ended.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from django.db import connection, transaction
from django.utils import timezone

from matching.descriptions.substitution import reference_fault
from wms.accounting.limited_tokens import require_limit_of_actor
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import Conflict, Finding, InvalidInput, ReasonRequired
from wms.core.transitions import Applied
from wms.dags import lifecycle
from wms.dags.engine.node_work import write_work
from wms.dags.engine.round import Round
from wms.dags.engine.settling.node_clusters import note_provisioned
from wms.dags.engine.settling.settle import finish
from wms.dags.engine.settling.tolerance import fail_nodes, forget_tolerated
from wms.dags.joins.conditions import evaluate_conditions, forget_conditions
from wms.dags.joins.deciding import reconsider
from wms.dags.language.size_limits import MAX_RETRIES, MAX_VARIABLES
from wms.dags.models import Dag, Edge, Node, NodeWork
from wms.dags.services.dags import locked_dags, refuse_second_run
from wms.dags.services.sql import FIND_LOST_PARENTS, FIND_WITH_DESCENDANTS, RECOUNT_PARENTS
from wms.dags.states import (
    COUNTED_KINDS,
    DAG_TERMINAL,
    NODE_TERMINAL,
    WITH_WORK,
    DagCause,
    NodeCause,
    NodeKind,
    NodeState,
)
from wms.jobs.input_data.changes import note_sets

#: Limit of nodes in one request.
MAX_NODES = 10_000
#: Limit of node names in the audit record; the DAG's events have all.
_NODES_AUDITED = 200
_MAX_TEXT = 8 * 1024 * 1024
_NAME = re.compile(r"\+?[A-Za-z_][A-Za-z0-9_.]{0,253}")
_NOT_YET_RUN = (NodeState.WAITING, NodeState.READY)
#: They follow from what became of others, and are decided anew.
_NEVER_RAN = (NodeState.FUTILE, NodeState.SKIPPED)


@transaction.atomic
def rerun_nodes(
    dag_id: int,
    names: Collection[str],
    *,
    actor: Actor,
    reason: str,
    with_descendants: bool = True,
) -> Applied:
    """Rerun ended nodes and everything that depends on them, at any time.

    Other nodes keep their states and counters; retries of rerun nodes count from 0 again. Without
    descendants only futile and skipped ones below the nodes are decided on anew. An ended DAG is
    reopened and gets a new match. Submitted nodes go on and are skipped. The ids in the result are
    nodes. Raises NotFound, NotPermitted, ReasonRequired, InvalidInput, Conflict.
    """
    with _steering_round(dag_id, actor, reason) as round_:
        dag = round_.dag
        chosen = _find_nodes(dag, names, NODE_TERMINAL, "has not ended")
        with connection.cursor() as cursor:
            cursor.execute(FIND_WITH_DESCENDANTS, [chosen])
            below = [row[0] for row in cursor.fetchall()]
        if not with_descendants:
            never_ran = Node.objects.filter(pk__in=below, state__in=_NEVER_RAN)
            below = [*chosen, *never_ran.values_list("pk", flat=True)]
        if dag.state in DAG_TERMINAL:
            _reopen(round_, actor, reason)
        inner = Node.objects.filter(pk__in=below, kind=NodeKind.SUBDAG, state=NodeState.DONE)
        done_inner = list(inner.values_list("pk", flat=True))
        moved = round_.move(
            "rerun",
            below,
            reason=reason,
            cause=NodeCause.PERSON,
            retry_number=0,
            ends_attached=True,
        )
        # An inner DAG that was done runs again from its beginning, one that failed from its rescue.
        write_work([NodeWork(node_id=pk, is_fresh=True) for pk in done_inner], "is_fresh")
        forget_tolerated(round_, moved)
        _update_dependencies(round_, moved)
        lifecycle.notify_engine_to_start(dag.pk)
        _audit("rerun node", dag, names, actor, reason)
        return Applied(moved, sorted(set(below).difference(moved)))


@transaction.atomic
def mark_nodes(
    dag_id: int, names: Collection[str], *, as_done: bool, actor: Actor, reason: str
) -> Applied:
    """Mark nodes as done or failed without running them; their children follow.

    Submitted nodes cannot be marked. The ids in the result are nodes. Raises NotFound,
    NotPermitted, ReasonRequired, InvalidInput, Conflict.
    """
    with _steering_round(dag_id, actor, reason) as round_:
        dag = round_.dag
        if dag.state in DAG_TERMINAL:
            raise Conflict(f"DAG {dag.pk} has ended: rerun nodes of it, or rescue it.")
        states = [NodeState.WAITING, NodeState.READY]
        states += [NodeState.FAILED, *_NEVER_RAN] if as_done else []
        chosen = _find_nodes(
            dag,
            names,
            {state.value for state in states},
            "is not one that can be marked",
            kinds=WITH_WORK,
        )
        if as_done:
            moved = round_.move("mark done", chosen, reason=reason, cause=NodeCause.PERSON)
            forget_tolerated(round_, moved)
            if dag.has_joins:
                evaluate_conditions(moved)
            _revive_below(round_, moved, reason)
            _recount(round_, _children(moved))
        else:
            failed = fail_nodes(
                round_, chosen, reason=reason, cause=NodeCause.PERSON, event="mark failed"
            )
            finish(round_, failed.tolerated, failed.lost)
            moved = [*failed.tolerated, *failed.lost]
        lifecycle.notify_engine_to_start(dag.pk)
        _audit("mark node done" if as_done else "mark node failed", dag, names, actor, reason)
        return Applied(moved, sorted(set(chosen).difference(moved)))


@transaction.atomic
def change_nodes(
    dag_id: int,
    names: Collection[str],
    *,
    actor: Actor,
    reason: str,
    variables: Mapping[str, str] | None = None,
    priority: int | None = None,
    max_retries: int | None = None,
) -> Applied:
    """Change VARS, priority or retries of nodes that are not yet submitted.

    VARS are merged into those of the nodes and override them. Raises NotFound, NotPermitted,
    ReasonRequired, InvalidInput, Conflict; and BeyondFrontend for VARS by a limited token where the
    nodes reach more.
    """
    with _steering_round(dag_id, actor, reason) as round_:
        dag = round_.dag
        if dag.state in DAG_TERMINAL:
            raise Conflict(f"DAG {dag.pk} has ended: rerun nodes of it first, or rescue it.")
        if variables:
            # They may say which data a node takes.
            limit = dag.workspace.limited_to
            require_limit_of_actor(limit, actor=actor, named=f"DAG {dag.pk}")
        _check_values(variables or {}, priority, max_retries)
        if len(names) * sum(map(len, (variables or {}).values())) > _MAX_TEXT:
            message = f"at most {_MAX_TEXT} characters for all nodes together"
            raise InvalidInput.of(message, field="variables")
        chosen = _find_nodes(
            dag,
            names,
            {state.value for state in _NOT_YET_RUN},
            "has been submitted already",
            kinds=WITH_WORK,
        )
        nodes = list(Node.objects.filter(pk__in=chosen))
        for node in nodes:
            node.variables = {**node.variables, **(variables or {})}
            if len(node.variables) > MAX_VARIABLES:
                message = f"node {node.name} would have more than {MAX_VARIABLES} variables"
                raise InvalidInput.of(message, field="variables")
            node.priority = node.priority if priority is None else priority
            node.max_retries = node.max_retries if max_retries is None else max_retries
        Node.objects.bulk_update(nodes, ["variables", "priority", "max_retries"], batch_size=500)
        lifecycle.notify_engine(dag.pk)
        _audit("change node", dag, names, actor, reason)
        return Applied(chosen)


@transaction.atomic
def mark_provisioned(dag_id: int, names: Collection[str], *, actor: Actor, reason: str) -> Applied:
    """Mark provisioners as ready: after the last one the other nodes of the DAG may start.

    The ids in the result are nodes. Raises NotFound, NotPermitted, ReasonRequired, InvalidInput.
    """
    with _steering_round(dag_id, actor, reason) as round_:
        dag = round_.dag
        nodes = Node.objects.filter(
            dag=dag, name__in=names, kind=NodeKind.PROVISIONER, state=NodeState.SUBMITTED
        ).select_related("work")
        provisioners = {node.name: node for node in nodes}
        faults = [
            Finding(f"{name} is no provisioner that runs", field="nodes")
            for name in dict.fromkeys(names)
            if name not in provisioners
        ]
        if faults:
            raise InvalidInput(faults[:200])
        note_provisioned(dag, provisioners.values())
        _audit("tell node provisioned", dag, names, actor, reason)
        return Applied([node.pk for node in provisioners.values()])


@contextmanager
def _steering_round(dag_id: int, actor: Actor, reason: str) -> Iterator[Round]:
    """Engine round of a DAG for a service. Raises NotFound, NotPermitted, Conflict."""
    [dag] = locked_dags([dag_id], actor)
    if not reason.strip():
        raise ReasonRequired("change of a node")
    if dag.is_followed:
        raise Conflict(f"DAG {dag.pk} follows the log of another engine, which steers its nodes.")
    if dag.is_ending:
        raise Conflict(f"DAG {dag.pk} is ending: its FINAL node runs.")
    with Round(dag, timezone.now(), actor) as round_:
        yield round_


def _find_nodes(
    dag: Dag,
    names: Collection[str],
    states: Collection[str],
    why: str,
    kinds: Collection[str] = COUNTED_KINDS,
) -> list[int]:
    """Ids of the nodes of these names. Raises InvalidInput for unknown ones and other states."""
    if not names or len(names) > MAX_NODES:
        raise InvalidInput.of(f"name 1 to {MAX_NODES} nodes", field="nodes")
    rows = {
        name: (pk, state, kind)
        for pk, name, state, kind in Node.objects.filter(dag=dag, name__in=names).values_list(
            "pk", "name", "state", "kind"
        )
    }
    faults = []
    for name in dict.fromkeys(names):
        if name not in rows:
            faults.append(Finding(f"the DAG has no node {name}", field="nodes"))
        elif rows[name][2] not in kinds:
            faults.append(Finding(f"{name} is a {rows[name][2]} node", field="nodes"))
        elif rows[name][1] not in states:
            message = f"node {name} {why}: it is {rows[name][1]}"
            faults.append(Finding(message, field="nodes"))
    if faults:
        raise InvalidInput(faults[:200])
    return [pk for pk, _, _ in rows.values()]


def _check_values(
    variables: Mapping[str, str], priority: int | None, max_retries: int | None
) -> None:
    faults = []
    for name, value in variables.items():
        if not _NAME.fullmatch(name) or name.lower().startswith("queue"):
            faults.append(Finding(f"{name!r} cannot be the name of a variable", field="variables"))
        elif "\n" in value or "\0" in value or len(value) > 100_000:
            faults.append(
                Finding(f"{name}: at most 100,000 characters in a line", field="variables")
            )
        elif fault := reference_fault(value):
            faults.append(Finding(f"{name}: {fault}", field="variables"))
    if priority is not None and not -(2**31) <= priority < 2**31:
        faults.append(Finding("out of range", field="priority"))
    if max_retries is not None and not 0 <= max_retries <= MAX_RETRIES:
        message = f"must be from 0 to {MAX_RETRIES}"
        faults.append(Finding(message, field="max_retries"))
    if faults:
        raise InvalidInput(faults)


def _reopen(round_: Round, actor: Actor, reason: str) -> None:
    """Reopen an ended DAG; its FINAL, SERVICE and PROVISIONER nodes run again."""
    dag = round_.dag
    if dag.parent_node_id is not None:
        raise Conflict(f"DAG {dag.pk} is inside of another one, which has gone on: rerun its node.")
    refuse_second_run(dag)
    beside = [node.pk for nodes in round_.auxiliary_nodes().values() for node in nodes]
    round_.move(
        "rerun", beside, reason=reason, cause=NodeCause.PERSON, retry_number=0, ends_attached=True
    )
    with round_.handed_over():
        lifecycle.apply_to_dags(
            "reopen",
            [dag.pk],
            actor=actor,
            reason=reason,
            cause=DagCause.PERSON,
            status=0,
            exit_code=None,
            ended_at=None,
            **lifecycle.UNBOUND,
        )
    # They may sleep.
    note_sets([pk for pk in (dag.near_inputs_id, dag.far_inputs_id) if pk is not None])


def _update_dependencies(round_: Round, moved: Collection[int]) -> None:
    """Recount the unfinished parents of the nodes; nodes below other failures become futile.

    What came of conditions of arcs from them is forgotten.
    """
    if round_.dag.has_joins:
        forget_conditions(moved)
    below = [*moved, *_children(moved)]
    _recount(round_, below)
    with connection.cursor() as cursor:
        cursor.execute(FIND_LOST_PARENTS, [list(moved)])
        lost = [row[0] for row in cursor.fetchall()]
    if round_.give_up_below(lost) and round_.dag.has_joins:
        reconsider(round_, below)


def _children(node_ids: Collection[int]) -> list[int]:
    return list(Edge.objects.filter(parent_id__in=node_ids).values_list("child_id", flat=True))


def _recount(round_: Round, node_ids: Collection[int]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(RECOUNT_PARENTS, [list(node_ids)])
    if round_.dag.has_joins:
        reconsider(round_, node_ids)


def _revive_below(round_: Round, done: Collection[int], reason: str) -> None:
    """Let futile and skipped descendants of these nodes wait again, unless something else above
    them keeps them from running.
    """
    with connection.cursor() as cursor:
        cursor.execute(FIND_WITH_DESCENDANTS, [list(done)])
        below = {row[0] for row in cursor.fetchall()} - set(done)
    never_ran = Node.objects.filter(pk__in=below, state__in=_NEVER_RAN)
    ids = list(never_ran.values_list("pk", flat=True))
    revived = round_.move("rerun", ids, reason=reason, cause=NodeCause.PERSON)
    _update_dependencies(round_, revived)


def _audit(action: str, dag: Dag, names: Collection[str], actor: Actor, reason: str) -> None:
    """Write one audit record for all nodes."""
    ordered = sorted(names)
    which = f"node {ordered[0]}" if len(ordered) == 1 else f"{len(ordered)} nodes"
    record_action(
        action,
        target=f"DAG {dag.pk}, {which}"[:160],
        actor=actor,
        reason=reason,
        facts={"nodes": ordered[:_NODES_AUDITED]},
    )
