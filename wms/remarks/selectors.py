"""Selectors of remarks that a user may see, and of who looks after subjects now."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from wms.accounting.walls import Walls, seen_by
from wms.core.errors import NotFound
from wms.core.models import User
from wms.dags.models import Dag
from wms.failures.models import FailureGroup
from wms.failures.seen import groups_within
from wms.remarks.models import Handling, Remark
from wms.remarks.states import SubjectKind
from wms.remarks.subjects import SUBJECTS


@dataclass(frozen=True, slots=True)
class Care:
    """Handling of a subject at a moment: only what still holds.

    `acknowledged_by` and `assigned_to` are names of users, or empty.
    """

    acknowledged_by: str = ""
    acknowledged_at: datetime | None = None
    acknowledged_until: datetime | None = None
    assigned_to: str = ""
    assigned_at: datetime | None = None

    def __bool__(self) -> bool:
        return bool(self.acknowledged_by or self.assigned_to)

    def __str__(self) -> str:
        parts = [
            f"acknowledged by {self.acknowledged_by}" if self.acknowledged_by else "",
            f"assigned to {self.assigned_to}" if self.assigned_to else "",
        ]
        return ", ".join(filter(None, parts)) or "looked after by nobody"


#: Care of what nobody looks after.
NO_CARE = Care()


def visible_remarks(user: User) -> QuerySet[Remark]:
    """Remarks that the user may read, with their people: those about what the user may see."""
    remarks = Remark.objects.select_related("author", "person")
    return seen_by(user, remarks, partial(_remarks_within, user))


def _remarks_within(user: User, walls: Walls) -> Q:
    # Looked up one by one: a list of all DAGs that one may see would be made in memory.
    dags = Dag.objects.filter(walls.by_group(), pk=OuterRef("subject_id"))
    groups = FailureGroup.objects.filter(groups_within(user, walls), pk=OuterRef("subject_id"))
    return (
        Q(subject_kind=SubjectKind.SITE)
        | Q(subject_kind=SubjectKind.LOG, author=user)
        | Q(Exists(dags), subject_kind=SubjectKind.DAG)
        | Q(Exists(groups), subject_kind=SubjectKind.FAILURE)
    )


def find_remark(user: User, remark_id: int) -> Remark:
    """One remark that the user may read. Raises NotFound."""
    remark = visible_remarks(user).filter(pk=remark_id).first()
    if remark is None:
        raise NotFound(f"There is no remark {remark_id}, or you may not see it.")
    return remark


def remarks_about(kind: str, subject_id: int) -> QuerySet[Remark]:
    """Remarks about a subject that the caller has found visible, latest first."""
    remarks = Remark.objects.filter(subject_kind=kind, subject_id=subject_id)
    return remarks.select_related("author", "person").order_by("-pk")


def care_of(kind: str, subject: Any, *, now: datetime) -> Care:
    """Care of one subject. One query."""
    return cares_of({kind: [subject]}, now=now).get((kind, subject.pk), NO_CARE)


def cares_of(
    subjects: Mapping[str, Collection[Any]], *, now: datetime
) -> dict[tuple[str, int], Care]:
    """Care of subjects by kind and id, of those that somebody looks after. One query at most."""
    wanted = Q()
    since: dict[tuple[str, int], datetime | None] = {}
    for kind, rows in subjects.items():
        if rows:
            wanted |= Q(subject_kind=kind, subject_id__in=[row.pk for row in rows])
            since |= {(kind, row.pk): SUBJECTS[kind].since_of(row) for row in rows}
    if not since:
        return {}
    found = {}
    for row in Handling.objects.filter(wanted).select_related("acknowledged_by", "assigned_to"):
        key = (row.subject_kind, row.subject_id)
        if care := care_now(row, since=since[key], now=now):
            found[key] = care
    return found


def care_now(row: Handling, *, since: datetime | None, now: datetime) -> Care:
    """Care that a row tells of a subject that is in its state `since` then."""
    by, at, until = row.acknowledged_by, row.acknowledged_at, row.acknowledged_until
    is_over = until is not None and until <= now
    has_changed = since is not None and at is not None and since > at
    holds = by is not None and not is_over and not has_changed
    return Care(
        acknowledged_by=by.get_username() if by is not None and holds else "",
        acknowledged_at=at if holds else None,
        acknowledged_until=until if holds else None,
        assigned_to=row.assigned_to.get_username() if row.assigned_to is not None else "",
        assigned_at=row.assigned_at,
    )


def acknowledged(kind: str, *, now: datetime) -> Exists:
    """Condition on rows of a kind of subjects: an acknowledgement holds."""
    rows = _handlings(kind).filter(
        Q(acknowledged_until=None) | Q(acknowledged_until__gt=now), acknowledged_at__isnull=False
    )
    since = SUBJECTS[kind].since
    return Exists(rows.filter(acknowledged_at__gte=OuterRef(since)) if since else rows)


def assigned(kind: str, user_ids: Collection[int]) -> Exists:
    """Condition on rows of a kind of subjects: assigned to any of these users."""
    return Exists(_handlings(kind).filter(assigned_to__in=user_ids))


def _handlings(kind: str) -> QuerySet[Handling]:
    return Handling.objects.filter(subject_kind=kind, subject_id=OuterRef("pk")).order_by()
