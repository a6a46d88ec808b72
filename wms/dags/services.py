"""Steering DAGs: hold, release, rematch, remove."""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction
from django.db.models.functions import Now

from wms.core.actors import Actor
from wms.core.audit import record_actions
from wms.core.errors import InvalidInput, NotFound
from wms.core.transitions import Applied
from wms.dags import lifecycle
from wms.dags.models import Dag, MatchRecord
from wms.dags.policies import matchmaking_policy
from wms.dags.policy import require_steering
from wms.dags.steering import hold, jobs_of, take_back
from wms.jobs import services as jobs
from wms.jobs.states import TERMINAL, JobState

#: A DAG may be kept away from a site for thirty days at the most.
MAX_AVOID_S = 30 * 86_400


@transaction.atomic
def hold_dags(dag_ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """Let what runs finish and start nothing more: waiting jobs leave their TaskQueues.

    DAGs in a state that cannot be held are skipped. Raises NotFound, NotPermitted, ReasonRequired.
    """
    dags = _locked(dag_ids, actor)
    applied = hold([dag.pk for dag in dags], actor=actor, reason=reason)
    _audit("hold DAG", applied, actor, reason)
    return applied


@transaction.atomic
def release_dags(dag_ids: Collection[int], *, actor: Actor, reason: str = "") -> Applied:
    """Let held DAGs go on: at their site if they had one, else from the next negotiation.

    A person's release lets the policy rematch them anew, up to its cap. Raises NotFound,
    NotPermitted.
    """
    dags = _locked(dag_ids, actor)
    bound = [dag.pk for dag in dags if dag.site_id is not None]
    free = [dag.pk for dag in dags if dag.site_id is None]
    resumed, released = (
        lifecycle.apply_to_dags(event, ids, actor=actor, reason=reason, policy_rematch_count=0)
        for event, ids in (("resume", bound), ("release", free))
    )
    jobs.release_jobs(jobs_of(resumed.changed, states={JobState.HELD.value}), actor=actor)
    applied = Applied(
        changed=resumed.changed + released.changed, skipped=resumed.skipped + released.skipped
    )
    _audit("release DAG", applied, actor, reason)
    return applied


@transaction.atomic
def rematch_dags(
    dag_ids: Collection[int],
    *,
    actor: Actor,
    reason: str,
    lets_finish: bool = False,
    avoid_s: int | None = None,
) -> Applied:
    """Take DAGs from their sites: they are idle, keep what is done, and are negotiated anew.

    Their queued jobs leave the TaskQueues at once; what runs is stopped with the next heartbeat,
    or may finish where it is. They do not come back to the site within `avoid_s` (by default that
    of the policy). DAGs without a site are skipped. By hand a DAG can be rematched without limit,
    and the policy may rematch it anew, up to its cap.

    Raises NotFound, NotPermitted, ReasonRequired, InvalidInput.
    """
    dags = _locked(dag_ids, actor)
    if avoid_s is None:
        avoid_s = matchmaking_policy().avoid_s
    elif not 0 <= avoid_s <= MAX_AVOID_S:
        raise InvalidInput.of(f"not between 0 and {MAX_AVOID_S} seconds", field="avoid_s")
    applied = take_back(
        dags,
        end=MatchRecord.End.REMATCH,
        actor=actor,
        reason=reason,
        avoid_s=avoid_s,
        lets_finish=lets_finish,
        policy_rematch_count=0,
    )
    _audit("rematch DAG", applied, actor, reason)
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
    alive = jobs_of(applied.changed, states=set(JobState.values) - TERMINAL)
    jobs.kill_jobs(alive, actor=actor, reason=f"the DAG was removed: {reason}")
    _audit("remove DAG", applied, actor, reason)
    return applied


def _locked(dag_ids: Collection[int], actor: Actor) -> list[Dag]:
    dags = list(
        Dag.objects.filter(pk__in=dag_ids)
        .select_related("site")
        .order_by("pk")
        .select_for_update(of=("self",))
    )
    missing = sorted(set(dag_ids) - {dag.pk for dag in dags})
    if missing:
        raise NotFound(f"There is no DAG {', '.join(map(str, missing))}.")
    require_steering(actor, dags)
    return dags


def _audit(action: str, applied: Applied, actor: Actor, reason: str) -> None:
    targets = [f"DAG {dag_id}" for dag_id in applied.changed]
    record_actions(action, targets=targets, actor=actor, reason=reason)
