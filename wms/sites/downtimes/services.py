"""Services on downtimes, in which a site gets nothing new: add, change, cancel.

Permitted and audited; each change is an event of the site. Also the terms of a downtime (times,
reason) as a value, with a version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import Conflict, Finding, InvalidInput, NotFound
from wms.sites.downtimes.models import Downtime
from wms.sites.models import Site, SiteEvent
from wms.sites.policy import require_steering
from wms.sites.selectors import find_site

MAX_LEAD_TIME = timedelta(days=30)
#: Largest distance from now of a downtime's start and end.
MAX_DISTANCE = timedelta(days=36_525)
_CONFIGURED = ("start", "end", "lead_time_s", "reason")
#: At so many sites a downtime may be entered at once.
MAX_SITES = 500


@dataclass(frozen=True, slots=True)
class DowntimeTerms:
    """Fields of a downtime that can be changed."""

    start: datetime
    end: datetime
    lead_time_s: int
    reason: str

    @property
    def version(self) -> str:
        """Hash of the terms, equal for equal terms."""
        text = f"{self.start.timestamp()} {self.end.timestamp()} {self.lead_time_s} {self.reason}"
        return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]

    def __str__(self) -> str:
        lead = f"{self.lead_time_s / 60:g} min of lead time" if self.lead_time_s else "no lead time"
        return f"from {_minute(self.start)} to {_minute(self.end)}, with {lead} ({self.reason})"


def terms_of(downtime: Downtime) -> DowntimeTerms:
    """The terms of a downtime as they are."""
    return DowntimeTerms(downtime.start, downtime.end, downtime.lead_time_s, downtime.reason)


def _minute(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


@transaction.atomic
def add_downtime(
    site_name: str,
    *,
    start: datetime,
    end: datetime,
    reason: str,
    lead_time_s: int = 0,
    actor: Actor,
    now: datetime,
) -> Downtime:
    """Enter a downtime; it may have begun already. Raises NotFound, NotPermitted, InvalidInput."""
    [downtime] = add_downtimes(
        [site_name],
        start=start, end=end, reason=reason, lead_time_s=lead_time_s, actor=actor, now=now,
    )  # fmt: skip
    return downtime


@transaction.atomic
def add_downtimes(
    site_names: Sequence[str],
    *,
    start: datetime,
    end: datetime,
    reason: str,
    lead_time_s: int = 0,
    actor: Actor,
    now: datetime,
) -> list[Downtime]:
    """Enter the same downtime at several sites: at all of them, or at none.

    Raises NotFound, NotPermitted, InvalidInput.
    """
    if not 0 < len(site_names) <= MAX_SITES:
        raise InvalidInput.of(f"choose 1 to {MAX_SITES} sites", field="sites")
    entered = []
    for site in map(find_site, sorted(set(site_names))):
        downtime = Downtime(site=site, start=start, end=end, lead_time_s=lead_time_s, reason=reason)
        save_downtime(downtime, actor=actor, now=now)
        entered.append(downtime)
    return entered


@transaction.atomic
def change_downtime(
    downtime_id: int,
    *,
    terms: DowntimeTerms,
    seen: str = "",
    actor: Actor,
    now: datetime,
) -> Downtime:
    """Give a downtime other terms. `seen` is the version that the actor has seen, if that matters.

    Raises NotFound, NotPermitted, InvalidInput, and Conflict when it was changed or cancelled
    meanwhile, or is over.
    """
    [downtime] = _locked([downtime_id])
    require_steering(actor, "change downtimes", downtime.site)
    _refuse_ended(downtime, now)
    _refuse_unseen(downtime, seen)
    for name in _CONFIGURED:
        setattr(downtime, name, getattr(terms, name))
    save_downtime(downtime, actor=actor, now=now)
    return downtime


@transaction.atomic
def save_downtime(downtime: Downtime, *, actor: Actor, now: datetime) -> None:
    """Check and store a new downtime, or one that was changed, with an event and an audit entry.

    It stays with its site.

    Raises NotPermitted, InvalidInput, and Conflict when it was cancelled meanwhile.
    """
    old = _locked([downtime.pk])[0] if downtime.pk else None
    require_steering(actor, "enter downtimes", old.site if old else downtime.site)
    downtime.reason = downtime.reason.strip()
    check_downtime(downtime, now=now)
    if old is None:
        downtime.author = actor.name
        downtime.save()
        _record("add downtime", downtime, actor)
        return
    _refuse_cancelled(old)
    changes = {
        name: [_as_text(getattr(old, name)), _as_text(getattr(downtime, name))]
        for name in _CONFIGURED
        if getattr(old, name) != getattr(downtime, name)
    }
    if changes:
        downtime.save(update_fields=list(changes))
        _record("change downtime", downtime, actor, changes)


@transaction.atomic
def cancel_downtimes(
    downtime_ids: Collection[int],
    *,
    actor: Actor,
    now: datetime,
    reason: str = "",
    seen: str = "",
) -> None:
    """Take downtimes out of the calendar; those that run end now.

    `seen` is the version that the actor has seen of a single one. Raises NotPermitted, NotFound,
    and Conflict when one is cancelled or over already, or was changed; then none is cancelled.
    """
    downtimes = _locked(downtime_ids)
    for site in {downtime.site for downtime in downtimes}:
        require_steering(actor, "cancel downtimes", site)
    for downtime in downtimes:
        _refuse_ended(downtime, now)
        _refuse_unseen(downtime, seen)
    reason = reason.strip()
    Downtime.objects.filter(pk__in=downtime_ids).update(
        cancelled_at=now, cancelled_by=actor.name, cancel_reason=reason
    )
    for downtime in downtimes:
        _record("cancel downtime", downtime, actor, reason=reason)


def check_downtime(downtime: Downtime, *, now: datetime) -> None:
    """Raise InvalidInput with every fault of a downtime, by field."""
    findings = []
    if downtime.cancelled_at is not None:
        findings.append(Finding(f"was cancelled by {downtime.cancelled_by}"))
    if downtime.end <= downtime.start:
        findings.append(Finding("must be after the start", field="end"))
    elif downtime.end <= now:
        findings.append(Finding("must be in the future", field="end"))
    findings += [
        Finding("must be within a hundred years from now", field=name)
        for name in ("start", "end")
        if abs(getattr(downtime, name) - now) > MAX_DISTANCE
    ]
    most_s = int(MAX_LEAD_TIME.total_seconds())
    if not 0 <= downtime.lead_time_s <= most_s:
        findings.append(Finding(f"must be from 0 to {most_s} seconds", field="lead_time_s"))
    if not downtime.reason.strip():
        findings.append(Finding("give a reason: it is shown with the site", field="reason"))
    if findings:
        raise InvalidInput(findings)


def _locked(downtime_ids: Collection[int]) -> list[Downtime]:
    downtimes = list(
        Downtime.objects.select_related("site")
        .select_for_update(of=("self",))
        .filter(pk__in=downtime_ids)
        .order_by("pk")
    )
    missing = sorted(set(downtime_ids) - {downtime.pk for downtime in downtimes})
    if missing:
        raise NotFound(f"There is no downtime {', '.join(map(str, missing))}.")
    return downtimes


def _refuse_cancelled(downtime: Downtime) -> None:
    if downtime.cancelled_at is not None:
        raise Conflict(f"Downtime {downtime.pk} was cancelled by {downtime.cancelled_by}.")


def _refuse_ended(downtime: Downtime, now: datetime) -> None:
    _refuse_cancelled(downtime)
    if downtime.end <= now:
        raise Conflict(f"Downtime {downtime.pk} is over.")


def _refuse_unseen(downtime: Downtime, seen: str) -> None:
    terms = terms_of(downtime)
    if seen and seen != terms.version:
        raise Conflict(f"Downtime {downtime.pk} was changed meanwhile: it is {terms} now.")


def _as_text(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _record(
    action: str,
    downtime: Downtime,
    actor: Actor,
    changes: Mapping[str, Any] | None = None,
    *,
    reason: str | None = None,
) -> None:
    site: Site = downtime.site
    why = downtime.reason if reason is None else reason
    terms = {name: _as_text(getattr(downtime, name)) for name in ("start", "end", "lead_time_s")}
    SiteEvent.objects.create(
        site=site,
        event=action,
        actor=actor.name,
        reason=why,
        facts={"downtime": downtime.pk, **terms},
    )
    # The event tells what holds now; the audit trail also what held before.
    facts = {"downtime": downtime.pk, **terms, **(changes or {})}
    record_action(action, target=f"site {site.name}", actor=actor, reason=why, facts=facts)
