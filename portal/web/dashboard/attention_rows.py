"""Rows behind the attention items of the dashboard: jobs, queues, credentials and checks."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import (
    Case,
    CharField,
    Count,
    DateTimeField,
    F,
    IntegerField,
    Max,
    Min,
    QuerySet,
    TextField,
    Value,
    When,
)
from django.db.models.functions import Cast, Coalesce, Concat, Left

from wms.accounting.frontends import DEFAULT_KEY
from wms.core.models import User
from wms.jobs.models import Job
from wms.jobs.states import JobState
from wms.pilots.credentials.selectors import ending_credentials
from wms.pilots.pressure.selectors import contacts_backing_off, requests_without_pilots
from wms.pilots.program.checks import failed_checks_since

#: Lines of one kind; the list behind them has them all.
MOST_OF_A_KIND = 6
_CHECKS_SINCE = timedelta(hours=1)
_WHY = 400


def attention_rows(
    user: User, jobs: QuerySet[Job], *, is_whole: bool, now: datetime
) -> list[tuple[Any, ...]]:
    """Further attention items as rows, one kind after another, in one query.

    Columns: kind, number, site, name, since, why, count. Of `jobs` the latest that is held; the
    other kinds only for users who look after the whole installation.
    """
    parts = [_held(jobs)]
    if is_whole:
        parts += [_demand(user, now), _backing_off(user, now), _credentials(user, now)]
        parts.append(_checks(user, now))
    return list(parts[0].union(*parts[1:], all=True) if len(parts) > 1 else parts[0])


def _as(kind: str, rows: QuerySet[Any], **columns: Any) -> QuerySet[Any]:
    """Rows with the columns of all kinds, cast to common types."""
    no_time = Cast(Value(None), DateTimeField())
    every = {
        "row_kind": Value(kind, CharField()),
        "row_number": columns["number"],
        "row_site": Cast(columns.get("site", Value("")), TextField()),
        "row_name": Cast(columns.get("name", Value("")), TextField()),
        "row_since": columns.get("since", no_time),
        "row_why": Left(Cast(columns["why"], TextField()), _WHY),
        "row_count": Cast(columns.get("count", Value(1)), IntegerField()),
    }
    return rows.annotate(**every).values_list(*every)[:MOST_OF_A_KIND]


def _held(jobs: QuerySet[Job]) -> QuerySet[Any]:
    held = jobs.filter(state=JobState.HELD).order_by("-pk")[:1]
    latest = Job.objects.filter(pk__in=held.values("pk")).order_by()
    return _as(
        "held", latest, number=F("pk"), name=F("name"), since=F("state_since"),
        why=F("state_reason"),
    )  # fmt: skip


def _demand(user: User, now: datetime) -> QuerySet[Any]:
    return _as(
        "demand", requests_without_pilots(user, now), number=F("queue_id"),
        site=F("queue__site__name"), name=F("queue__name"), why=F("turn_reasons"),
        count=F("all_jobs"),
    )  # fmt: skip


def _backing_off(user: User, now: datetime) -> QuerySet[Any]:
    return _as(
        "backoff", contacts_backing_off(user, now), number=F("pk"), site=F("queue__site__name"),
        name=F("queue__name"), since=F("failing_since"), count=F("failures"),
        why=Case(
            When(credential=None, then=F("reason")),
            default=Concat(
                Value("with the credential "), F("credential__name"), Value(": "), F("reason"),
                output_field=TextField(),
            ),
        ),
    )  # fmt: skip


def _credentials(user: User, now: datetime) -> QuerySet[Any]:
    return _as(
        "credential", ending_credentials(user, now), number=F("pk"),
        site=Coalesce("queue__site__name", "site__name"), name=F("name"), since=F("expires_at"),
        why=Coalesce("frontend__name", Value(DEFAULT_KEY)),
    )  # fmt: skip


def _checks(user: User, now: datetime) -> QuerySet[Any]:
    failed = failed_checks_since(user, now - _CHECKS_SINCE).order_by()
    by_check = failed.values("pilot__queue__site__name", "name").annotate(times=Count("pk"))
    return _as(
        "check",
        by_check.annotate(
            latest=Max("pk"), first=Min("created_at"), last_reason=Max("reason")
        ).order_by("-times"),
        number=F("latest"), site=F("pilot__queue__site__name"), name=F("name"), since=F("first"),
        why=F("last_reason"), count=F("times"),
    )  # fmt: skip
