"""Why a waiting job is not run: its needs against the queues, and the pilots that may come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from matching.explanation import Verdict
from matching.needs import Needs
from matching.resources import offer_refusal
from wms.jobs.limits import ReachedLimit, reached_limits
from wms.pilots.selectors import live_pilots_by_queue
from wms.pilots.states import PENDING, PilotState
from wms.sites.models import Queue
from wms.sites.selectors import enabled_queues, offered_resource
from wms.sites.standing import Standing, standings
from wms.sites.words import offered_words


@dataclass(frozen=True, slots=True)
class QueueFit:
    """A queue and a job's needs: `refusal` tells why it never can run it, `closed` why not now.

    `is_limited` is true where a running limit is why, so that its running pilots do not help.
    """

    site: str
    queue: str
    refusal: str
    closed: str
    pending_pilots: int
    running_pilots: int
    is_limited: bool = False


@dataclass(frozen=True, slots=True)
class NeedsExplanation:
    """Whether and where jobs with some needs can run; fitting queues come first.

    `unknown` has a sentence for each word of the needs that means nothing anywhere today.
    """

    verdict: Verdict
    summary: str
    queues: tuple[QueueFit, ...]
    unknown: tuple[str, ...] = ()


def explain_needs(needs: Needs, *, now: datetime) -> NeedsExplanation:
    """Which queues' pilots would take a waiting job with these needs. Ten queries at most."""
    open_queues = set(enabled_queues(now).values_list("pk", flat=True))
    standing = standings(now)
    pilots = live_pilots_by_queue()
    limits = [limit for limit in reached_limits(now) if limit.kind.covers(needs)]
    queues = Queue.objects.select_related("site", "owner", "owner_group")
    fits = [
        _fit(
            queue,
            needs,
            closed="" if queue.pk in open_queues else _closed(queue, standing.get(queue.site_id)),
            limit=_limit(limits, needs, queue),
            pilots=pilots.get(queue.pk, {}),
        )
        for queue in queues.order_by("site__name", "name")
    ]
    fits.sort(key=lambda fit: (bool(fit.refusal), bool(fit.closed)))
    verdict, summary = _judged(fits)
    unknown = [word.message for word in offered_words().unknown(needs)]
    return NeedsExplanation(verdict, summary, tuple(fits), tuple(map(_sentence, unknown)))


def _sentence(message: str) -> str:
    return f"{message[0].upper()}{message[1:]}{'' if message.endswith('?') else '.'}"


def _closed(queue: Queue, standing: Standing | None) -> str:
    if standing is None or not queue.is_enabled:
        return "the queue is switched off"
    return standing.reason


def _limit(limits: Sequence[ReachedLimit], needs: Needs, queue: Queue) -> str:
    """Why no more of these jobs may start at the queue's site now."""
    stopping = (limit.reason for limit in limits if limit.stops(needs, queue.site.name))
    return next(stopping, "")


def _fit(
    queue: Queue, needs: Needs, *, closed: str, limit: str, pilots: Mapping[str, int]
) -> QueueFit:
    return QueueFit(
        site=queue.site.name,
        queue=queue.name,
        refusal=offer_refusal(offered_resource(queue), needs),
        closed="; ".join(filter(None, (closed, limit))),
        pending_pilots=sum(pilots.get(state, 0) for state in PENDING),
        running_pilots=pilots.get(PilotState.RUNNING, 0),
        is_limited=bool(limit),
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
    running_on = sum(fit.running_pilots for fit in fitting if fit.closed and not fit.is_limited)
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
