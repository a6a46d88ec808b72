"""Running limits: how many jobs of a kind may run at once, and how soon after one another.

A claim asks twice. Before the draw, and without a lock, it leaves out the kinds whose limits are
reached. For the needs that were drawn it locks the limits that cover them and counts anew: so two
claims at the same time never exceed a limit, and claims of kinds without one wait for nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import connection, transaction
from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, NullIf

from matching.needs import Needs
from matching.resources import JobKind
from wms.accounting.models import AccountingGroup
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import InvalidInput
from wms.core.models import Role, User
from wms.core.policy import require_role
from wms.core.saving import check_row, save_audited
from wms.jobs.models import Attempt, RunningLimit

#: What operators set; `last_match_at` belongs to the claims.
_CONFIGURED = ("site_id", "job_type", "owner_group", "maximum", "min_interval_s", "note")

# How many open attempts are of a limit's kind. Not counted beyond the maximum: more is as bad.
_COUNT = """
SELECT %s::bigint, count(*)
FROM (SELECT 1 FROM jobs_attempt WHERE outcome = ''{conditions} LIMIT %s) AS running
"""


@dataclass(frozen=True, slots=True)
class ReachedLimit:
    """Nothing of this kind may start now, and why; an empty site stands for all of them."""

    site: str
    kind: JobKind
    reason: str

    def stops(self, needs: Needs, site: str) -> bool:
        """Whether no job with these needs may start at the site because of it."""
        return self.site in {"", site} and self.kind.covers(needs)


@dataclass(slots=True)
class Gate:
    """The limits that count at a site, for one claim. Lives inside the claim's transaction."""

    now: datetime
    limits: Sequence[RunningLimit]
    _held: set[int] = field(default_factory=set)

    @classmethod
    def at(cls, site_name: str, now: datetime) -> Gate:
        """The gate of a site: its limits, and those over all sites. One query."""
        here = Q(site__name=site_name) | Q(site=None)
        return cls(now, list(RunningLimit.objects.filter(here).select_related("site")))

    def reached(self) -> tuple[JobKind, ...]:
        """The kinds of which none may start now, as it looks without a lock. At most one query."""
        return tuple(limit.kind for limit in _reached(self.limits, self.now))

    def refuses(self, needs: Needs) -> JobKind | None:
        """A kind that these needs are of and of which none may start now; None lets them pass.

        Exact: the limits that cover the needs stay locked until the end of the transaction.
        """
        covering = _covering(self.limits, needs)
        if not covering:
            return None
        locked, busy = self._lock(covering)
        if busy:
            return _kind(busy[0])
        return next((limit.kind for limit in _reached(locked, self.now)), None)

    def _lock(
        self, limits: Sequence[RunningLimit]
    ) -> tuple[list[RunningLimit], list[RunningLimit]]:
        """Lock these limits in id order and read them anew; and those that other claims use now.

        There are such only for a claim that holds limits of needs drawn before, and would have to
        go back in the order: it does not wait, as somebody may be waiting for what it holds.
        """
        ids = {limit.pk for limit in limits}
        may_wait = min(ids - self._held, default=0) > max(self._held, default=0)
        rows = RunningLimit.objects.select_for_update(of=("self",), skip_locked=not may_wait)
        locked = list(rows.filter(pk__in=ids).select_related("site").order_by("pk"))
        self._held |= {limit.pk for limit in locked}
        # One that is missing although this waited was deleted, and limits nothing any more.
        busy = [] if may_wait else [limit for limit in limits if limit.pk not in self._held]
        return locked, busy

    def matched(self, needs: Needs) -> None:
        """Note the match, from which the next minimum interval counts."""
        spaced = [limit.pk for limit in _covering(self.limits, needs) if limit.min_interval_s]
        if spaced:
            RunningLimit.objects.filter(pk__in=spaced).update(last_match_at=self.now)


def reached_limits(now: datetime) -> list[ReachedLimit]:
    """All limits that let nothing of their kind start now. Two queries at most."""
    return _reached(list(RunningLimit.objects.select_related("site")), now)


def _kind(limit: RunningLimit) -> JobKind:
    return JobKind(limit.job_type, limit.owner_group)


def _covering(limits: Iterable[RunningLimit], needs: Needs) -> list[RunningLimit]:
    return [limit for limit in limits if _kind(limit).covers(needs)]


def _reached(limits: Sequence[RunningLimit], now: datetime) -> list[ReachedLimit]:
    running = _running([limit for limit in limits if limit.maximum is not None])
    reasons = {
        limit.pk: _full(limit, running.get(limit.pk, 0)) or _too_soon(limit, now)
        for limit in limits
    }
    return [
        ReachedLimit(limit.site.name if limit.site else "", _kind(limit), reasons[limit.pk])
        for limit in limits
        if reasons[limit.pk]
    ]


def _full(limit: RunningLimit, running: int) -> str:
    if limit.maximum is None or running < limit.maximum:
        return ""
    return f"{running} of {limit.maximum} {_kind(limit)} run at {_place(limit)}"


def _too_soon(limit: RunningLimit, now: datetime) -> str:
    if limit.min_interval_s is None or limit.last_match_at is None:
        return ""
    if (now - limit.last_match_at).total_seconds() >= limit.min_interval_s:
        return ""
    return (
        f"one of the {_kind(limit)} started at {_place(limit)} less than "
        f"{limit.min_interval_s:g} s ago"
    )


def _place(limit: RunningLimit) -> str:
    return limit.site.name if limit.site else "all sites together"


def _running(limits: Sequence[RunningLimit]) -> dict[int, int]:
    """How many jobs of each limit's kind have a pilot, up to the limit's maximum. One query."""
    if not limits:
        return {}
    statements = []
    parameters: list[int | str | None] = []
    for limit in limits:
        given = {
            "site_name": limit.site.name if limit.site else "",
            "job_type": limit.job_type,
            "owner_group": limit.owner_group,
        }
        columns = {name: value for name, value in given.items() if value}
        conditions = "".join(f" AND {name} = %s" for name in columns)
        statements.append(_COUNT.format(conditions=conditions))
        parameters += [limit.pk, *columns.values(), limit.maximum]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(statements), parameters)
        return dict(cursor.fetchall())


def visible_limits(user: User) -> QuerySet[RunningLimit]:
    """The limits that the user may see, at present all of them, with what is `running` now."""
    if not user.is_active:
        return RunningLimit.objects.none()
    of_kind = Attempt.objects.filter(
        outcome="",
        site_name=Coalesce(OuterRef("site__name"), F("site_name")),
        job_type=Coalesce(NullIf(OuterRef("job_type"), Value("")), F("job_type")),
        owner_group=Coalesce(NullIf(OuterRef("owner_group"), Value("")), F("owner_group")),
    )
    count = of_kind.order_by().values("outcome").annotate(count=Count("pk")).values("count")
    return RunningLimit.objects.select_related("site").annotate(
        running=Coalesce(Subquery(count), Value(0))
    )


def check_limit(limit: RunningLimit) -> None:
    """Raise InvalidInput with the faults of a limit."""
    if limit.maximum is None and limit.min_interval_s is None:
        message = "set a maximum, a time between two matches, or both"
        raise InvalidInput.of(message, field="maximum")
    check_row(limit)
    group = limit.owner_group
    if group and not AccountingGroup.objects.filter(name=group).exists():
        raise InvalidInput.of(f"there is no group {group}", field="owner_group")


@transaction.atomic
def save_limit(limit: RunningLimit, *, actor: Actor) -> None:
    """Check and store a limit; it counts from the next claim on, and stops nothing that runs.

    Raises NotPermitted or InvalidInput.
    """
    require_role(actor, Role.OPERATOR, "configure running limits")
    limit.job_type, limit.owner_group = limit.job_type.strip(), limit.owner_group.strip()
    check_limit(limit)
    save_audited(limit, target=f"limit of {limit}", actor=actor, fields=_CONFIGURED)


@transaction.atomic
def delete_limit(limit: RunningLimit, *, actor: Actor) -> None:
    """Delete a limit: its kind of jobs is free then. Raises NotPermitted."""
    require_role(actor, Role.OPERATOR, "configure running limits")
    facts = {name: [getattr(limit, name), None] for name in ("maximum", "min_interval_s")}
    record_action("delete running limit", target=f"limit of {limit}", actor=actor, facts=facts)
    limit.delete()
