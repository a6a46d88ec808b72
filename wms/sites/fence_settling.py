"""Choice of a queue's fence of payloads under `auto`: settled once, by its first pilot's node."""

from __future__ import annotations

from django.db import transaction

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.sites.models import Queue, Site, SiteEvent


@transaction.atomic
def settle_fence(queue: Queue, working_fence: str, *, actor: Actor) -> None:
    """Settle a queue's fence on what works on a node, with an event and an audit entry.

    Nothing happens where it was settled before; of two pilots at once the first one decides. The
    queue's fields are read anew.
    """
    if queue.effective_fence:
        return
    settled = Queue.Fence.BWRAP if working_fence == Queue.Fence.BWRAP else Queue.Fence.NONE
    # Before the queue's row, as who configures a site does.
    Site.objects.select_for_update(no_key=True).get(pk=queue.site_id)
    open_ones = Queue.objects.filter(pk=queue.pk, fence=Queue.Fence.AUTO, settled_fence="")
    if open_ones.update(settled_fence=settled):
        facts = {"target": f"queue {queue}", "settled_fence": ["", str(settled)]}
        reason = f"{_WHY[settled]}; payloads of this queue have that from now on"
        SiteEvent.objects.create(
            site_id=queue.site_id, event="settle", actor=actor.name, reason=reason, facts=facts
        )
        record_action(
            "settle fence", target=f"queue {queue}", actor=actor, reason=reason, facts=facts
        )
    queue.refresh_from_db(fields=["fence", "settled_fence", "network"])


_WHY = {
    Queue.Fence.BWRAP: "bubblewrap works on the first node",
    Queue.Fence.NONE: "bubblewrap does not work on the first node",
}
