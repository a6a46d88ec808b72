"""Node checks: services on those that administrators added, and results that pilots report.

Also the report of an unfit node, which ends its pilot, selectors of checks and results, and the
removal of old results.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from wms.accounting.walls import Walls, seen_by
from wms.core.actors import Actor
from wms.core.database.saving import check_row, check_same_name, save_audited
from wms.core.errors import InvalidInput, NotAuthenticated
from wms.core.models import Role, User
from wms.core.policy import require_role
from wms.pilots import lifecycle
from wms.pilots.agent.checks import BUILT_IN
from wms.pilots.models import NodeCheck, Pilot, PilotCheck
from wms.pilots.policy import pilots_within
from wms.pilots.program.declarations import check_declaration, checks_meant_for
from wms.pilots.program.published import (
    NOTHING_SAID,
    Said,
    forget_seen,
    take_publications,
)
from wms.pilots.protocol.registration import pilot_actor, secret_digest
from wms.sites.models import Queue, Site

#: Largest script; it travels to every node.
MOST_BYTES = 64 * 1024
MOST_SETTINGS_BYTES = 4096
#: Time for which the results of checks are kept.
_KEPT = timedelta(days=30)
_SWEPT_AT_ONCE = 5000
_SKIPPED_LENGTH = 2000
#: Time for which failed checks are shown.
FAILURES_TOLD_FOR = timedelta(days=1)
#: Most results that are kept of one pilot: many more than any node needs.
MOST_RESULTS = 2000


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of one check; `key` is the pilot's name for it, `said` what it published."""

    key: str
    name: str
    is_ok: bool
    kind: str
    reason: str
    metrics: Mapping[str, Any]
    seconds: float
    said: Said = NOTHING_SAID


def check_node_check(check: NodeCheck) -> None:
    """Raise InvalidInput with every fault of an added check."""
    check_row(check)
    check_same_name(check)
    # One that was added before there was a built-in one of its name goes in front of that.
    if check.name in BUILT_IN and check.pk is None:
        raise InvalidInput.of(f"{check.name} is the name of a built-in check", field="name")
    if not check.script.startswith("#!/"):
        raise InvalidInput.of("the first line must name an interpreter: #!/bin/sh", field="script")
    if len(check.script.encode()) > MOST_BYTES:
        raise InvalidInput.of(f"has more than {MOST_BYTES} bytes", field="script")
    if not isinstance(check.settings, dict):
        raise InvalidInput.of("must be a JSON object", field="settings")
    if len(json.dumps(check.settings)) > MOST_SETTINGS_BYTES:
        raise InvalidInput.of(f"has more than {MOST_SETTINGS_BYTES} bytes", field="settings")
    check_declaration(check)
    _check_named(check)


def _check_named(check: NodeCheck) -> None:
    """Refuse a check for others than a queue that names it: that queue could send no pilot."""
    naming = Queue.objects.filter(checks__contains=[{"name": check.name}]).select_related("site")
    for queue in naming.order_by("site__name", "name"):
        for field in ("site", "group"):
            meant = getattr(check, f"{field}_id")
            own = queue.site_id if field == "site" else queue.owner_group_id
            if meant is not None and meant != own:
                message = f"the queue {queue} is not of this {field} and names the check"
                raise InvalidInput.of(f"{message}: change its checks first", field=field)


@transaction.atomic
def save_node_check(check: NodeCheck, *, actor: Actor, reason: str = "") -> None:
    """Store an added check; the audit trail keeps what it was before, the script included.

    It counts for pilots that are submitted from now on. Raises NotPermitted and InvalidInput.
    """
    require_role(actor, Role.ADMIN, "configure checks of nodes: they run in every pilot")
    # Browsers send the line ends of Windows, and not the last one.
    check.script = "\n".join(check.script.splitlines()) + "\n"
    check_node_check(check)
    save_audited(check, target=f"node check {check.name}", actor=actor, reason=reason)
    forget_seen(check.name)


def added_checks(queue: Queue) -> QuerySet[NodeCheck]:
    """Added checks that pilots of this queue run, in their order."""
    return checks_meant_for(queue).filter(is_enabled=True)


@transaction.atomic
def record_checks(pilot: Pilot, results: Sequence[CheckResult], *, now: datetime) -> None:
    """Store results of a pilot's checks, up to a limit, and what they published.

    Repeating it changes nothing. What a check may not publish is left out, with the reason in its
    result.
    """
    said = {each.name: each.said for each in results if each.is_ok}
    skipped = take_publications(pilot, said, now=now)
    room = max(0, MOST_RESULTS - pilot.checks.count())
    PilotCheck.objects.bulk_create(
        [
            PilotCheck(
                pilot=pilot,
                key=each.key,
                name=each.name,
                is_ok=each.is_ok,
                kind=each.kind,
                reason=each.reason,
                metrics=dict(each.metrics),
                skipped="; ".join(skipped[each.name])[:_SKIPPED_LENGTH] if each.is_ok else "",
                seconds=each.seconds,
                created_at=now,
            )
            for each in results[:room]
        ],
        ignore_conflicts=True,
    )


@transaction.atomic
def report_unfit(uuid: UUID, *, secret: str, reason: str, now: datetime) -> None:
    """End a pilot that stopped before it executed anything. Repeating it changes nothing.

    Raises NotAuthenticated when its secret is wrong, or used up by a registration.
    """
    pilot = Pilot.objects.select_for_update(of=("self",)).filter(uuid=uuid).first()
    is_known = pilot is not None and hmac.compare_digest(pilot.secret_sha256, secret_digest(secret))
    if pilot is None or not is_known or pilot.token_sha256:
        raise NotAuthenticated
    lifecycle.apply(
        "abort", [pilot.pk], actor=pilot_actor(pilot), reason=f"unfit: {reason}", ended_at=now
    )


def sweep_checks(*, now: datetime) -> int:
    """Remove old results, the oldest first; return how many."""
    over = PilotCheck.objects.filter(created_at__lt=now - _KEPT).order_by("pk")[:_SWEPT_AT_ONCE]
    removed, _ = PilotCheck.objects.filter(pk__in=list(over.values_list("pk", flat=True))).delete()
    return removed


def checks_of_pilot(pilot: Pilot) -> QuerySet[PilotCheck]:
    """Results of a pilot's checks, in their order."""
    return pilot.checks.order_by("pk")


def skipped_publications(check: NodeCheck) -> QuerySet[PilotCheck]:
    """Results of an added check of which something was not published, latest first."""
    skipped = PilotCheck.objects.filter(name=check.name).exclude(skipped="")
    return skipped.select_related("pilot__queue__site").order_by("-created_at", "-pk")


def failed_checks_since(user: User, since: datetime) -> QuerySet[PilotCheck]:
    """Failed checks since then in the pilots that the user may see."""
    failed = PilotCheck.objects.filter(is_ok=False, created_at__gte=since)
    return seen_by(user, failed, partial(_checks_within, user))


def _checks_within(user: User, walls: Walls) -> Q:
    return Q(pilot__in=Pilot.objects.filter(pilots_within(user, walls)).values("pk"))


def failed_checks_of(
    user: User, frontend_id: int | None, *, since: datetime
) -> QuerySet[PilotCheck]:
    """Failed checks on nodes of a frontend's pilots since then, latest first; None: default."""
    return (
        failed_checks_since(user, since)
        .filter(pilot__frontend=frontend_id, pilot__owner=None)
        .select_related("pilot__queue__site")
        .order_by("-created_at", "-pk")
    )


def failed_checks_at(user: User, site: Site, *, since: datetime) -> QuerySet[PilotCheck]:
    """Failed checks on nodes of a site since then, latest first, with their pilots and queues."""
    return (
        failed_checks_since(user, since)
        .filter(pilot__queue__site=site)
        .select_related("pilot__queue")
        .order_by("-created_at", "-pk")
    )
