"""Ends of credentials, for notices: each is told once when it comes near, and once when it came.

One that is renewed, moved or switched off is news again when its end comes near. Those who may see
its frontend are told.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from wms.accounting.frontends import DEFAULT_FRONTEND, DEFAULT_KEY
from wms.notices.models import Condition, Notice, Rule, SubjectKind
from wms.notices.occurrences import Audience, Occurrence, Subject
from wms.pilots.credential_models import Credential
from wms.pilots.credentials.selectors import all_ending_credentials

#: An end of longer ago is no news any more.
_NEWS = timedelta(days=1)


def ends_of_credentials(now: datetime) -> list[Occurrence]:
    """Ends that have come near or passed since the last call; the caller opened a transaction."""
    known = {
        each.subject: each
        for each in Condition.objects.select_for_update().filter(kind=Condition.Kind.CREDENTIAL)
    }
    rows = all_ending_credentials(now).select_related("frontend", "queue__site", "site")
    ending = {str(row.pk): row for row in rows}
    over = [each.pk for subject, each in known.items() if subject not in ending]
    if over:
        Condition.objects.filter(pk__in=over).delete()
    return [
        occurrence
        for subject, row in ending.items()
        for occurrence in _news_of(row, known.get(subject), now)
    ]


def _news_of(row: Credential, known: Condition | None, now: datetime) -> list[Occurrence]:
    end = row.expires_at
    assert end is not None
    ended_at = end if end <= now else None
    if known is not None and known.since != end:
        known.delete()
        known = None
    if known is None:
        Condition.objects.create(
            kind=Condition.Kind.CREDENTIAL, subject=str(row.pk), since=end, told_at=now,
            ended_at=ended_at,
        )  # fmt: skip
        return [] if end <= now - _NEWS else [_occurrence(row, end, now)]
    if known.ended_at is not None or ended_at is None:
        return []
    Condition.objects.filter(pk=known.pk).update(ended_at=ended_at)
    return [_occurrence(row, end, now)]


def _occurrence(row: Credential, end: datetime, now: datetime) -> Occurrence:
    has_ended = end <= now
    kind = Notice.Kind.CREDENTIAL_ENDED if has_ended else Notice.Kind.CREDENTIAL_ENDS
    whose = f"the frontend {row.frontend.name}" if row.frontend else DEFAULT_FRONTEND
    what = "has ended" if has_ended else f"ends at {end:%Y-%m-%d %H:%M} UTC"
    effect = "No pilot is submitted" if has_ended else "Pilots are submitted until then"
    return Occurrence(
        kind=kind,
        subject=Subject(SubjectKind.FRONTEND, row.frontend.name if row.frontend else DEFAULT_KEY),
        key=f"credential:{row.pk}:{end:%Y%m%dT%H%M%S}:{kind.value}",
        title=f"The credential {row.name} of {whose} {what}",
        text=f"{effect} with it to {row.queue or row.site}: set it anew.",
        at=end if has_ended else now,
        audience=Audience(rule=Rule.CREDENTIALS),
    )
