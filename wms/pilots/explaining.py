"""Why a waiting job is not run: its needs against the queues, and the pilots that may come."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from matching.explanation import Verdict
from matching.needs import Needs
from wms.pilots.selectors import live_pilots_by_queue
from wms.pilots.states import PENDING, PilotState
from wms.sites.models import Queue
from wms.sites.selectors import enabled_queues, offered_resource
from wms.sites.standing import Standing, standings


@dataclass(frozen=True, slots=True)
class QueueFit:
    """A queue and a job's needs: `refusal` tells why it never can run it, `closed` why not now."""

    site: str
    queue: str
    refusal: str
    closed: str
    pending_pilots: int
    running_pilots: int


@dataclass(frozen=True, slots=True)
class NeedsExplanation:
    """Whether and where jobs with some needs can run; fitting queues come first."""

    verdict: Verdict
    summary: str
    queues: tuple[QueueFit, ...]


def explain_needs(needs: Needs, *, now: datetime) -> NeedsExplanation:
    """Which queues' pilots would take a waiting job with these needs. Three queries."""
    open_queues = set(enabled_queues(now).values_list("pk", flat=True))
    standing = standings(now)
    pilots = live_pilots_by_queue()
    fits = [
        _fit(
            queue,
            needs,
            closed="" if queue.pk in open_queues else _closed(queue, standing.get(queue.site_id)),
            pilots=pilots.get(queue.pk, {}),
        )
        for queue in Queue.objects.select_related("site").order_by("site__name", "name")
    ]
    fits.sort(key=lambda fit: (bool(fit.refusal), bool(fit.closed)))
    verdict, summary = _judged(fits)
    return NeedsExplanation(verdict, summary, tuple(fits))


def _closed(queue: Queue, standing: Standing | None) -> str:
    if standing is None or not queue.is_enabled:
        return "the queue is switched off"
    return standing.reason


def _fit(queue: Queue, needs: Needs, *, closed: str, pilots: dict[str, int]) -> QueueFit:
    return QueueFit(
        site=queue.site.name,
        queue=queue.name,
        refusal=offered_resource(queue).refusal(needs),
        closed=closed,
        pending_pilots=sum(pilots.get(state, 0) for state in PENDING),
        running_pilots=pilots.get(PilotState.RUNNING, 0),
    )


def _closed_queues(fits: list[QueueFit]) -> str:
    return f"{'; '.join(f'{fit.site}/{fit.queue} is closed: {fit.closed}' for fit in fits[:5])}."


def _judged(fits: list[QueueFit]) -> tuple[Verdict, str]:
    if not fits:
        return Verdict.NEVER, "There is no queue."
    fitting = [fit for fit in fits if not fit.refusal]
    if not fitting:
        reasons = dict.fromkeys(fit.refusal for fit in fits)
        return Verdict.NEVER, f"No queue can run it: {'; '.join(list(reasons)[:5])}."
    usable = [fit for fit in fitting if not fit.closed]
    running_on = sum(fit.running_pilots for fit in fitting if fit.closed)
    if not usable and running_on:
        return Verdict.WAITING, (
            f"{_closed_queues(fitting)} No new pilot is sent, but {running_on} that run there may "
            "still take it."
        )
    if not usable:
        return Verdict.NOT_NOW, _closed_queues(fitting)
    pending = sum(fit.pending_pilots for fit in usable)
    running = sum(fit.running_pilots for fit in usable)
    return Verdict.WAITING, (
        f"{len(usable)} of {len(fits)} queues can run it; at these {running} pilots run and "
        f"{pending} wait to start. It is taken when one of them is free and draws it."
    )
