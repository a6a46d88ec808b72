"""Services on DAGs: hold, halt, release, rematch, remove, rescue (run again), change of limits.

With permission and audit. Also the lock of DAGs with their inner DAGs, the refusal of a second run
of the same DAG files, and the options of a run that may be changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from wms.accounting.walls import Walls, within_reach
from wms.core.actors import Actor
from wms.core.audit import record_actions
from wms.core.errors import Conflict, Finding, InvalidInput, NotFound, ReasonRequired
from wms.core.transitions import Applied
from wms.dags import lifecycle
from wms.dags.engine.round import Round
from wms.dags.engine.settling.ending import begin_ending, ending_of_removal
from wms.dags.engine.submitting.nodes_without_jobs import inner_dags
from wms.dags.engine.timers import put_off_timers
from wms.dags.models import Dag, MatchRecord, Node
from wms.dags.operations import hold, take_back
from wms.dags.policy import require_steering
from wms.dags.reading.dag_jobs import jobs_of
from wms.dags.rescue.rescue_files import Resumption
from wms.dags.services.policies import matchmaking_policy
from wms.dags.states import DAG_TERMINAL, DagCause, DagState
from wms.dags.submission.runs import RunRequest, check_options, create_run
from wms.jobs import operations as jobs
from wms.jobs.models import Workspace
from wms.jobs.quotas import check_quota
from wms.jobs.states import JobCause, JobState

#: Limit of the time for which a rematched DAG avoids its site (thirty days).
MAX_AVOID_S = 30 * 86_400
#: Options that may be changed while the DAG runs.
LIVE_OPTIONS = frozenset(
    {"max_jobs", "max_idle", "max_pre", "max_post", "max_hold_scripts", "max_job_holds"}
)


@transaction.atomic
def hold_dags(dag_ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """Hold DAGs: running jobs finish, waiting jobs leave their TaskQueues, nothing more starts.

    Inner DAGs are held as well. DAGs that cannot be held in their state are skipped.
    Raises NotFound, NotPermitted, ReasonRequired.
    """
    dags = locked_dags(dag_ids, actor)
    applied = hold([dag.pk for dag in dags], actor=actor, reason=reason, cause=DagCause.PERSON)
    _audit("hold DAG", applied, actor, reason)
    return applied


@transaction.atomic
def halt_dags(dag_ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """Halt DAGs: submitted nodes end with their POST scripts, and no node is submitted any more.

    A drained DAG ends with a rescue; until then it can be released. Unlike those of a held DAG, its
    waiting jobs stay in their TaskQueues. Inner DAGs are halted as well. Raises
    NotFound, NotPermitted, ReasonRequired.
    """
    dags = locked_dags(dag_ids, actor)
    ids = [dag.pk for dag in dags]
    applied = lifecycle.apply_to_dags(
        "halt", ids, actor=actor, reason=reason, cause=DagCause.PERSON
    )
    inner = inner_dags(applied.changed)
    lifecycle.apply_to_dags("halt", inner, actor=actor, reason=reason, cause=DagCause.OUTER_DAG)
    _audit("halt DAG", applied, actor, reason)
    return applied


@transaction.atomic
def release_dags(dag_ids: Collection[int], *, actor: Actor, reason: str = "") -> Applied:
    """Release held and halted DAGs: they resume at their site, or are negotiated without one.

    A followed DAG follows its log again. The count of rematches by policy starts again at 0.
    Raises NotFound, NotPermitted.
    """
    dags = locked_dags(dag_ids, actor)
    inner = list(Dag.objects.filter(pk__in=inner_dags([dag.pk for dag in dags])).order_by("pk"))
    stood_still = [dag.pk for dag in [*dags, *inner] if dag.state == DagState.HELD]
    put_off_timers(stood_still, timezone.now())
    bound = [dag.pk for dag in [*dags, *inner] if dag.is_placed or dag.is_followed]
    free = sorted({dag.pk for dag in [*dags, *inner]}.difference(bound))
    resumed, released = (
        lifecycle.apply_to_dags(
            event, ids, actor=actor, reason=reason, cause=DagCause.PERSON, policy_rematch_count=0
        )
        for event, ids in (("resume", bound), ("release", free))
    )
    jobs.release_jobs(_jobs_held_with(resumed.changed), actor=actor)
    # An inner DAG gets its site from the outer one.
    outer = Dag.objects.filter(nodes__inner_dags__in=released.changed)
    lifecycle.notify_engine_to_start(*outer.values_list("pk", flat=True))
    asked = {dag.pk for dag in dags}
    changed = sorted(asked.intersection(resumed.changed + released.changed))
    applied = Applied(changed=changed, skipped=sorted(asked.difference(changed)))
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
    """Rematch DAGs: they leave their sites, keep what is done, and are negotiated again.

    Queued jobs leave their TaskQueues at once; running ones are stopped with the next heartbeat, or
    finish where they are (`lets_finish`). The DAGs avoid the site for `avoid_s` (default: that of
    the policy). DAGs without a site are skipped, and inner ones, which follow their outer DAG. The
    number of rematches by hand is not limited; the count of those by policy starts again at 0.

    Raises NotFound, NotPermitted, ReasonRequired, InvalidInput.
    """
    dags = locked_dags(dag_ids, actor)
    if avoid_s is None:
        avoid_s = matchmaking_policy().avoid_s
    elif not 0 <= avoid_s <= MAX_AVOID_S:
        raise InvalidInput.of(f"not between 0 and {MAX_AVOID_S} seconds", field="avoid_s")
    applied = take_back(
        [dag for dag in dags if dag.parent_node_id is None],
        end=MatchRecord.End.REMATCH,
        actor=actor,
        reason=reason,
        avoid_s=avoid_s,
        lets_finish=lets_finish,
        policy_rematch_count=0,
    )
    applied = Applied(applied.changed, sorted({dag.pk for dag in dags}.difference(applied.changed)))
    _audit("rematch DAG", applied, actor, reason)
    return applied


@transaction.atomic
def remove_dags(dag_ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """Remove DAGs and their inner DAGs: jobs are killed, and a rescue is written.

    A FINAL node still runs if the DAG has a site; removed a second time, the DAG ends without it.
    Raises NotFound, NotPermitted, ReasonRequired.
    """
    dags = locked_dags(dag_ids, actor)
    if not reason.strip():
        raise ReasonRequired("remove")
    changed = []
    held = [dag for dag in dags if dag.state == DagState.HELD and dag.is_placed]
    # A held DAG runs nothing, not even FINAL.
    lifecycle.apply_to_dags(
        "resume", [dag.pk for dag in held], actor=actor, reason=reason, cause=DagCause.PERSON
    )
    for dag in dags:
        # It may be an inner DAG of one that was removed just now.
        dag.refresh_from_db(fields=["state", "ending_event", "round_number"])
        if dag.state not in DAG_TERMINAL:
            with Round(dag, timezone.now(), actor) as round_:
                begin_ending(round_, ending_of_removal(reason))
            changed.append(dag.pk)
    left = jobs_of(*changed).filter(state__in=(JobState.WAITING, JobState.HELD))
    alive = list(left.values_list("pk", flat=True))
    jobs.kill_jobs(
        alive, actor=actor, reason=f"the DAG was removed: {reason}", cause=JobCause.DAG_ENDED
    )
    applied = Applied(changed, sorted({dag.pk for dag in dags}.difference(changed)))
    _audit("remove DAG", applied, actor, reason)
    return applied


@transaction.atomic
def rescue_dag(
    dag_id: int,
    *,
    actor: Actor,
    reason: str,
    resumption: Resumption | None = None,
    options: Mapping[str, Any] | None = None,
) -> Dag:
    """Run an ended DAG again, as a new DAG in its workspace; by default from its newest rescue.

    The DAG files are read from the workspace. `options` override those of the previous run. Raises
    NotFound, NotPermitted, ReasonRequired, QuotaExceeded, Conflict, and InvalidInput with every
    fault.
    """
    [dag] = locked_dags([dag_id], actor)
    if not reason.strip():
        raise ReasonRequired("rescue")
    if dag.state not in DAG_TERMINAL:
        raise Conflict(f"DAG {dag.pk} is {dag.state}: it can be rescued when it has ended.")
    if dag.parent_node_id is not None:
        raise Conflict(f"DAG {dag.pk} is inside of another one: rescue that.")
    if dag.is_followed:
        raise Conflict(f"DAG {dag.pk} follows the log of another engine: rescue it there.")
    refuse_second_run(dag)
    check_quota(
        owner=dag.owner,
        group=dag.accounting_group,
        jobs=dag.node_count - dag.done_count,
        clusters=1,
    )
    new = create_run(
        RunRequest(
            workspace=dag.workspace,
            owner=dag.owner.within(dag.workspace.limited_to),
            dag_files=dag.dag_files,
            origin=dag.origin,
            options={**dag.options, **check_options(options or {})},
            resumption=resumption or Resumption(),
            previous=dag,
        ),
        actor=actor,
    )
    _audit("rescue DAG", Applied([dag.pk]), actor, reason, {"new_dag": new.pk})
    return new


@transaction.atomic
def change_limits(
    dag_id: int,
    *,
    actor: Actor,
    reason: str,
    options: Mapping[str, int] | None = None,
    categories: Mapping[str, int] | None = None,
) -> Dag:
    """Change limits of a DAG, also while it runs. Category limits are added to the others.

    0 is no limit, but for a category it lets no node be submitted. Submitted nodes stay submitted.
    Raises NotFound, NotPermitted, ReasonRequired, Conflict, InvalidInput.
    """
    [dag] = locked_dags([dag_id], actor)
    if not reason.strip():
        raise ReasonRequired("change limits")
    given, of_categories = dict(options or {}), dict(categories or {})
    faults = [
        Finding("cannot be changed while the DAG runs", field=name)
        for name in sorted(given.keys() - LIVE_OPTIONS)
    ]
    faults += [
        Finding("must be a whole number, 0 or more", field=f"category {name}")
        for name, limit in of_categories.items()
        if isinstance(limit, bool) or not isinstance(limit, int) or not 0 <= limit < 2**31
    ]
    faults += _unknown_categories(dag, of_categories)
    if faults:
        raise InvalidInput(faults)
    if dag.state in DAG_TERMINAL:
        raise Conflict(f"DAG {dag.pk} has ended.")
    if dag.is_followed:
        raise Conflict(f"DAG {dag.pk} follows the log of another engine, which limits it.")
    dag.options = {**dag.options, **check_options(given)}
    dag.category_limits = {**dag.category_limits, **of_categories}
    dag.save(update_fields=["options", "category_limits"])
    lifecycle.notify_engine_to_start(dag.pk)
    _audit("change limits of DAG", Applied([dag.pk]), actor, reason, {**given, **of_categories})
    return dag


def _unknown_categories(dag: Dag, categories: Collection[str]) -> list[Finding]:
    """Findings for categories that no node has, since a misspelt one would limit nothing."""
    new = set(categories) - dag.category_limits.keys()
    if not new:
        return []
    nodes = Node.objects.filter(dag=dag, category__in=new)
    new -= set(nodes.order_by().values_list("category", flat=True).distinct())
    return [
        Finding("no node of the DAG is of this category", field=f"category {name}")
        for name in sorted(new)
    ]


def refuse_second_run(dag: Dag) -> None:
    """Raise Conflict while another run of the same DAG files goes on in the workspace.

    Locks the workspace, so that of two concurrent runs one is refused.
    """
    Workspace.objects.select_for_update().get(pk=dag.workspace_id)
    running = (
        Dag.objects.filter(workspace=dag.workspace_id, dag_files=dag.dag_files, parent_node=None)
        .exclude(state__in=DAG_TERMINAL)
        .exclude(pk=dag.pk)
        .first()
    )
    if running is not None:
        raise Conflict(f"DAG {running.pk} is a run of the same files, and has not ended.")


def _jobs_held_with(dag_ids: Collection[int]) -> list[int]:
    """Jobs that are held because their DAGs were, not for another cause."""
    held = jobs_of(*dag_ids).filter(state=JobState.HELD, state_cause=JobCause.DAG_HELD)
    return list(held.values_list("pk", flat=True))


def locked_dags(dag_ids: Collection[int], actor: Actor) -> list[Dag]:
    """DAGs that the actor may steer, locked with their inner DAGs in the order of ids.

    Raises NotFound, NotPermitted.
    """
    dags = lock_in_reach(dag_ids, actor)
    require_steering(actor, dags)
    return dags


def lock_in_reach(dag_ids: Collection[int], actor: Actor) -> list[Dag]:
    """DAGs that the actor may see, locked with their inner DAGs in the order of ids.

    Raises NotFound.
    """
    all_ids = {*dag_ids, *inner_dags(list(dag_ids))}
    locked = (
        within_reach(actor, Dag.objects.filter(pk__in=all_ids), Walls.by_group)
        .select_related("site", "owner", "workspace", "accounting_group")
        .order_by("pk")
        .select_for_update(of=("self",))
    )
    dags = [dag for dag in locked if dag.pk in set(dag_ids)]
    missing = sorted(set(dag_ids) - {dag.pk for dag in dags})
    if missing:
        raise NotFound(f"There is no DAG {', '.join(map(str, missing))}.")
    return dags


def _audit(
    action: str,
    applied: Applied,
    actor: Actor,
    reason: str,
    facts: Mapping[str, Any] | None = None,
) -> None:
    targets = [f"DAG {dag_id}" for dag_id in applied.changed]
    record_actions(action, targets=targets, actor=actor, reason=reason, facts=facts)
