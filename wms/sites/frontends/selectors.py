"""Selectors of entries of frontends: which a user may read, and those of one frontend."""

from __future__ import annotations

from django.db.models import QuerySet

from wms.accounting.models import Frontend
from wms.accounting.walls import Walls, seen_by
from wms.core.models import User
from wms.sites.frontends.entries import Entry, entry_of, is_private, read_entries
from wms.sites.frontends.models import FrontendEntry
from wms.sites.models import Queue


def visible_entries(user: User) -> QuerySet[FrontendEntry]:
    """Entries of frontends that the user may see, with their queues, the last made first."""
    rows = FrontendEntry.objects.select_related("queue__site", "frontend").order_by("-pk")
    return seen_by(user, rows, Walls.by_frontend)


def entries_of(frontend: Frontend | None) -> list[Entry]:
    """Entries of one frontend by queue, those that are off too; None: of the default frontend.

    Without a row the default frontend has an entry at each queue that is not private. One query, or
    two.
    """
    if frontend is None:
        queues = Queue.objects.select_related("site").order_by("site__name", "name")
        shared = [queue for queue in queues if not is_private(queue)]
        return [entry for entry in read_entries(shared) if entry.frontend is None]
    rows = FrontendEntry.objects.filter(frontend=frontend).select_related("queue__site", "frontend")
    return [entry_of(row.queue, row) for row in rows.order_by("queue__site__name", "queue__name")]
