"""Services that change labels and priority of DAGs, in any state of theirs, with reason and audit.

What a DAG gets, the DAGs inside of it get too; these have none of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.db import transaction
from django.db.models import Q

from wms.core.actors import Actor
from wms.core.audit import record_actions
from wms.core.errors import InvalidInput, ReasonRequired
from wms.core.labels import changed_labels, check_change
from wms.core.transitions import Applied
from wms.dags.engine.submitting.nodes_without_jobs import inner_dags
from wms.dags.models import Dag
from wms.dags.priorities import checked_priority
from wms.dags.reading.dag_jobs import jobs_of
from wms.dags.services.dags import locked_dags
from wms.dags.states import DAG_TERMINAL
from wms.jobs.job_changes import change_open_jobs
from wms.jobs.states import TERMINAL

#: Jobs that get another priority by the same statements.
_JOBS_AT_ONCE = 2000


@transaction.atomic
def relabel_dags(
    dag_ids: Collection[int],
    *,
    actor: Actor,
    reason: str,
    add: Sequence[str] | None = None,
    remove: Sequence[str] | None = None,
) -> Applied:
    """Add labels to DAGs and take others away, of the DAGs inside of them as well.

    DAGs that have ended are changed too; inner ones are skipped. Raises NotFound, NotPermitted,
    ReasonRequired, InvalidInput.
    """
    dags = locked_dags(dag_ids, actor)
    if not reason.strip():
        raise ReasonRequired("label")
    new, old = list(add or ()), list(remove or ())
    check_change(new, old)
    ids = [dag.pk for dag in dags if dag.parent_node_id is None]
    changed = []
    for dag in Dag.objects.filter(Q(pk__in=ids) | Q(root__in=ids)).only("labels").order_by("pk"):
        labels = changed_labels(dag.labels, add=new, remove=old)
        if labels != dag.labels:
            dag.labels = labels
            changed.append(dag)
    Dag.objects.bulk_update(changed, ["labels"], batch_size=500)
    record_actions(
        "label DAG",
        targets=[f"DAG {pk}" for pk in ids],
        actor=actor,
        reason=reason,
        facts={"add": new, "remove": old},
    )
    return Applied(ids, sorted(set(dag_ids).difference(ids)))


@transaction.atomic
def prioritise_dags(
    dag_ids: Collection[int], *, priority: int, actor: Actor, reason: str
) -> Applied:
    """Give DAGs another priority among those of their owners, and all of their jobs the same.

    It counts in the next negotiation, for the jobs that wait in TaskQueues at once, and for those
    that are made later. DAGs that have ended are skipped, inner ones, and those that only
    follow a log. Raises NotFound, NotPermitted, ReasonRequired, InvalidInput.
    """
    dags = locked_dags(dag_ids, actor)
    if not reason.strip():
        raise ReasonRequired("prioritise")
    try:
        number = checked_priority(priority)
    except ValueError as error:
        raise InvalidInput.of(str(error), field="priority") from None
    alive = [
        dag.pk
        for dag in dags
        if dag.parent_node_id is None and not dag.is_followed and dag.state not in DAG_TERMINAL
    ]
    with_inner = sorted({*alive, *inner_dags(alive)})
    Dag.objects.filter(pk__in=with_inner).update(priority=number)
    _prioritise_jobs(with_inner, number, actor=actor, reason=reason)
    record_actions(
        "prioritise DAG",
        targets=[f"DAG {pk}" for pk in alive],
        actor=actor,
        reason=reason,
        facts={"priority": number},
    )
    return Applied(alive, sorted({dag.pk for dag in dags}.difference(alive)))


def _prioritise_jobs(dag_ids: Collection[int], priority: int, *, actor: Actor, reason: str) -> None:
    """Give the jobs that have not ended the priority, in the order of their ids."""
    others = jobs_of(*dag_ids).exclude(state__in=TERMINAL).exclude(priority=priority)
    ids = list(others.order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(ids), _JOBS_AT_ONCE):
        some = ids[start : start + _JOBS_AT_ONCE]
        change_open_jobs(some, priority=priority, actor=actor, reason=reason.strip())
