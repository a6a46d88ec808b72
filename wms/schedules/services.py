"""Services of schedules: make one, pause, resume and remove, with permission, reason and audit."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from wms.accounting.services import require_group_of_token
from wms.accounting.walls import Walls, within_reach
from wms.core.actors import Actor
from wms.core.audit import record_action, record_actions
from wms.core.errors import Conflict, Finding, InvalidInput, NotFound
from wms.core.models import Role, User
from wms.core.policy import require_role
from wms.core.transitions import Applied
from wms.dags.submission.checking import FaultyDag
from wms.dags.submission.submit import DagSubmission, check_submission, store_files
from wms.jobs.quotas import check_quota
from wms.jobs.uploads.operations import use_uploads
from wms.schedules.cron import next_time, parse_cron, zone_named
from wms.schedules.lifecycle import SCHEDULES
from wms.schedules.models import Schedule, ScheduleFile
from wms.schedules.policy import require_steering
from wms.schedules.states import TERMINAL

MAX_GRACE_S = 7 * 86_400
MAX_KEPT_RUNS = 1000
#: Schedules of one user that have not been removed.
MAX_SCHEDULES = 100
_CONTROL = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ScheduleTerms:
    """When a schedule submits: name, times in cron form, time zone, and what if it is late.

    It submits `grace_s` after a time at the latest. `kept_runs` times are told of afterwards.
    """

    name: str
    cron: str
    time_zone: str = "UTC"
    allows_overlap: bool = False
    grace_s: int = 3600
    kept_runs: int = 100


def create_schedule(
    submission: DagSubmission, terms: ScheduleTerms, *, owner: User, actor: Actor
) -> Schedule:
    """Check and store a DAG with the times at which it is to be submitted.

    It is checked again each time when it is submitted. Raises NotPermitted, QuotaExceeded, Conflict
    for a name that the owner has a schedule of, or for too many schedules, and InvalidInput with
    every fault; then nothing was stored.
    """
    require_role(actor, Role.USER, "make schedules")
    faults = faults_of(terms)
    if submission.idempotency_key is not None:
        faults.append(Finding("a schedule takes none", field="idempotency_key"))
    if faults:
        raise InvalidInput(faults)
    checked = check_submission(submission, owner=owner)
    if checked.findings:
        raise FaultyDag(checked)
    blobs = store_files(submission)
    with transaction.atomic():
        # Two that are made at once are counted one after the other.
        User.objects.select_for_update(no_key=True).get(pk=owner.pk)
        theirs = Schedule.objects.filter(owner=owner).exclude(state__in=TERMINAL)
        if theirs.count() >= MAX_SCHEDULES:
            raise Conflict(f"{owner} has {MAX_SCHEDULES} schedules, which is the most.")
        group = checked.description.group
        # Only the room for its files: its DAGs are counted when they are submitted.
        size_bytes = sum(blob.size_bytes for blob in blobs.values())
        use_uploads(submission.files.values(), owner=owner, now=timezone.now())
        require_group_of_token(owner, has_group=group is not None)
        check_quota(owner=owner, group=group, jobs=0, clusters=0, size_bytes=size_bytes)
        schedule = _store(submission, terms, owner=owner, group=group)
        ScheduleFile.objects.bulk_create(
            ScheduleFile(schedule=schedule, path=path, blob=blob) for path, blob in blobs.items()
        )
        record_action(
            "make schedule",
            target=f"schedule {schedule.pk}",
            actor=actor,
            facts={"name": terms.name, "cron": terms.cron, "time_zone": terms.time_zone},
        )
    return schedule


def _store(submission: DagSubmission, terms: ScheduleTerms, *, owner: User, group: Any) -> Schedule:
    next_at = next_time(parse_cron(terms.cron), zone_named(terms.time_zone), timezone.now())
    try:
        with transaction.atomic():
            return Schedule.objects.create(
                name=terms.name,
                owner=owner,
                limited_to=owner.limited_to,
                accounting_group=group,
                cron=" ".join(terms.cron.split()),
                time_zone=terms.time_zone,
                allows_overlap=terms.allows_overlap,
                grace_s=terms.grace_s,
                kept_runs=terms.kept_runs,
                dag_files=submission.dag_files,
                description_name=submission.description_name,
                directory=submission.origin.directory,
                root_path=submission.origin.root,
                uses_dag_dir=submission.origin.uses_dag_dir,
                options=dict(submission.options),
                binding=submission.binding,
                labels=list(submission.labels),
                priority=submission.priority,
                next_at=next_at,
            )
    except IntegrityError as error:
        raise Conflict(f"{owner} has a schedule {terms.name!r} already.") from error


def faults_of(terms: ScheduleTerms) -> list[Finding]:
    """Faults of the terms of a schedule, by field."""
    faults = []
    if not 1 <= len(terms.name) <= 128 or _CONTROL.search(terms.name) or not terms.name.strip():
        faults.append(Finding("must be a text of 1 to 128 characters", field="name"))
    for field, check, value in (
        ("cron", parse_cron, terms.cron), ("time_zone", zone_named, terms.time_zone),
    ):  # fmt: skip
        try:
            check(value)
        except ValueError as error:
            faults.append(Finding(str(error), field=field))
    for field, number, least, most in (
        ("grace_s", terms.grace_s, 60, MAX_GRACE_S),
        ("kept_runs", terms.kept_runs, 1, MAX_KEPT_RUNS),
    ):
        if not least <= number <= most:
            faults.append(Finding(f"must be from {least} to {most}", field=field))
    return faults


@transaction.atomic
def pause_schedules(ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """Pause schedules: no DAG is submitted until they are resumed. DAGs that run go on.

    Those that cannot be paused are skipped. Raises NotFound, NotPermitted, ReasonRequired.
    """
    return _moved("pause", ids, actor=actor, reason=reason, next_at=None)


@transaction.atomic
def resume_schedules(ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """Resume paused schedules from their next times on; those meanwhile were not missed.

    Raises NotFound, NotPermitted, ReasonRequired.
    """
    applied = _moved("resume", ids, actor=actor, reason=reason)
    now = timezone.now()
    for schedule in Schedule.objects.filter(pk__in=applied.changed).order_by("pk"):
        schedule.next_at = next_time(parse_cron(schedule.cron), zone_named(schedule.time_zone), now)
        schedule.save(update_fields=["next_at"])
    return applied


@transaction.atomic
def remove_schedules(ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """Remove schedules for good, and their files. DAGs that they have submitted go on.

    Raises NotFound, NotPermitted, ReasonRequired.
    """
    applied = _moved("remove", ids, actor=actor, reason=reason, next_at=None)
    ScheduleFile.objects.filter(schedule__in=applied.changed).delete()
    return applied


def _moved(
    event: str, ids: Collection[int], *, actor: Actor, reason: str, **changes: Any
) -> Applied:
    schedules = locked_schedules(ids, actor)
    applied, _ = SCHEDULES.apply(
        event, [each.pk for each in schedules], actor=actor, reason=reason.strip(), **changes
    )
    targets = [f"schedule {pk}" for pk in applied.changed]
    record_actions(f"{event} schedule", targets=targets, actor=actor, reason=reason)
    return applied


def locked_schedules(ids: Collection[int], actor: Actor) -> list[Schedule]:
    """The schedules, locked in the order of their ids. Raises NotFound and NotPermitted."""
    named = within_reach(actor, Schedule.objects.filter(pk__in=ids), Walls.by_group)
    schedules = list(named.order_by("pk").select_for_update(of=("self",)))
    missing = sorted(set(ids) - {each.pk for each in schedules})
    if missing:
        raise NotFound(f"There is no schedule {', '.join(map(str, missing))}.")
    require_steering(actor, schedules)
    return schedules
