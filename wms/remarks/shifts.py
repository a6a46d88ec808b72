"""Summary of a shift: what was written between two moments, and what people steered meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, QuerySet

from wms.core.actors import IMPERSONAL
from wms.core.audit import OPEN_KINDS, visible_entries
from wms.core.models import AuditEntry, AuditKind, User
from wms.remarks.models import Remark
from wms.remarks.selectors import visible_remarks
from wms.remarks.services import AUDITED

#: Most entries and actions that a summary has; the lists have all.
MOST_REMARKS = 500
MOST_ACTIONS = 300
_STEERED = (*OPEN_KINDS, AuditKind.QUEUE, AuditKind.OPERATION)


@dataclass(frozen=True, slots=True)
class SubjectRemarks:
    """Remarks of a shift about one subject, the oldest first."""

    first: Remark
    remarks: Sequence[Remark]


@dataclass(frozen=True, slots=True)
class Shift:
    """Summary of a shift. `actions` are steering actions, `done` counts all by who did what."""

    subjects: Sequence[SubjectRemarks]
    events: Counter[str]
    are_remarks_cut: bool
    actions: Sequence[AuditEntry]
    done: Sequence[tuple[str, str, int]]

    @property
    def action_count(self) -> int:
        """Number of steering actions."""
        return sum(count for *_, count in self.done)


def shift_between(user: User, start: datetime, end: datetime) -> Shift:
    """Summary of what the user may see of a shift. Three queries."""
    during = {"created_at__gte": start, "created_at__lte": end}
    written = list(visible_remarks(user).filter(**during).order_by("pk")[: MOST_REMARKS + 1])
    by_subject: dict[tuple[str, int | None], list[Remark]] = {}
    for remark in written[:MOST_REMARKS]:
        by_subject.setdefault((remark.subject_kind, remark.subject_id), []).append(remark)
    steered = _steered(user).filter(**during)
    done = steered.order_by().values_list("actor", "action").annotate(Count("pk"))
    return Shift(
        subjects=[SubjectRemarks(remarks[0], remarks) for remarks in by_subject.values()],
        events=Counter(remark.event for remark in written[:MOST_REMARKS]),
        are_remarks_cut=len(written) > MOST_REMARKS,
        actions=list(steered.order_by("-pk")[:MOST_ACTIONS])[::-1],
        done=sorted(done, key=lambda row: (-row[2], row[0], row[1])),
    )


def _steered(user: User) -> QuerySet[AuditEntry]:
    """Steering actions of people that the user may see.

    Neither remarks, which are told, nor submissions, nor what loops and pilots did.
    """
    steered = visible_entries(user).filter(object_kind__in=_STEERED).exclude(action__in=AUDITED)
    for beginning in IMPERSONAL:
        steered = steered.exclude(actor__startswith=beginning)
    return steered.exclude(action__startswith="submit ")
