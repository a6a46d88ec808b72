"""Turns of a factory with its remote frontends: one call each, by this side only.

What waits for a frontend whose request is over is taken back first, whether it can be reached or
not. A turn that dies anywhere is repeated by the next, to the same end.
"""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db.models import F, Q

from wms.core.database.locks import advisory_lock
from wms.core.loops import ask_loop, wake
from wms.factories.messages import Report
from wms.pilots.factories.accepting import accept_orders
from wms.pilots.factories.calls import CallFailed, call, token_of
from wms.pilots.factories.carrying import carry_out_cancels, return_expired
from wms.pilots.factories.reports import ads_of, words_to_tell
from wms.pilots.factory_models import RemoteFrontend
from wms.pilots.pressure.backoff import pause_s
from wms.pilots.pressure.director import DIRECT_TASK

log = structlog.get_logger(__name__)
#: The task that calls one remote frontend.
CALL_TASK = "wms.pilots.call_frontend"
#: A frontend is looked for at least so often, whatever it was that failed.
_LONGEST_PAUSE_S = 60.0


def run_cycle(now: datetime) -> dict[str, Any]:
    """Wake the calls of all remote frontends: also of those that are off, for what waits."""
    due = Q(next_at=None) | Q(next_at__lte=now) | Q(lease_until__lte=now)
    remotes = RemoteFrontend.objects.filter(due).order_by(F("called_at").asc(nulls_first=True))
    ids = list(remotes.values_list("pk", flat=True))
    for remote_id in ids:
        wake(CALL_TASK, remote_id)
    return {"called": len(ids)}


def call_frontend(remote_id: int, now: datetime) -> bool:
    """One turn with a remote frontend; False when another process has it, or it did not answer."""
    with advisory_lock(f"remote-frontend:{remote_id}") as is_held:
        remote = RemoteFrontend.objects.select_related("frontend").filter(pk=remote_id).first()
        if not is_held or remote is None:
            return False
        return_expired(remote, now)
        carry_out_cancels(remote, now)
        if not remote.is_enabled or (remote.next_at is not None and remote.next_at > now):
            return False
        return _exchange(remote, now)


def _exchange(remote: RemoteFrontend, now: datetime) -> bool:
    told = words_to_tell(remote)
    report = Report(remote.instance, ads_of(remote, now), [each.word for each in told])
    RemoteFrontend.objects.filter(pk=remote.pk).update(called_at=now)
    try:
        orders = call(remote, token_of(remote), report)
    except CallFailed as error:
        _note_failure(remote, str(error), now)
        return False
    new = accept_orders(remote, orders, told, called_at=now)
    if orders.cancelled:
        carry_out_cancels(remote, now)
    if new:
        log.info("remote_orders_accepted", remote=remote.pk, count=new)
        ask_loop(DIRECT_TASK)
    return True


def _note_failure(remote: RemoteFrontend, reason: str, now: datetime) -> None:
    failures = remote.failures + 1
    pause = min(pause_s(failures, jitter=random.uniform(-1, 1)), _LONGEST_PAUSE_S)
    RemoteFrontend.objects.filter(pk=remote.pk).update(
        failures=failures, error=reason, next_at=now + timedelta(seconds=pause)
    )
    log.warning("remote_frontend_failed", remote=remote.pk, failures=failures, reason=reason)
