"""Steering DAGs: hold, release, remove."""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction
from django.db.models.functions import Now

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import NotFound
from wms.core.transitions import Applied
from wms.dags import lifecycle
from wms.dags.models import Dag
from wms.dags.policy import require_steering
from wms.jobs import services as jobs
from wms.jobs.models import Job
from wms.jobs.states import TERMINAL, JobState


@transaction.atomic
def hold_dags(dag_ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """Let what runs finish and start nothing more: waiting jobs leave their TaskQueues.

    DAGs in a state that cannot be held are skipped. Raises NotFound, NotPermitted, ReasonRequired.
    """
    dags = _locked(dag_ids, actor)
    applied = lifecycle.apply_to_dags("hold", [dag.pk for dag in dags], actor=actor, reason=reason)
    jobs.hold_jobs(
        _jobs(applied.changed, states={JobState.WAITING.value}),
        actor=actor,
        reason=f"the DAG is held: {reason}",
    )
    _audit("hold DAG", applied, actor, reason)
    return applied


@transaction.atomic
def release_dags(dag_ids: Collection[int], *, actor: Actor, reason: str = "") -> Applied:
    """Let held DAGs go on: at their site if they had one, else from the next negotiation.

    Raises NotFound, NotPermitted.
    """
    dags = _locked(dag_ids, actor)
    bound = [dag.pk for dag in dags if dag.site_id is not None]
    free = [dag.pk for dag in dags if dag.site_id is None]
    resumed = lifecycle.apply_to_dags("resume", bound, actor=actor, reason=reason)
    released = lifecycle.apply_to_dags("release", free, actor=actor, reason=reason)
    jobs.release_jobs(_jobs(resumed.changed, states={JobState.HELD.value}), actor=actor)
    applied = Applied(
        changed=resumed.changed + released.changed, skipped=resumed.skipped + released.skipped
    )
    _audit("release DAG", applied, actor, reason)
    return applied


@transaction.atomic
def remove_dags(dag_ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """End DAGs for good: their jobs are killed, the running ones with the next heartbeat.

    Raises NotFound, NotPermitted, ReasonRequired.
    """
    dags = _locked(dag_ids, actor)
    applied = lifecycle.apply_to_dags(
        "remove", [dag.pk for dag in dags], actor=actor, reason=reason, ended_at=Now()
    )
    alive = _jobs(applied.changed, states=set(JobState.values) - TERMINAL)
    jobs.kill_jobs(alive, actor=actor, reason=f"the DAG was removed: {reason}")
    _audit("remove DAG", applied, actor, reason)
    return applied


def _locked(dag_ids: Collection[int], actor: Actor) -> list[Dag]:
    dags = list(Dag.objects.filter(pk__in=dag_ids).order_by("pk").select_for_update(of=("self",)))
    missing = sorted(set(dag_ids) - {dag.pk for dag in dags})
    if missing:
        raise NotFound(f"There is no DAG {', '.join(map(str, missing))}.")
    require_steering(actor, dags)
    return dags


def _jobs(dag_ids: Collection[int], *, states: set[str]) -> list[int]:
    return list(
        Job.objects.filter(
            topic=lifecycle.JOB_TOPIC, topic_key__in=dag_ids, state__in=states
        ).values_list("pk", flat=True)
    )


def _audit(action: str, applied: Applied, actor: Actor, reason: str) -> None:
    for dag_id in applied.changed:
        record_action(action, target=f"DAG {dag_id}", actor=actor, reason=reason)
