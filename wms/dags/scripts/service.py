"""The record of script runs: who takes one, that it lives, and its one end.

A run that was granted is taken by whoever asks first, under a lease. From its start on it is run
nowhere else: if its service is lost, it ends without a code of its own.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import Q, QuerySet

from wms.core.inbox import announce
from wms.core.models import InboxEntry
from wms.dags.engine.decisions import JOB_REMOVED, NO_CODE
from wms.dags.lifecycle import SCRIPT_TOPIC
from wms.dags.models import ScriptRun
from wms.dags.scripts.publishing import NO_CHANGES, Changes, publish
from wms.dags.states import ScriptState
from wms.jobs.content.blobs import store_bytes

#: The task that runs what is granted.
SCRIPTS_TASK: Final = "wms.dags.scripts.run"
#: So long a service that is not heard of keeps its runs.
LEASE: Final = timedelta(seconds=60)

_UNDER_WAY = (ScriptState.GRANTED, ScriptState.RUNNING)
_BATCH = 1000


@dataclass(frozen=True, slots=True)
class Taken:
    """A run in the hands of who knows its lease."""

    run_id: int
    lease: str


def _free(now: datetime) -> QuerySet[ScriptRun]:
    """Granted runs that nobody has, the longest granted first."""
    return ScriptRun.objects.filter(
        Q(due_at=None) | Q(due_at__lte=now),
        Q(lease_until=None) | Q(lease_until__lt=now),
        state=ScriptState.GRANTED,
    ).order_by("pk")


def has_free_runs(now: datetime) -> bool:
    """Tell whether a run waits for a service."""
    return _free(now).exists()


@transaction.atomic
def take_run(now: datetime) -> Taken | None:
    """Take the next granted run; those that others are just taking are passed over."""
    run_id = _free(now).select_for_update(skip_locked=True).values_list("pk", flat=True).first()
    if run_id is None:
        return None
    lease = secrets.token_hex(16)
    ScriptRun.objects.filter(pk=run_id).update(lease=lease, lease_until=now + LEASE)
    return Taken(run_id, lease)


def start_run(run_id: int, lease: str, *, now: datetime) -> bool:
    """Say that the script is about to start; False when it must not, since the run has ended."""
    return bool(
        ScriptRun.objects.filter(pk=run_id, lease=lease, state=ScriptState.GRANTED).update(
            state=ScriptState.RUNNING, started_at=now, lease_until=now + LEASE
        )
    )


def renew_lease(run_id: int, lease: str, *, now: datetime) -> bool:
    """Say that the service lives; False when the run was ended by others and has to stop."""
    return bool(
        ScriptRun.objects.filter(pk=run_id, lease=lease, state__in=_UNDER_WAY).update(
            lease_until=now + LEASE
        )
    )


def end_run(
    run_id: int,
    lease: str,
    *,
    exit_code: int,
    failure: str = "",
    output: bytes = b"",
    now: datetime,
    changes: Changes = NO_CHANGES,
) -> bool:
    """Write the end of a run, and with it its files; the only way to end one that was taken.

    True when this was the end; False when it had ended before or belongs to another lease, and then
    nothing changes. The engine hears of it by an entry in its inbox.
    """
    blob = store_bytes(output) if output else None
    with transaction.atomic():
        run = (
            ScriptRun.objects.select_for_update(of=("self",))
            .filter(pk=run_id, lease=lease, state__in=_UNDER_WAY)
            .select_related("dag")
            .first()
        )
        if run is None:
            return False
        publish(run.dag.workspace_id, changes, now=now)
        _end([run], exit_code=exit_code, failure=failure, now=now, output=blob)
        _announce([run])
    return True


@transaction.atomic
def cancel_runs(
    dag_id: int | None = None,
    *,
    run_ids: Collection[int] = (),
    reason: str,
    now: datetime,
    is_announced: bool = False,
) -> list[int]:
    """End all runs of a DAG, or those of these ids, that have not ended; return their ids.

    A process that runs is stopped with the next sign of life of its service, within seconds, and
    its files do not count. The engine is told only if `is_announced`: who calls this knows.
    """
    chosen = Q(pk__in=run_ids) if dag_id is None else Q(dag_id=dag_id)
    runs = list(
        ScriptRun.objects.filter(chosen)
        .exclude(state=ScriptState.ENDED)
        .order_by("pk")
        .select_for_update()
    )
    _end(runs, exit_code=JOB_REMOVED, failure=reason, now=now)
    if is_announced:
        _announce(runs)
    return [run.pk for run in runs]


@transaction.atomic
def end_lost_runs(now: datetime) -> list[int]:
    """End the runs that had been started by services which are not heard of; return their ids.

    They are not started again: nobody knows how far they came.
    """
    runs = list(
        ScriptRun.objects.filter(state=ScriptState.RUNNING, lease_until__lt=now)
        .order_by("pk")
        .select_for_update(skip_locked=True)[:_BATCH]
    )
    _end(
        runs,
        exit_code=NO_CODE,
        failure="The service that ran the script was lost; how far it came is not known.",
        now=now,
    )
    _announce(runs)
    return [run.pk for run in runs]


def _end(
    runs: Collection[ScriptRun], *, exit_code: int, failure: str, now: datetime, **more: object
) -> None:
    ScriptRun.objects.filter(pk__in=[run.pk for run in runs]).update(
        state=ScriptState.ENDED, exit_code=exit_code, failure=failure, ended_at=now, **more
    )


def _announce(runs: Collection[ScriptRun]) -> None:
    kind = InboxEntry.Kind.SCRIPT_RUN
    announce(
        InboxEntry(topic=SCRIPT_TOPIC, key=run.dag_id, kind=kind, subject_id=run.pk) for run in runs
    )
