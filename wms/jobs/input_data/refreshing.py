"""Refreshing of sets of inputs: changes are told to sets, sets resolved, waiting jobs moved.

Each step takes a bounded number of rows that no other process has locked, in a transaction of its
own, and can be repeated: whoever is killed has done a batch or has not begun it. Sets are locked
while they are resolved, and jobs are moved after that commit: a job that joins a TaskQueue holds
its set, so each one either sees the new sites or is found waiting by the old version.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any, Final

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Now

from wms.jobs.input_data.changes import note_sets
from wms.jobs.input_data.sets import columns_of, wants_of
from wms.jobs.input_data.sleeping import put_to_sleep, wake
from wms.jobs.input_data.wanted import locate
from wms.jobs.models import InputChange, InputSet, ResolvedSet
from wms.jobs.operations import move_waiting
from wms.taskqueues.models import WaitingJob

#: Changes that are told at once, and sets that are told of them.
_TOLD_AT_ONCE: Final = 200
_SETS_TOLD: Final = 2000
_RESOLVED_AT_ONCE: Final = 500
#: Names of sets that are resolved at once: those of a few DAGs, or of very many jobs.
_NAMES_AT_ONCE: Final = 20_000
_MOVED_AT_ONCE: Final = 1000
_REMOVED_AT_ONCE: Final = 1000
#: Sets that jobs wait by or open DAGs name are resolved so often without any change, and others
#: removed or put to sleep: who may see a file is told by no change.
RENEWED_AFTER: Final = timedelta(hours=1)
_RENEWED_AT_ONCE: Final = 200
#: A cycle leaves the rest to the next one after so long.
_CYCLE_S: Final = 20.0
#: Columns that change when a set is resolved.
TAKEN_OVER: Final = ("sites", "cause", "told", "tenths", "version", "is_moving")
#: Counts of a report that tell of news, and not of upkeep.
DEEDS: Final = ("told", "resolved", "moved")


def run_cycle(now: datetime, *, limit_s: float = _CYCLE_S) -> dict[str, int]:
    """Follow the changes that have been noted, renew old sets, and remove unused ones."""
    until_s = time.monotonic() + limit_s
    told = _repeat(tell_sets, until_s)
    resolved = _repeat(resolve_sets, until_s)
    moved = _repeat(move_jobs, until_s)
    removed = remove_unused(now)
    return {"told": told, "resolved": resolved, "moved": moved, "removed": removed,
            "renewed": renew_old(now)}  # fmt: skip


def _repeat(step: Callable[[], int], until_s: float) -> int:
    total = 0
    while (done := step()) and time.monotonic() < until_s:
        total += done
    return total + done


@transaction.atomic
def tell_sets() -> int:
    """Tell sets of changes of files and storages, those first that were noted first; how many.

    A change of which many sets have to hear is told to some of them, and goes on behind these.
    """
    waiting = InputChange.objects.filter(input_set_id=None).order_by("pk")
    changes = list(waiting.select_for_update(skip_locked=True)[:_TOLD_AT_ONCE])
    if not changes:
        return 0
    # Those of the same kind, and as far, are told at once.
    first = changes[0]
    alike = [
        each
        for each in changes
        if bool(each.name) == bool(first.name) and each.after == first.after
    ]
    concerned = InputSet.objects.filter(is_asleep=False, pk__gt=first.after).order_by("pk")
    if first.name:
        concerned = concerned.filter(names__overlap=[each.name for each in alike])
    set_ids = list(concerned.values_list("pk", flat=True)[:_SETS_TOLD])
    told = InputChange.objects.filter(pk__in=[each.pk for each in alike])
    if len(set_ids) < _SETS_TOLD:
        told.delete()
    else:
        told.update(after=set_ids[-1])
    note_sets(set_ids)
    return len(alike)


@transaction.atomic
def resolve_sets() -> int:
    """Resolve sets that were told to; how many changes that were. Jobs are moved afterwards.

    A set of DAGs that have all ended is put to sleep instead.
    """
    noted = InputChange.objects.filter(input_set_id__isnull=False).order_by("pk")
    rows = list(noted.values_list("pk", "input_set_id")[:_RESOLVED_AT_ONCE])
    if not rows:
        return 0
    noted_ids = {set_id for _, set_id in rows if set_id is not None}
    sets = InputSet.objects.filter(pk__in=noted_ids).order_by("pk")
    # Those that a job joins by at this moment are left for the next time.
    free = sets.select_for_update(skip_locked=True).values_list("pk", "name_count")
    locked = _first_of(list(free))
    there = set(sets.values_list("pk", flat=True))
    kept = locked - put_to_sleep(locked)
    wake(kept)
    # Read under the lock: what was noted before it is followed by this.
    resolved = list(sets.filter(pk__in=kept).select_related("owner"))
    found = zip(resolved, map(columns_of, locate(wants_of(resolved))), strict=True)
    changed = [each for each, columns in found if take_over(each, columns)]
    InputSet.objects.bulk_update(changed, TAKEN_OVER, batch_size=500)
    ResolvedSet.objects.bulk_create(
        [ResolvedSet(input_set=each, resolved_at=Now()) for each in resolved],
        update_conflicts=True,
        unique_fields=["input_set"],
        update_fields=["resolved_at"],
    )
    left = there - locked
    done = [pk for pk, set_id in rows if set_id not in left]
    InputChange.objects.filter(pk__in=done).delete()
    return len(done)


def _first_of(counted: Sequence[tuple[int, int]]) -> set[int]:
    """The first of these sets, each with its number of names, that have so many names together as
    are resolved at once; one at least.
    """
    before = accumulate((count for _, count in counted), initial=0)
    return {pk for (pk, _), names in zip(counted, before, strict=False) if names < _NAMES_AT_ONCE}


def take_over(row: InputSet, columns: Mapping[str, Any]) -> bool:
    """Give a locked set these columns, and a version by which waiting jobs follow; whether any is
    another one than before.
    """
    if all(getattr(row, name) == value for name, value in columns.items()):
        return False
    if row.sites != columns["sites"]:
        row.version += 1
        row.is_moving = not row.is_of_dag
    for name, value in columns.items():
        setattr(row, name, value)
    return True


def move_jobs() -> int:
    """Move jobs that wait by earlier versions of their sets; how many.

    Those that a claim or a hold has at this moment are left: they wait no longer, or for the next
    time.
    """
    moving = InputSet.objects.filter(is_moving=True).order_by("pk")
    set_ids = list(moving.values_list("pk", flat=True)[:_RESOLVED_AT_ONCE])
    if not set_ids:
        return 0
    jobs = _outdated(set_ids).order_by("job_id").values_list("job_id", flat=True)
    found = list(jobs[:_MOVED_AT_ONCE])
    left = 0
    if found:
        with transaction.atomic():
            move_waiting(found)
        left = _outdated(set_ids).filter(job_id__in=found).count()
    _settle(set_ids)
    return len(found) - left


@transaction.atomic
def _settle(set_ids: Sequence[int]) -> None:
    """Note of these sets that no job of an earlier version waits any more, where that is so.

    The look is under the lock, in a statement of its own: a set may have got another version while
    jobs were moved, for which one statement that waited for that would not look. Sets that are
    being resolved or joined by at this moment are left for the next time.
    """
    moving = InputSet.objects.filter(pk__in=set_ids, is_moving=True).order_by("pk")
    locked = list(moving.select_for_update(skip_locked=True).values_list("pk", flat=True))
    still = _outdated(locked).filter(input_set_id=OuterRef("pk"))
    InputSet.objects.filter(pk__in=locked).exclude(Exists(still)).update(is_moving=False)


def _outdated(set_ids: Sequence[int]) -> QuerySet[WaitingJob]:
    """Jobs that wait by another version of one of these sets than there is now."""
    current = InputSet.objects.filter(
        pk=OuterRef("input_set_id"), version=OuterRef("input_version")
    )
    return WaitingJob.objects.filter(input_set_id__in=set_ids).exclude(Exists(current))


def renew_old(now: datetime) -> int:
    """Have sets resolved that were not for long; how many."""
    old = ResolvedSet.objects.filter(resolved_at__lt=now - RENEWED_AFTER).order_by("resolved_at")
    asked = InputChange.objects.filter(input_set_id=OuterRef("pk"))
    set_ids = list(old.exclude(Exists(asked)).values_list("pk", flat=True)[:_RENEWED_AT_ONCE])
    note_sets(set_ids)
    return len(set_ids)


@transaction.atomic
def remove_unused(now: datetime) -> int:
    """Delete sets of jobs of which none waits by them any more; how many.

    The second look is under the lock, which a job that joins by a set would have.
    """
    used = WaitingJob.objects.filter(input_set_id=OuterRef("pk"))
    of_jobs = InputSet.objects.filter(is_of_dag=False)
    old = of_jobs.filter(resolution__resolved_at__lt=now - RENEWED_AFTER)
    unused = old.exclude(Exists(used)).order_by("resolution__resolved_at")
    free = unused.select_for_update(skip_locked=True, of=("self",)).values_list("pk", flat=True)
    locked = list(free[:_REMOVED_AT_ONCE])
    if not locked:
        return 0
    removed, _ = InputSet.objects.filter(pk__in=locked).exclude(Exists(used)).delete()
    return removed
