"""Why a waiting job is not run: its needs against the queues, and the pilots that may come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from matching.explanation import MatchVerdict
from matching.needs import Needs
from matching.resources import offer_refusal
from matching.unmatched_reasons import grouped_reasons
from wms.explain.queue_changes import QueueChanges
from wms.jobs.limits import ReachedLimit, reached_limits
from wms.pilots.selectors import live_pilots_by_queue
from wms.pilots.states import PENDING, PilotState
from wms.sites.models import Queue
from wms.sites.selectors import offered_resource
from wms.sites.standing import Standing, queues_and_standings
from wms.sites.vocabulary import unknown_terms

#: So many of the queues that are closed are told in words.
_TOLD = 5


@dataclass(frozen=True, slots=True)
class QueueFit:
    """A queue and a job's needs: `refusal` tells why it never can run it, `closed` why not now.

    `is_limited` is true where a running limit is why, so that its running pilots do not help;
    `is_shut` where it would be closed without one, and `is_off` where it is switched off.
    """

    site: str
    queue: str
    refusal: str
    closed: str
    pending_pilots: int
    running_pilots: int
    is_limited: bool = False
    is_shut: bool = False
    is_off: bool = False


@dataclass(frozen=True, slots=True)
class NeedsExplanation:
    """Whether and where jobs with some needs can run; fitting queues come first.

    `unknown` has a sentence for each word of the needs that means nothing anywhere today.
    """

    verdict: MatchVerdict
    summary: str
    queues: tuple[QueueFit, ...]
    unknown: tuple[str, ...] = ()


def explain_needs(
    needs: Needs, *, now: datetime, changes: QueueChanges | None = None
) -> NeedsExplanation:
    """Which queues' pilots would take a waiting job with these needs, were the queues changed.

    Six queries at most.
    """
    changes = changes or QueueChanges()
    queues, standing = queues_and_standings(now)
    unknown = [word.message for word in unknown_terms(queues, needs)]
    pilots = live_pilots_by_queue()
    limits = [limit for limit in reached_limits(now) if limit.kind.covers(needs)]
    fits = [
        _fit(
            changes.applied(queue),
            needs,
            closed="" if queue.is_open else _closed(queue, standing[queue.site_id]),
            limit=_limit(limits, needs, queue),
            is_off=not queue.is_enabled or not queue.site.is_enabled,
            pilots=pilots.get(queue.pk, {}),
        )
        for queue in queues
    ]
    fits.sort(key=lambda fit: (bool(fit.refusal), bool(fit.closed), fit.is_off, fit.is_shut))
    verdict, summary = _judged(fits)
    return NeedsExplanation(verdict, summary, tuple(fits), tuple(map(_sentence, unknown)))


def _sentence(message: str) -> str:
    return f"{message[0].upper()}{message[1:]}{'' if message.endswith('?') else '.'}"


def _closed(queue: Queue, standing: Standing) -> str:
    if not queue.is_enabled:
        return "the queue is switched off"
    return standing.reason


def _limit(limits: Sequence[ReachedLimit], needs: Needs, queue: Queue) -> str:
    """Why no more of these jobs may start at the queue's site now."""
    stopping = (limit.reason for limit in limits if limit.stops(needs, queue.site.name))
    return next((f"a running limit is reached, {reason}" for reason in stopping), "")


def _fit(
    queue: Queue, needs: Needs, *, closed: str, limit: str, is_off: bool, pilots: Mapping[str, int]
) -> QueueFit:
    return QueueFit(
        site=queue.site.name,
        queue=queue.name,
        refusal=offer_refusal(offered_resource(queue), needs),
        closed="; ".join(filter(None, (closed, limit))),
        pending_pilots=sum(pilots.get(state, 0) for state in PENDING),
        running_pilots=pilots.get(PilotState.RUNNING, 0),
        is_limited=bool(limit),
        is_shut=bool(closed),
        is_off=is_off,
    )


def _closed_queues(fits: list[QueueFit]) -> str:
    told = [
        f"{fit.site}/{fit.queue} {'is closed' if fit.is_shut else 'takes none now'}: {fit.closed}"
        for fit in fits[:_TOLD]
    ]
    rest = [f"{len(fits) - _TOLD} more"] if len(fits) > _TOLD else []
    return f"{'; '.join([*told, *rest])}."


def _judged(fits: list[QueueFit]) -> tuple[MatchVerdict, str]:
    if not fits:
        return MatchVerdict.NEVER, "There is no queue."
    fitting = [fit for fit in fits if not fit.refusal]
    if not fitting:
        reasons = grouped_reasons((f"{fit.site}/{fit.queue}", fit.refusal) for fit in fits)
        return MatchVerdict.NEVER, f"No queue can run it: {reasons}."
    usable = [fit for fit in fitting if not fit.closed]
    running_on = sum(fit.running_pilots for fit in fitting if fit.closed and not fit.is_limited)
    if not usable and running_on:
        return MatchVerdict.WAITING, (
            f"{_closed_queues(fitting)} No new pilot is sent, but "
            f"{running_on} that run{'s' if running_on == 1 else ''} there may still take it."
        )
    if not usable:
        return MatchVerdict.NOT_NOW, _closed_queues(fitting)
    pending = sum(fit.pending_pilots for fit in usable)
    running = sum(fit.running_pilots for fit in usable)
    return MatchVerdict.WAITING, (
        f"{len(usable)} of {len(fits)} queue{'s' if len(fits) > 1 else ''} can run it; there "
        f"{'1 pilot runs' if running == 1 else f'{running} pilots run'} and {pending} "
        f"wait{'s' if pending == 1 else ''} to start. It is taken when one "
        "of them is free and draws it."
    )
