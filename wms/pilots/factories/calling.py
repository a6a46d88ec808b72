"""Turns of this installation with the factories that it calls: a report fetched, orders brought.

The factory calls nobody then, and may be where no call goes out. A turn that dies anywhere is
repeated by the next, to the same end: what the report told is believed once, and orders are brought
until the factory has told of them.
"""

from __future__ import annotations

from datetime import datetime

import structlog
from django.db.models import F, Q

from wms.core.database.locks import advisory_lock
from wms.core.errors import Conflict, NotPermitted
from wms.factories.models import RemoteFactory
from wms.factories.services import use_token
from wms.pilots.factories.answering import answer_report
from wms.pilots.factories.calls import CallFailed, ask, bring, next_call, token_of_factory

log = structlog.get_logger(__name__)
#: The task that calls one remote factory.
CALL_FACTORY_TASK = "wms.pilots.call_factory"


def due_factories(now: datetime) -> list[int]:
    """Factories that this installation is to call, by id; the one called longest ago first."""
    due = Q(next_at=None) | Q(next_at__lte=now)
    called = RemoteFactory.objects.filter(due, is_enabled=True).exclude(url="")
    return list(called.order_by(F("called_at").asc(nulls_first=True)).values_list("pk", flat=True))


def call_factory(factory_id: int, now: datetime) -> bool:
    """One turn with a factory; False when another process has it, or it was not heard."""
    with advisory_lock(f"remote-factory:{factory_id}") as is_held:
        factory = RemoteFactory.objects.filter(pk=factory_id).first()
        if not is_held or factory is None or not factory.url or not factory.is_enabled:
            return False
        if factory.next_at is not None and factory.next_at > now:
            return False
        return _turn(factory, now)


def _turn(factory: RemoteFactory, now: datetime) -> bool:
    rows = RemoteFactory.objects.filter(pk=factory.pk)
    rows.update(called_at=now)
    try:
        token = token_of_factory(factory)
        use_token(factory, token)
        turn, report = ask(factory, token)
        orders = answer_report(factory, token, report, now)
        bring(factory, token, turn, orders)
    except (CallFailed, Conflict, NotPermitted) as error:
        failures, reason = factory.failures + 1, str(error)
        rows.update(failures=failures, error=reason, next_at=next_call(failures, now))
        log.warning("remote_factory_failed", factory=factory.pk, failures=failures, reason=reason)
        return False
    rows.update(failures=0, error="", next_at=None)
    return True
