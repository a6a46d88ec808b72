"""Pages of frontends and of remote factories, and their list."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from portal.history.parts import Part
from portal.web.history.charts import PANELS
from portal.web.shared.pages import may_configure, page, render_page
from wms.accounting.frontends import DEFAULT_KEY
from wms.accounting.models import Frontend
from wms.core.models import User
from wms.factories.models import FactoryEntry
from wms.factories.selectors import find_factory, open_orders, visible_factories
from wms.factories.standing import standings
from wms.history.frontends import DEFAULT_ID, frontends_with_series
from wms.notices.selectors import notices_about_frontend
from wms.pilots.credential_models import Credential
from wms.pilots.credentials.selectors import all_ending_credentials
from wms.pilots.factories.selectors import find_remote_frontend
from wms.pilots.factory_models import RemoteFrontend
from wms.pilots.frontends.standing import find_any_frontend, frontend_lines, standing_of
from wms.pilots.program.checks import FAILURES_TOLD_FOR, failed_checks_of
from wms.pilots.selectors import pilots_gone_wrong
from wms.sites.factories import factory_refusals, queues_of_factory
from wms.sites.models import Queue

_LINES = 25
_NOTICES = 10
_WENT_WRONG_FOR = timedelta(days=1)
_CHARTS = ("pressure", "jobs", "throughput")


@require_safe
@page
def frontend_list(request: HttpRequest) -> HttpResponse:
    """Frontends that the user may see, and remote factories, with sums of each."""
    context = {
        "lines": frontend_lines(request.user),
        "factories": visible_factories(request.user),
        "now": timezone.now(),
        "may_configure": may_configure(request),
    }
    return render_page(request, "frontends", context)


@require_safe
@page
def frontend_page(request: HttpRequest, frontend: str) -> HttpResponse:
    """Page of a frontend: entries, credentials, pilots, checks, notices, charts."""
    user, now = request.user, timezone.now()
    found = find_any_frontend(user, frontend)
    standing, frontend_id = standing_of(found, now), found.pk if found else None
    ending = {row.pk for row in all_ending_credentials(now)} if standing.credentials else set()
    checks = list(failed_checks_of(user, frontend_id, since=now - FAILURES_TOLD_FOR)[: _LINES + 1])
    context = {
        "frontend": found,
        "standing": standing,
        "credentials": [_credential_line(row, ending, now) for row in standing.credentials],
        "remote": _remote_of(user, found),
        "failed_checks": checks[:_LINES],
        "failed_checks_cut": len(checks) > _LINES,
        "gone_wrong": pilots_gone_wrong(user, frontend_id, now - _WENT_WRONG_FOR)[:_LINES],
        "notices": notices_about_frontend(user, standing.key)[:_NOTICES],
        **_charts(found),
        "now": now,
        "may_configure": may_configure(request),
    }
    return render_page(request, "frontend", context)


def _remote_of(user: User, frontend: Frontend | None) -> RemoteFrontend | None:
    """The installation that has the jobs of a frontend, if another one has."""
    if frontend is None or not hasattr(frontend, "remote"):
        return None
    return find_remote_frontend(user, frontend.name)


@dataclass(frozen=True, slots=True)
class CredentialLine:
    """A credential, and the word of its state."""

    row: Credential
    state: str


def _credential_line(row: Credential, ending: set[int], now: datetime) -> CredentialLine:
    if not row.is_enabled:
        return CredentialLine(row, "disabled")
    if row.expires_at is not None and row.expires_at <= now:
        return CredentialLine(row, "expired")
    return CredentialLine(row, "late" if row.pk in ending else "ok")


def _charts(frontend: Frontend | None) -> dict[str, Any]:
    """Charts of a frontend of which series are kept; of the default one beside others only."""
    kept = frontends_with_series()
    if not kept or (frontend and frontend.pk not in kept):
        return {"panels": []}
    key, frontend_id = (frontend.name, frontend.pk) if frontend else (DEFAULT_KEY, DEFAULT_ID)
    return {
        "panels": [PANELS[name] for name in _CHARTS],
        "part": Part(frontend=key, frontend_id=frontend_id),
        "chart_query": "?" + urlencode({"range": "1d", "frontend": key}),
    }


@dataclass(frozen=True, slots=True)
class FactoryEntryLine:
    """Entry of a factory with the queue here that uses it, and what keeps pilots back."""

    row: FactoryEntry
    queue: Queue | None
    reason: str


@require_safe
@page
def factory_page(request: HttpRequest, factory: str) -> HttpResponse:
    """Page of a remote factory: when it was heard, its entries, and what is ordered of it."""
    found, now = find_factory(request.user, factory), timezone.now()
    queues = queues_of_factory(found)
    refusals = factory_refusals(queues, now)
    by_entry = {str(queue.settings.get("entry")): queue for queue in queues}
    lines = []
    for row in found.entries.all():
        queue = by_entry.pop(row.name, None)
        reason = row.refusal or (refusals.get(queue.pk, "") if queue else "") or row.reason
        lines.append(FactoryEntryLine(row, queue, reason))
    context = {
        "factory": found,
        "silence": standings([found.name], now).silence(found.name),
        "lines": lines,
        "unserved": [(queue, refusals.get(queue.pk, "")) for queue in by_entry.values()],
        "orders": open_orders(found),
        "now": now,
        "may_configure": may_configure(request),
    }
    return render_page(request, "factory", context)
