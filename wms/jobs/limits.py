"""Running limits: the most jobs of a kind at once, and the least interval between their starts.

Services that store and delete them, a selector with what runs now, those that are reached, and
their use in a claim, which asks twice, and asks for concurrency limits too. Before the draw, and
without a lock, it leaves out the kinds whose limits are reached. For the needs that were drawn it
locks the limits that cover them and counts anew: so two claims at the same time never exceed a
limit, and claims of kinds without one wait for nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from django.db import connection, transaction
from django.db.models import Case, Count, F, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce, NullIf

from matching.task_queues.needs import Needs
from matching.task_queues.resources import JobKind
from wms.accounting.models import AccountingGroup
from wms.accounting.walls import Walls, seen_by
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.database.saving import check_row, save_audited
from wms.core.database.statements import prepared_rows
from wms.core.errors import InvalidInput
from wms.core.models import User
from wms.jobs.concurrency_limits import ConcurrencyLimits, reached_by_waiting_jobs
from wms.jobs.models import Attempt, RunningLimit
from wms.jobs.sql import LOCK_FREE_LIMITS, LOCK_LIMITS, READ_LIMITS, READ_LIMITS_AT, count_running
from wms.sites.policy import configurable_sites, require_configuring, sites_of

#: Fields that operators set; `last_match_at` belongs to the claims.
_CONFIGURED = ("site_id", "job_type", "owner_group", "maximum", "min_interval_s", "note")


@dataclass(frozen=True, slots=True)
class _Limit:
    """A row of the limits; an empty site stands for all of them."""

    id: int
    site: str
    kind: JobKind
    maximum: int | None
    min_interval_s: float | None
    last_match_at: datetime | None

    def columns(self) -> dict[str, str]:
        """Columns of attempts by which its jobs are counted."""
        given = {
            "site_name": self.site,
            "job_type": self.kind.job_type,
            "owner_group": self.kind.owner_group,
        }
        return {name: value for name, value in given.items() if value}

    def reason(self, running: int, now: datetime) -> str:
        """Reason why nothing of its kind may start now; empty when it may."""
        place = self.site or "all sites together"
        if self.maximum is not None and running >= self.maximum:
            return f"{running} of {self.maximum} {self.kind} run at {place}"
        if self.min_interval_s is None or self.last_match_at is None:
            return ""
        if (now - self.last_match_at).total_seconds() >= self.min_interval_s:
            return ""
        interval = f"less than {self.min_interval_s:g} s ago"
        return f"one of the {self.kind} started at {place} {interval}"


@dataclass(frozen=True, slots=True)
class ReachedLimit:
    """A limit that is reached, with the reason; an empty site stands for all sites."""

    site: str
    kind: JobKind
    reason: str

    def is_at(self, site: str) -> bool:
        """Whether it counts at this site."""
        return self.site in {"", site}

    def stops(self, needs: Needs, site: str) -> bool:
        """Whether no job with these needs may start at the site because of it."""
        return self.is_at(site) and self.kind.covers(needs)


@dataclass(slots=True)
class ClaimLimits:
    """The limits that count at a site, for one claim. Lives inside the claim's transaction."""

    now: datetime
    limits: Sequence[_Limit]
    _held: set[int] = field(default_factory=set)
    _named: ConcurrencyLimits = field(default_factory=ConcurrencyLimits)

    @classmethod
    def at(cls, site_name: str, now: datetime) -> ClaimLimits:
        """Limits at this site and those over all sites. One query."""
        return cls(now, _limits(prepared_rows(READ_LIMITS_AT, {"site": site_name})))

    def reached(self) -> tuple[JobKind, ...]:
        """Kinds whose limits are reached, read without a lock. At most one query."""
        return tuple(limit.kind for limit in _reached(self.limits, self.now))

    def refuses(self, needs: Needs) -> JobKind | None:
        """A kind that these needs are of and of which none may start now; None lets them pass.

        Exact: the limits that cover the needs stay locked until the end of the transaction.
        """
        if needs.limits and (kind := self._named.refuses(needs)):
            return kind
        covering = self._covering(needs)
        if not covering:
            return None
        locked, busy = self._lock(covering)
        if busy:
            return busy[0].kind
        return next((limit.kind for limit in _reached(locked, self.now)), None)

    def matched(self, needs: Needs) -> None:
        """Note the match, from which the next minimum interval counts."""
        spaced = [limit.id for limit in self._covering(needs) if limit.min_interval_s]
        if spaced:
            RunningLimit.objects.filter(pk__in=spaced).update(last_match_at=self.now)

    def _covering(self, needs: Needs) -> list[_Limit]:
        return [limit for limit in self.limits if limit.kind.covers(needs)]

    def _lock(self, limits: Sequence[_Limit]) -> tuple[list[_Limit], list[_Limit]]:
        """Lock these limits in id order and read them anew; and those that other claims use now.

        There are such only for a claim that holds limits of needs drawn before, and would have to
        go back in the order: it does not wait, as somebody may be waiting for what it holds.
        """
        ids = {limit.id for limit in limits}
        may_wait = min(ids - self._held, default=0) > max(self._held, default=0)
        locked = _read(LOCK_LIMITS if may_wait else LOCK_FREE_LIMITS, [list(ids)])
        self._held |= {limit.id for limit in locked}
        # One that is missing although this waited was deleted, and limits nothing any more.
        busy = [] if may_wait else [limit for limit in limits if limit.id not in self._held]
        return locked, busy


def reached_limits(now: datetime) -> list[ReachedLimit]:
    """All limits that let nothing of their kind start now. Two queries at most, and one for the
    concurrency limits that waiting jobs use.
    """
    named = [ReachedLimit("", kind, reason) for kind, reason in reached_by_waiting_jobs()]
    return _reached(_read(READ_LIMITS, []), now) + named


def _read(statement: str, parameters: Sequence[str | list[int]]) -> list[_Limit]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return _limits(cursor.fetchall())


def _limits(rows: Iterable[Sequence[Any]]) -> list[_Limit]:
    return [
        _Limit(row_id, site, JobKind(job_type, owner_group), *values)
        for row_id, site, job_type, owner_group, *values in rows
    ]


def _reached(limits: Sequence[_Limit], now: datetime) -> list[ReachedLimit]:
    running = _running([limit for limit in limits if limit.maximum is not None])
    reasons = [(limit, limit.reason(running.get(limit.id, 0), now)) for limit in limits]
    return [ReachedLimit(limit.site, limit.kind, reason) for limit, reason in reasons if reason]


def _running(limits: Sequence[_Limit]) -> dict[int, int]:
    """Running jobs of each limit's kind, up to the limit's maximum. One query."""
    if not limits:
        return {}
    kinds = [limit.columns() for limit in limits]
    parameters: list[int | str | None] = []
    for limit, columns in zip(limits, kinds, strict=True):
        parameters += [limit.id, *columns.values(), limit.maximum]
    with connection.cursor() as cursor:
        cursor.execute(count_running(kinds), parameters)
        return dict(cursor.fetchall())


def visible_limits(user: User) -> QuerySet[RunningLimit]:
    """The limits that the user may see, with what is `running` now.

    Those of all groups, of groups of the user's frontends, and at sites that the user configures.
    """
    of_kind = Attempt.objects.filter(
        outcome="",
        job_type=Coalesce(NullIf(OuterRef("job_type"), Value("")), F("job_type")),
        owner_group=Coalesce(NullIf(OuterRef("owner_group"), Value("")), F("owner_group")),
    )
    of_site = of_kind.filter(site_name=OuterRef("site__name"))
    running = Case(When(site=None, then=_count(of_kind)), default=_count(of_site))
    every = RunningLimit.objects.select_related("site")
    limits = seen_by(user, every, partial(_limits_within, user))
    return limits.annotate(running=Coalesce(running, Value(0)))


def _limits_within(user: User, walls: Walls) -> Q:
    seen = Q(owner_group="") | walls.by_name(owner="")
    return seen | Q(site__in=configurable_sites(user))


def _count(attempts: QuerySet[Attempt]) -> Subquery:
    return Subquery(
        attempts.order_by().values("outcome").annotate(count=Count("pk")).values("count")
    )


def check_limit(limit: RunningLimit) -> None:
    """Raise InvalidInput with the faults of a limit."""
    if limit.maximum is None and limit.min_interval_s is None:
        message = "set a maximum, a time between two matches, or both"
        raise InvalidInput.of(message, field="maximum")
    check_row(limit)
    if not limit.job_type.isprintable():
        raise InvalidInput.of("no job has a type with control characters", field="job_type")
    group = limit.owner_group
    if group and not AccountingGroup.objects.filter(name=group).exists():
        raise InvalidInput.of(f"there is no group {group}", field="owner_group")


@transaction.atomic
def save_limit(limit: RunningLimit, *, actor: Actor, reason: str = "") -> None:
    """Check and store a limit; it counts from the next claim on, and stops nothing that runs.

    Raises NotPermitted or InvalidInput.
    """
    require_configuring(actor, "configure running limits", *sites_of(limit))
    limit.job_type, limit.owner_group = limit.job_type.strip(), limit.owner_group.strip()
    check_limit(limit)
    save_audited(limit, target=f"limit of {limit}", actor=actor, reason=reason, fields=_CONFIGURED)


@transaction.atomic
def delete_limit(limit: RunningLimit, *, actor: Actor, reason: str = "") -> None:
    """Delete a limit: its kind of jobs is free then. Raises NotPermitted."""
    require_configuring(actor, "configure running limits", *sites_of(limit))
    facts = {name: [getattr(limit, name), None] for name in ("maximum", "min_interval_s")}
    target = f"limit of {limit}"
    record_action("delete running limit", target=target, actor=actor, reason=reason, facts=facts)
    limit.delete()
