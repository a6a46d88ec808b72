"""Operations on trials: take, renew, end, find lost ones, forget old ones.

Any number of workers take trials side by side. A worker holds its trial by a lease; whoever is
killed loses it, and another one begins it anew. Time is always an argument.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction

from wms.core.actors import Actor
from wms.core.database.locks import wait_for_locks
from wms.dags.models import Trial
from wms.dags.trials.archives import remove_archives
from wms.dags.trials.lifecycle import TRIALS
from wms.dags.trials.states import ACTIVE, TrialState

#: So long a worker that is not heard of keeps its trial.
LEASE: Final = timedelta(seconds=60)
#: Trials that run at once in the installation: each may keep a processor busy.
MAX_RUNNING: Final = 2
#: A trial that was lost so often is given up: it may be what ends its workers.
MAX_ATTEMPTS: Final = 3
#: So long reports are kept.
KEPT_FOR: Final = timedelta(days=7)

_ACTOR = Actor.system("dag-trials")
_BATCH = 500


@dataclass(frozen=True, slots=True)
class Taken:
    """A trial that a worker has begun, with its lease."""

    trial_id: int
    kind: str
    request: Mapping[str, Any]
    archive: str
    lease: str


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a dry run: nodes of the DAG, and how many of them have ended."""

    node_count: int = 0
    ended_count: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """Answer of the tool: what its command would print, as JSON text and for people."""

    exit_code: int
    report: str
    text: str


@transaction.atomic
def take_trial(now: datetime) -> Taken | None:
    """Begin the trial that waits longest; None when none waits, or enough are running."""
    waiting = Trial.objects.filter(state=TrialState.WAITING).order_by("pk")
    if not waiting.exists():
        return None
    # Two that count at once would both find a place.
    wait_for_locks(["places of DAG trials"])
    if Trial.objects.filter(state=TrialState.RUNNING).count() >= MAX_RUNNING:
        return None
    trial = waiting.select_for_update(skip_locked=True).first()
    if trial is None:
        return None
    lease = secrets.token_hex(16)
    TRIALS.apply(
        "start", [trial.pk], actor=_ACTOR, lease=lease, lease_until=now + LEASE, started_at=now,
        attempt_number=trial.attempt_number + 1, node_count=0, ended_count=0,
    )  # fmt: skip
    return Taken(trial.pk, trial.kind, trial.request, trial.archive, lease)


def renew_lease(taken: Taken, progress: Progress, *, now: datetime) -> bool:
    """Renew the lease and tell the progress; False when the trial was stopped or lost."""
    held = Trial.objects.filter(pk=taken.trial_id, lease=taken.lease, state=TrialState.RUNNING)
    return bool(
        held.update(
            lease_until=now + LEASE,
            node_count=progress.node_count,
            ended_count=progress.ended_count,
        )
    )


@transaction.atomic
def end_trial(taken: Taken, report: Report | None, *, reason: str = "", now: datetime) -> bool:
    """End a trial with its report, or as failed with the reason; its files are removed.

    False when another worker has it, or it was stopped; nothing changes then.
    """
    held = Trial.objects.filter(
        pk=taken.trial_id, lease=taken.lease, state=TrialState.RUNNING
    ).select_for_update()
    if held.first() is None:
        return False
    if report is None:
        TRIALS.apply("fail", [taken.trial_id], actor=_ACTOR, reason=reason, ended_at=now, lease="")
    else:
        TRIALS.apply(
            "finish", [taken.trial_id], actor=_ACTOR, ended_at=now, lease="", text=report.text,
            report=report.report, exit_code=report.exit_code,
        )  # fmt: skip
    transaction.on_commit(lambda: remove_archives([taken.archive]))
    return True


@transaction.atomic
def end_lost_trials(now: datetime) -> int:
    """Have trials whose leases have expired begun anew, or give them up; their number."""
    expired = Trial.objects.filter(state=TrialState.RUNNING, lease_until__lt=now)
    lost = list(expired.order_by("pk").select_for_update(skip_locked=True)[:_BATCH])
    why = "the worker that was at it was lost"
    again = [trial.pk for trial in lost if trial.attempt_number < MAX_ATTEMPTS]
    TRIALS.apply("lose", again, actor=_ACTOR, reason=why, lease="", lease_until=None)
    over = [trial for trial in lost if trial.attempt_number >= MAX_ATTEMPTS]
    reason = f"{why}, for the {MAX_ATTEMPTS}rd time"
    TRIALS.apply(
        "fail", [trial.pk for trial in over], actor=_ACTOR, reason=reason, ended_at=now, lease=""
    )
    transaction.on_commit(lambda: remove_archives([trial.archive for trial in over]))
    return len(lost)


def waiting_trials() -> bool:
    """Whether a trial waits for a worker."""
    return Trial.objects.filter(state=TrialState.WAITING).exists()


def active_archives() -> set[str]:
    """Names of the archives that are needed."""
    return set(Trial.objects.filter(state__in=ACTIVE).values_list("archive", flat=True))


def active_leases() -> set[str]:
    """Leases of the trials that run."""
    running = Trial.objects.filter(state=TrialState.RUNNING)
    return set(running.values_list("lease", flat=True))


@transaction.atomic
def forget_trials(now: datetime) -> int:
    """Delete trials that ended long ago; their number."""
    old = Trial.objects.filter(ended_at__lt=now - KEPT_FOR).order_by("ended_at")
    ids = list(old.select_for_update(skip_locked=True).values_list("pk", flat=True)[:_BATCH])
    Trial.objects.filter(pk__in=ids).delete()
    return len(ids)
