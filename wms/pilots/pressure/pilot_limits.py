"""Services on pilot limits, which bound the pilots of many queues together: check, save, delete.

Permitted and audited. A limit counts from the director's next cycle on, and ends no pilot.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.db import transaction
from django.db.models import F, Q, QuerySet

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.database.saving import check_row, save_audited
from wms.core.errors import Finding, InvalidInput
from wms.pilots.pressure_models import PilotLimit
from wms.sites.frontends.models import FrontendEntry
from wms.sites.policy import require_configuring, sites_of

_BOUNDS = ("max_pilots", "curb_pilots", "max_cores", "max_idle_pilots", "curb_idle_pilots")
_CONFIGURED = ("scope", "site_id", "group_id", "frontend_id", *_BOUNDS)


def check_limit(limit: PilotLimit) -> None:
    """Raise InvalidInput with the faults of a limit."""
    if limit.site_id and limit.scope != PilotLimit.Scope.SITE:
        raise InvalidInput.of("only a limit of sites names one", field="site")
    if limit.group_id and limit.scope != PilotLimit.Scope.GROUP:
        raise InvalidInput.of("only a limit of groups names one", field="group")
    if limit.frontend_id and limit.scope != PilotLimit.Scope.FRONTEND:
        raise InvalidInput.of("only a limit of frontends names one", field="frontend")
    if all(getattr(limit, name) is None for name in _BOUNDS):
        raise InvalidInput.of("set at least one number, or it limits nothing", field="max_pilots")
    check_row(limit)
    _check_order(limit)


def _check_order(limit: PilotLimit) -> None:
    """Raise InvalidInput where numbers contradict each other, or entries of the frontend."""
    findings = [
        Finding(f"is never reached: {most} are the most", field=curb)
        for curb, most in (
            ("curb_pilots", limit.max_pilots),
            ("curb_idle_pilots", limit.max_idle_pilots),
        )
        if most is not None and (getattr(limit, curb) or 0) > most
    ]
    if limit.scope == PilotLimit.Scope.FRONTEND and limit.max_pilots is not None:
        beyond = _entries_beyond(limit).select_related("frontend", "queue__site").first()
        if beyond is not None:
            message = f"is less than {beyond} may have ({beyond.max_pilots})"
            findings.append(Finding(message, field="max_pilots"))
    if findings:
        raise InvalidInput(findings)


def _entries_beyond(limit: PilotLimit) -> QuerySet[FrontendEntry]:
    beyond = FrontendEntry.objects.filter(max_pilots__gt=limit.max_pilots)
    if limit.frontend_id is not None:
        return beyond.filter(frontend=limit.frontend_id)
    named = PilotLimit.objects.filter(frontend__isnull=False).values("frontend")
    return beyond.filter(frontend__isnull=False).exclude(frontend__in=named)


def entry_contradictions(entry: FrontendEntry) -> Iterator[Finding]:
    """Findings of an entry that may have more pilots than its frontend may have in all."""
    if entry.frontend_id is None or entry.max_pilots is None:
        return
    limits = PilotLimit.objects.filter(scope=PilotLimit.Scope.FRONTEND)
    of_it = Q(frontend=entry.frontend_id) | Q(frontend=None)
    limit = limits.filter(of_it).order_by(F("frontend").asc(nulls_last=True)).first()
    if limit is not None and limit.max_pilots is not None and entry.max_pilots > limit.max_pilots:
        message = f"is more than its frontend may have in all ({limit.max_pilots})"
        yield Finding(message, field="max_pilots")


@transaction.atomic
def save_limit(limit: PilotLimit, *, actor: Actor, reason: str = "") -> None:
    """Check and store a limit; it counts from the next cycle on, and ends no pilot.

    Raises NotPermitted or InvalidInput.
    """
    require_configuring(actor, "configure limits on pilots", *sites_of(limit))
    check_limit(limit)
    save_audited(limit, target=f"limit on {limit}", actor=actor, reason=reason, fields=_CONFIGURED)


@transaction.atomic
def delete_limit(limit: PilotLimit, *, actor: Actor, reason: str = "") -> None:
    """Delete a limit: nothing holds back its pilots then. Raises NotPermitted."""
    require_configuring(actor, "configure limits on pilots", *sites_of(limit))
    facts = {name: [getattr(limit, name), None] for name in _BOUNDS}
    target = f"limit on {limit}"
    record_action("delete pilot limit", target=target, actor=actor, reason=reason, facts=facts)
    limit.delete()
