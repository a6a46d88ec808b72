"""Submission of pilots that a remote frontend has ordered, with its scripts and secrets."""

from __future__ import annotations

from datetime import datetime

import structlog

from wms.elements.protocol import Element, Refused
from wms.factories.orders import Slot
from wms.pilots.credentials.choice import element_with
from wms.pilots.factories.calls import CallFailed
from wms.pilots.factories.carrying import over_since, take_waiting
from wms.pilots.factory_models import RemoteFrontend
from wms.pilots.pressure.submission import give, new_batch_name
from wms.sites.models import Queue

log = structlog.get_logger(__name__)


def ordered_by(frontend_id: int | None) -> RemoteFrontend | None:
    """The remote frontend that orders the pilots of this frontend; None for one of our own."""
    if frontend_id is None:
        return None
    remotes = RemoteFrontend.objects.select_related("frontend")
    return remotes.filter(frontend=frontend_id).first()


def submit_orders(
    remote: RemoteFrontend,
    queue: Queue,
    element: Element,
    count: int,
    now: datetime,
    credential_id: int | None = None,
) -> int:
    """Submit the pilots that wait longest, so many at most; return how many there were.

    They remember the credential that the element shows.

    None of a frontend whose request is over. Raises Refused, also where the secrets cannot be
    opened, and what the element raises.
    """
    if over_since(remote, now):
        return 0
    try:
        batch, pilots, words = take_waiting(remote, queue, count, new_batch_name(), credential_id)
    except CallFailed as error:
        raise Refused(str(error)) from error
    if batch is None or not pilots:
        return 0
    if credential_id is not None:
        # Read anew: from the moment that pilots have it nobody changes whom it logs in.
        element = element_with(queue, credential_id)
    slot = Slot(batch.cores, batch.memory_mb, batch.gpus, batch.minutes)
    give(element, pilots, words, script=batch.script, slot=slot)
    log.info("remote_pilots_submitted", queue=str(queue), remote=remote.pk, count=len(pilots))
    return len(pilots)
