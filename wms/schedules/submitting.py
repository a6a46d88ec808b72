"""Control loop that submits the DAGs of schedules at their times, each once.

A time is dealt with in one transaction: the DAG, its record and the next time of the schedule are
stored together or not at all, so that a process that is killed has submitted it or has not. Any
number of processes take schedules that no other one has locked.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, BinaryIO

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.db import InterfaceError, OperationalError, transaction

from wms.core.actors import Actor
from wms.core.errors import PilotageError
from wms.core.inbox import announce
from wms.core.models import InboxEntry
from wms.dags.language.origin import Origin
from wms.dags.models import Dag
from wms.dags.states import DAG_TERMINAL
from wms.dags.submission.checking import read_text
from wms.dags.submission.submit import DagSubmission, submit_dag
from wms.jobs.content.blobs import known_content
from wms.schedules.cron import next_time, next_times, parse_cron, zone_named
from wms.schedules.lifecycle import NEWS_TOPIC
from wms.schedules.models import Schedule, ScheduleRun
from wms.schedules.selectors import unfinished_dags
from wms.schedules.states import TOLD, RunOutcome, ScheduleState

log = structlog.get_logger(__name__)

#: Schedules that one cycle takes.
_MOST = 100
#: Times that were missed and are recorded one by one; of more, the latest.
_MISSED_KEPT = 20
#: A due time is looked for among so many; longer ago, all are missed at once.
_MISSED_LOOKED_AT = 2_000
_NOT_ITS_FAULT = (SoftTimeLimitExceeded, OperationalError, InterfaceError)


def run_cycle(now: datetime) -> dict[str, Any]:
    """Deal with the schedules that are due, the longest due first."""
    submitted = taken = 0
    passed: list[int] = []
    while taken < _MOST:
        pk = _due(now, passed)
        if pk is None:
            break
        taken += 1
        passed.append(pk)
        try:
            submitted += serve(pk, now)
        except _NOT_ITS_FAULT:
            raise
        except Exception:
            log.exception("schedule_not_served", schedule=pk)
            _give_up(pk, now)
    return {"due": taken, "submitted": submitted}


def _due(now: datetime, passed: list[int]) -> int | None:
    due = Schedule.objects.filter(next_at__lte=now).exclude(pk__in=passed)
    return due.order_by("next_at", "pk").values_list("pk", flat=True).first()


@transaction.atomic
def serve(schedule_id: int, now: datetime) -> int:
    """Deal with the times of a schedule that have come; the number of DAGs that were submitted.

    Nothing is done where another process has it, or has dealt with it.
    """
    schedule = _locked(schedule_id, now)
    if schedule is None:
        return 0
    *missed, latest = _times_come(schedule, now)
    for planned in missed[-_MISSED_KEPT:]:
        record_run(schedule, planned, RunOutcome.MISSED, now, reason=_too_late(now))
    run = _run(schedule, latest, now)
    _advance(schedule, now)
    forget_old_runs(schedule)
    return int(run.outcome == RunOutcome.SUBMITTED)


@transaction.atomic
def _give_up(schedule_id: int, now: datetime) -> None:
    """Record that a time could not be dealt with, so that it holds up neither others nor itself."""
    schedule = _locked(schedule_id, now)
    if schedule is None:
        return
    *_, latest = _times_come(schedule, now)
    reason = "an error of the portal; see its log"
    record_run(schedule, latest, RunOutcome.FAILED, now, reason=reason)
    _advance(schedule, now)


def _locked(schedule_id: int, now: datetime) -> Schedule | None:
    due = Schedule.objects.filter(pk=schedule_id, state=ScheduleState.ACTIVE, next_at__lte=now)
    rows = due.select_related("owner").select_for_update(of=("self",), skip_locked=True)
    return rows.first()


def _times_come(schedule: Schedule, now: datetime) -> list[datetime]:
    """Times from the next one up to now, the latest last; of very many the latest."""
    assert schedule.next_at is not None
    cron, zone = parse_cron(schedule.cron), zone_named(schedule.time_zone)
    times = [schedule.next_at]
    for at in next_times(cron, zone, schedule.next_at):
        if at > now:
            return times
        times.append(at)
        if len(times) >= _MISSED_LOOKED_AT:
            break
    return [*times, *_latest_before(schedule, now)]


def _latest_before(schedule: Schedule, now: datetime) -> Iterator[datetime]:
    """Times within the grace before now, where there are too many to look at all."""
    cron, zone = parse_cron(schedule.cron), zone_named(schedule.time_zone)
    for at in next_times(cron, zone, now - timedelta(seconds=schedule.grace_s)):
        if at > now:
            return
        yield at


def _run(schedule: Schedule, planned: datetime, now: datetime) -> ScheduleRun:
    if now - planned > timedelta(seconds=schedule.grace_s):
        return record_run(schedule, planned, RunOutcome.MISSED, now, reason=_too_late(now))
    before = unfinished_dags(schedule).first()
    if before is not None and not schedule.allows_overlap:
        reason = f"DAG {before.pk} of the time before is {before.state}"
        return record_run(schedule, planned, RunOutcome.OVERLAP, now, reason=reason)
    try:
        with transaction.atomic():
            dag = submit_dag_of(schedule)
    except PilotageError as error:
        return record_run(schedule, planned, RunOutcome.FAILED, now, reason=str(error)[:4000])
    return record_run(schedule, planned, RunOutcome.SUBMITTED, now, dag=dag)


def _too_late(now: datetime) -> str:
    return f"it was looked at only at {now.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def submit_dag_of(schedule: Schedule) -> Dag:
    """Submit the DAG in the name of the owner. Raises the errors of a submission."""
    files: dict[str, BinaryIO] = {
        each.path: known_content(each.blob) for each in schedule.files.select_related("blob")
    }
    first, *others = schedule.dag_files
    description = ""
    if schedule.description_name:
        description, _ = read_text(files[schedule.description_name], file=schedule.description_name)
    text = files[first].read().decode(errors="surrogateescape")
    own = {first, schedule.description_name}
    submission = DagSubmission(
        dag_name=first,
        dag_text=text,
        files={path: content for path, content in files.items() if path not in own},
        description_text=description,
        description_name=schedule.description_name,
        more_dags=tuple(others),
        origin=Origin(schedule.directory, schedule.root_path, schedule.uses_dag_dir),
        options=schedule.options,
        binding=schedule.binding,
        labels=tuple(schedule.labels),
        priority=schedule.priority,
    )
    owner = schedule.owner.within(schedule.limited_to)
    return submit_dag(submission, owner=owner, actor=Actor.person(owner))


def record_run(
    schedule: Schedule,
    planned: datetime,
    outcome: RunOutcome,
    now: datetime,
    *,
    dag: Dag | None = None,
    reason: str = "",
    asked_by: str = "",
) -> ScheduleRun:
    """Record what became of a time; the owner is told of what was not submitted as planned."""
    run = ScheduleRun.objects.create(
        schedule=schedule,
        planned_at=planned,
        outcome=outcome,
        dag=dag,
        reason=reason,
        asked_by=asked_by,
        created_at=now,
    )
    if outcome in TOLD:
        announce(
            [
                InboxEntry(
                    topic=NEWS_TOPIC,
                    key=schedule.pk,
                    kind=InboxEntry.Kind.SCHEDULE_RUN,
                    subject_id=run.pk,
                )
            ]
        )
    return run


def _advance(schedule: Schedule, now: datetime) -> None:
    cron, zone = parse_cron(schedule.cron), zone_named(schedule.time_zone)
    schedule.next_at = next_time(cron, zone, now)
    schedule.save(update_fields=["next_at"])


def forget_old_runs(schedule: Schedule) -> None:
    """Forget records of times beyond those that are kept; DAGs that have not ended stay known."""
    old = schedule.runs.order_by("-planned_at").values("pk")[schedule.kept_runs :]
    kept = Dag.objects.exclude(state__in=DAG_TERMINAL)
    schedule.runs.filter(pk__in=list(old.values_list("pk", flat=True))).exclude(
        dag__in=kept.filter(schedule_runs__schedule=schedule)
    ).delete()
