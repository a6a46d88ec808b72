"""Rows of script runs for the script service: lease, heartbeat, end, cancellation, lost runs.

A granted run is taken by the first service that asks, under a lease. After its start it is run
nowhere else: if its service is lost, it ends without a code of its own. What a script changed in
its workspace is stored with its end, which is announced to the engine.
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
from wms.dags.engine.settling.decisions import JOB_REMOVED, NO_CODE
from wms.dags.lifecycle import SCRIPT_TOPIC
from wms.dags.models import ScriptRun
from wms.dags.scripts.publishing import NO_CHANGES, Changes, publish
from wms.dags.states import ScriptState
from wms.jobs.content.blobs import store_bytes

#: The task that runs what is granted.
SCRIPTS_TASK: Final = "wms.dags.scripts.run"
#: Lease of a run without a heartbeat.
LEASE: Final = timedelta(seconds=60)

_UNDER_WAY = (ScriptState.GRANTED, ScriptState.RUNNING)
_BATCH = 1000


@dataclass(frozen=True, slots=True)
class LeasedRun:
    """A run and the lease of the service that has taken it."""

    run_id: int
    lease: str


def _available_runs(now: datetime, dag_ids: Collection[int] | None) -> QuerySet[ScriptRun]:
    """Granted runs without a lease, the longest granted first; of all DAGs, or of these."""
    available = ScriptRun.objects.filter(
        Q(due_at=None) | Q(due_at__lte=now),
        Q(lease_until=None) | Q(lease_until__lt=now),
        state=ScriptState.GRANTED,
    ).order_by("pk")
    return available if dag_ids is None else available.filter(dag_id__in=dag_ids)


def has_free_runs(now: datetime, dag_ids: Collection[int] | None = None) -> bool:
    """Whether a run waits for a service: of all DAGs, or of these."""
    return _available_runs(now, dag_ids).exists()


@transaction.atomic
def take_run(now: datetime, dag_ids: Collection[int] | None = None) -> LeasedRun | None:
    """Lease the next granted run, of all DAGs or of these; rows that are locked are skipped."""
    run_id = (
        _available_runs(now, dag_ids)
        .select_for_update(skip_locked=True)
        .values_list("pk", flat=True)
        .first()
    )
    if run_id is None:
        return None
    lease = secrets.token_hex(16)
    ScriptRun.objects.filter(pk=run_id).update(lease=lease, lease_until=now + LEASE)
    return LeasedRun(run_id, lease)


def start_run(run_id: int, lease: str, *, now: datetime) -> bool:
    """Mark the run as started; False when it has ended and must not start."""
    return bool(
        ScriptRun.objects.filter(pk=run_id, lease=lease, state=ScriptState.GRANTED).update(
            state=ScriptState.RUNNING, started_at=now, lease_until=now + LEASE
        )
    )


def renew_lease(run_id: int, lease: str, *, now: datetime) -> bool:
    """Renew the lease; False when the run was ended by others and has to stop."""
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
    """Record the end of a run by the holder of its lease, together with the files that it left.

    True when this was the end; False when it had ended before or belongs to another lease, and then
    nothing changes. The engine gets an entry in its inbox.
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

    A running process is stopped with the next heartbeat of its service, within seconds, and its
    files do not count. The engine is notified only if `is_announced`; else the caller handles it.
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
    """End runs whose service has lost its lease; return their ids.

    They are not started again, because nobody knows how far they came.
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
