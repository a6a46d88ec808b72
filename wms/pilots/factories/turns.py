"""Turns of a factory with its remote frontends: one call each, if they do not call.

What waits for a frontend whose request is over is taken back first, whether it can be reached or
not. A turn that dies anywhere is repeated by the next, to the same end.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import structlog
from django.db.models import F, Q

from wms.core.database.locks import advisory_lock
from wms.core.loops import ask_loop, wake
from wms.pilots.factories.accepting import accept_orders
from wms.pilots.factories.calling import CALL_FACTORY_TASK, due_factories
from wms.pilots.factories.calls import CallFailed, call, next_call, token_of
from wms.pilots.factories.carrying import carry_out_cancels, return_expired
from wms.pilots.factories.reports import report_to
from wms.pilots.factory_models import RemoteFrontend
from wms.pilots.pressure.director import DIRECT_TASK

log = structlog.get_logger(__name__)
#: The task that does what is due for one remote frontend, and calls it.
CALL_TASK = "wms.pilots.call_frontend"


def run_cycle(now: datetime) -> dict[str, Any]:
    """Wake the calls of all remote frontends and factories.

    Also of frontends that are off or call by themselves, for what waits.
    """
    due = Q(next_at=None) | Q(next_at__lte=now) | Q(lease_until__lte=now)
    remotes = RemoteFrontend.objects.filter(due).order_by(F("called_at").asc(nulls_first=True))
    ids = list(remotes.values_list("pk", flat=True))
    for remote_id in ids:
        wake(CALL_TASK, remote_id)
    factories = due_factories(now)
    for factory_id in factories:
        wake(CALL_FACTORY_TASK, factory_id)
    return {"called": len(ids) + len(factories)}


def call_frontend(remote_id: int, now: datetime) -> bool:
    """One turn with a remote frontend; False when another process has it, or it did not answer."""
    with advisory_lock(f"remote-frontend:{remote_id}") as is_held:
        remote = RemoteFrontend.objects.select_related("frontend").filter(pk=remote_id).first()
        if not is_held or remote is None:
            return False
        return_expired(remote, now)
        carry_out_cancels(remote, now)
        if remote.is_caller or not remote.is_enabled:
            return False
        if remote.next_at is not None and remote.next_at > now:
            return False
        return _exchange(remote, now)


def _exchange(remote: RemoteFrontend, now: datetime) -> bool:
    report, told = report_to(remote, now)
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
    RemoteFrontend.objects.filter(pk=remote.pk).update(
        failures=failures, error=reason, next_at=next_call(failures, now)
    )
    log.warning("remote_frontend_failed", remote=remote.pk, failures=failures, reason=reason)
