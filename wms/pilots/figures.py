"""Figures of queues' pilots for the ads of sites: how many there are, start-up time, failures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.fields.json import KeyTextTransform

from wms.pilots.models import Pilot, PilotCheck
from wms.pilots.states import ALIVE, PENDING, PilotState
from wms.sites.queue_figures import QueueFigures

#: Pilots that called in, or ended, within this time count for start-up time and failure rate.
RECENT = timedelta(hours=1)
#: The metric in which a check of a node names the software that it has found, parted by commas.
SOFTWARE_METRIC = "software"
_FAILED = [PilotState.FAILED, PilotState.ABORTED]


def figures_by_queue(now: datetime) -> dict[int, QueueFigures]:
    """Figures of the queues that have or had pilots lately, by queue id. Three queries."""
    found: dict[int, QueueFigures] = defaultdict(QueueFigures)
    since = now - RECENT
    alive = Pilot.objects.filter(state__in=ALIVE)
    for queue_id, pending, running, starts, waited in (
        _with_starts(alive, since)
        .annotate(
            pending=Count("pk", filter=Q(state__in=PENDING)),
            running=Count("pk", filter=~Q(state__in=PENDING)),
        )
        .values_list("queue_id", "pending", "running", "starts", "waited")
    ):
        figures = found[queue_id]
        figures.queued, figures.running = pending, running
        figures.add_starts(starts, waited)
    ended = Pilot.objects.filter(ended_at__gt=since)
    for queue_id, failed, done, starts, waited in (
        _with_starts(ended, since)
        .annotate(
            failed=Count("pk", filter=Q(state__in=_FAILED)),
            done=Count("pk", filter=Q(state=PilotState.DONE)),
        )
        .values_list("queue_id", "failed", "done", "starts", "waited")
    ):
        figures = found[queue_id]
        figures.failed, figures.done = failed, done
        figures.add_starts(starts, waited)
    for queue_id, words in _software():
        found[queue_id].software |= _words(words)
    return dict(found)


def _with_starts(pilots: QuerySet[Pilot], since: datetime) -> QuerySet[Pilot, Any]:
    """By queue: how many of these pilots called in lately, and how long these had waited."""
    lately = Q(registered_at__gt=since)
    return (
        pilots.order_by()
        .values("queue_id")
        .annotate(
            starts=Count("pk", filter=lately),
            waited=Sum(F("registered_at") - F("created_at"), filter=lately),
        )
    )


def _software() -> Iterable[tuple[int, str]]:
    """Software that checks on the nodes of running pilots have found, by queue."""
    rows = PilotCheck.objects.filter(
        metrics__has_key=SOFTWARE_METRIC, is_ok=True, pilot__state=PilotState.RUNNING
    )
    words = KeyTextTransform(SOFTWARE_METRIC, "metrics")
    return rows.order_by().values_list("pilot__queue_id", words).distinct()


def _words(text: str | None) -> set[str]:
    return {word.strip() for word in (text or "").split(",") if word.strip()}
