"""Conditions that begin and end without an event (downtimes, stale loops, ends of credentials).

They are for notices. A condition is stored in the transaction that makes its notices, so that each
is sent once.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q

from wms.core.selectors import LoopHealth, LoopStatus, loop_statuses
from wms.notices.credential_ends import ends_of_credentials
from wms.notices.models import Condition, Notice, Rule, SubjectKind
from wms.notices.occurrences import Audience, Occurrence, Subject
from wms.sites.downtimes.models import Downtime

#: A loop that is well again within this time was not worth a word.
PATIENCE = timedelta(seconds=30)
#: Conditions that ended longer ago make no notices any more.
_NEWS = timedelta(days=1)
_KEPT = timedelta(days=3)
_KIND = Notice.Kind


def occurrences_by_clock(now: datetime) -> list[Occurrence]:
    """Conditions that began or ended since the last call; the caller has opened a transaction."""
    return _downtimes(now) + _loops(now) + ends_of_credentials(now)


def _downtimes(now: datetime) -> list[Occurrence]:
    known = {
        int(each.subject): each
        for each in Condition.objects.select_for_update().filter(kind=Condition.Kind.DOWNTIME)
    }
    going_on = [pk for pk, each in known.items() if each.ended_at is None]
    lately = Q(start__lte=now, end__gt=now - _NEWS)
    rows = Downtime.objects.filter(lately | Q(pk__in=going_on)).select_related("site")
    occurrences: list[Occurrence] = []
    for row in rows.order_by("pk"):
        occurrences += _occurrence_of(row, row.site.name, known.get(row.pk), now)
    old = Condition.objects.filter(kind=Condition.Kind.DOWNTIME, ended_at__lt=now - _KEPT)
    old.delete()
    return occurrences


def _occurrence_of(
    row: Downtime, site: str, known: Condition | None, now: datetime
) -> list[Occurrence]:
    ended = _end_of(row)
    if known is None:
        # It was cancelled before it began, or so long ago that it was announced and removed.
        if ended <= row.start or ended <= now - _NEWS:
            return []
        Condition.objects.create(
            kind=Condition.Kind.DOWNTIME, subject=str(row.pk), since=row.start, told_at=now,
            ended_at=ended if ended <= now else None,
        )  # fmt: skip
        return [_of_downtime(row, site, "begun")] if ended > now else []
    if known.ended_at is not None or ended > now:
        return []
    Condition.objects.filter(pk=known.pk).update(ended_at=ended)
    return [_of_downtime(row, site, "ended")]


def _end_of(row: Downtime) -> datetime:
    return row.end if row.cancelled_at is None else min(row.end, row.cancelled_at)


def _of_downtime(row: Downtime, site: str, what: str) -> Occurrence:
    has_begun = what == "begun"
    until = f"until {row.end:%Y-%m-%d %H:%M} UTC, " if has_begun else ""
    return Occurrence(
        kind=_KIND.DOWN if has_begun else _KIND.UP,
        subject=Subject(SubjectKind.SITE, site),
        key=f"downtime:{row.pk}:{what}",
        title=f"The downtime of site {site} has {what}",
        text=f"{until}entered by {row.author}: {row.reason}",
        at=row.start if has_begun else _end_of(row),
        audience=Audience(rule=Rule.SITE, site_id=row.site_id),
    )


def _loops(now: datetime) -> list[Occurrence]:
    statuses = {each.name: each for each in loop_statuses(now=now)}
    known = {
        each.subject: each
        for each in Condition.objects.select_for_update().filter(kind=Condition.Kind.LOOP)
    }
    ill = {name: each for name, each in statuses.items() if _is_stale(each)}
    Condition.objects.bulk_create(
        Condition(kind=Condition.Kind.LOOP, subject=name, since=now)
        for name in ill
        if name not in known
    )
    occurrences = []
    for name, condition in known.items():
        if name not in ill:
            condition.delete()
            if condition.told_at is not None:
                occurrences.append(_of_loop(condition, None))
        elif condition.told_at is None and now - condition.since >= PATIENCE:
            Condition.objects.filter(pk=condition.pk).update(told_at=now)
            occurrences.append(_of_loop(condition, ill[name]))
    return occurrences


def _is_stale(status: LoopStatus) -> bool:
    return status.health in {LoopHealth.LATE, LoopHealth.FAILING}


def _of_loop(condition: Condition, status: LoopStatus | None) -> Occurrence:
    name = condition.subject
    is_well = status is None
    words = "is well again" if status is None else f"is {status.health}"
    return Occurrence(
        kind=_KIND.WELL if is_well else _KIND.STALE,
        subject=Subject(SubjectKind.LOOP, name),
        key=f"loop:{condition.pk}:{'well' if is_well else 'stale'}",
        title=f"The control loop {name} {words}",
        text="" if status is None else status.error[:500],
        at=condition.since,
        audience=Audience(rule=Rule.LOOPS),
    )
