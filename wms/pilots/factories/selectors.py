"""Selectors of remote frontends and of the orders that wait to be submitted for them."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Count, QuerySet

from wms.accounting.walls import Walls, seen_by
from wms.core.errors import NotFound
from wms.core.models import User
from wms.pilots.factories.carrying import over_since
from wms.pilots.factory_models import RemoteFrontend, RemoteOrder
from wms.sites.frontends.entries import EntryKey

_NOTHING = "its installation has ordered no pilots"


def remote_reasons(now: datetime) -> dict[int, str]:
    """Why nothing is submitted for each remote frontend that orders nothing, by its frontend's id.

    One query.
    """
    remotes = RemoteFrontend.objects.select_related("frontend")
    return {
        remote.frontend_id: over_since(remote, now) or remote.error or _refusal(remote) or _NOTHING
        for remote in remotes
    }


def _refusal(remote: RemoteFrontend) -> str:
    """Why the last call of a frontend that calls by itself was refused; empty where it was not."""
    if remote.refused_at is None:
        return ""
    is_past = remote.called_at is not None and remote.called_at >= remote.refused_at
    return "" if is_past else remote.refused_reason


def waiting_orders() -> dict[EntryKey, int]:
    """Orders that wait to be submitted, by queue and frontend. One query."""
    rows = RemoteOrder.objects.filter(state=RemoteOrder.State.WAITING, is_cancelled=False)
    counts = rows.order_by().values_list("queue_id", "remote__frontend_id").annotate(Count("pk"))
    return {(queue_id, frontend_id): n for queue_id, frontend_id, n in counts}


def visible_remote_frontends(user: User) -> QuerySet[RemoteFrontend]:
    """Remote frontends that the user may see, as all that is of their frontends."""
    remotes = RemoteFrontend.objects.select_related("frontend").order_by("frontend__name")
    return seen_by(user, remotes, Walls.by_frontend)


def find_remote_frontend(user: User, name: str) -> RemoteFrontend:
    """The remote frontend of this name, if the user may see it. Raises NotFound."""
    remote = visible_remote_frontends(user).filter(frontend__name=name).first()
    if remote is None:
        raise NotFound(f"There is no remote frontend {name}.")
    return remote
