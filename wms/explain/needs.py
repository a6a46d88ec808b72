"""Explanation why waiting jobs do not run: their needs against queues, limits and pilots.

It tells for each queue whether it can run them, and if not, why never or why not now; sums this up
in a verdict; and names what in the needs no site offers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from matching.negotiation.explanation import MatchVerdict
from matching.negotiation.unmatched_reasons import grouped_reasons
from matching.task_queues.needs import Needs
from matching.task_queues.published import PublishedHere
from matching.task_queues.requirements import taking_refusal
from wms.explain.private_pilots import barred_owners
from wms.explain.queue_changes import QueueChanges
from wms.jobs.limits import ReachedLimit, reached_limits
from wms.pilots.credentials.choice import Choices
from wms.pilots.program.published import published_here
from wms.pilots.selectors import live_pilots_by_queue
from wms.pilots.states import PENDING, PilotState
from wms.sites.frontends.entries import EntriesByGroup, is_private
from wms.sites.models import Queue
from wms.sites.selectors import offered_resource
from wms.sites.standing import Standing, queues_and_standings
from wms.sites.vocabulary import unknown_terms

#: Limit of closed queues that the summary names.
_MAX_NAMED = 5


@dataclass(frozen=True, slots=True)
class QueueFit:
    """Fit of a queue to a job's needs: `refusal` is why never, `closed` why not now.

    `is_unsent`: none of its pilots is ever sent for the job, but one that is there may take it.

    `is_limited`: none takes it now, not even one that runs: a running limit is reached, or the
    owner of private pilots gets no more work. `is_shut`: closed for another reason. `is_off`:
    switched off.
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
    is_unsent: bool = False


@dataclass(frozen=True, slots=True)
class NeedsExplanation:
    """Explanation whether and where jobs with some needs can run; fitting queues come first.

    `unknown` has a sentence for each name in the needs that no site, queue or pilot has today.
    """

    verdict: MatchVerdict
    summary: str
    queues: tuple[QueueFit, ...]
    unknown: tuple[str, ...] = ()


def explain_needs(
    needs: Needs, *, now: datetime, changes: QueueChanges | None = None
) -> NeedsExplanation:
    """Explanation for waiting jobs with these needs, with changes of queues if given.

    At most nine queries, two more where requirements ask for what checks publish, and three more
    where there are private pilots.
    """
    changes = changes or QueueChanges()
    queues, standing = queues_and_standings(now)
    unknown = [word.message for word in unknown_terms(queues, needs)]
    published = published_here(queues, now=now) if "_" in needs.requirements else {}
    limits = [limit for limit in reached_limits(now) if limit.kind.covers(needs)]
    barred = barred_owners(queues, needs)
    entries = EntriesByGroup(queues)
    frontend_id = entries.frontend_of(needs)
    pilots = live_pilots_by_queue(of_frontend=frontend_id)
    choices = Choices(now)
    fits = [
        _fit(
            changes.applied(queue),
            needs,
            closed=choices.of(queue, None if is_private(queue) else frontend_id).refusal
            if queue.is_open
            else _closed(queue, standing[queue.site_id]),
            limit=_limit(limits, needs, queue) or barred.get(queue.pk, ""),
            is_off=not queue.is_enabled or not queue.site.is_enabled,
            pilots=pilots.get(queue.pk, {}),
            not_served=entries.refusal(queue, needs),
            published=published.get(queue.pk),
        )
        for queue in queues
    ]
    fits.sort(key=lambda fit: (bool(fit.refusal), bool(fit.closed), fit.is_off, fit.is_shut))
    verdict, summary = _verdict_and_summary(fits)
    return NeedsExplanation(verdict, summary, tuple(fits), tuple(map(_sentence, unknown)))


def _sentence(message: str) -> str:
    return f"{message[0].upper()}{message[1:]}{'' if message.endswith('?') else '.'}"


def _closed(queue: Queue, standing: Standing) -> str:
    if not queue.is_enabled:
        return "the queue is switched off"
    return standing.reason


def _limit(limits: Sequence[ReachedLimit], needs: Needs, queue: Queue) -> str:
    """Reason of a running limit that keeps these jobs from the queue's site, or ''."""
    stopping = (limit.reason for limit in limits if limit.stops(needs, queue.site.name))
    return next((f"a running limit is reached, {reason}" for reason in stopping), "")


def _fit(
    queue: Queue,
    needs: Needs,
    *,
    closed: str,
    limit: str,
    is_off: bool,
    pilots: Mapping[str, int],
    not_served: str,
    published: PublishedHere | None,
) -> QueueFit:
    offer = replace(offered_resource(queue), publishes=published)
    refusal = taking_refusal(offer, needs) or not_served
    unsent = "" if refusal else offer.unsent_reason(needs)
    return QueueFit(
        site=queue.site.name,
        queue=queue.name,
        refusal=refusal or unsent,
        closed="; ".join(filter(None, (closed, limit))),
        pending_pilots=sum(pilots.get(state, 0) for state in PENDING),
        running_pilots=pilots.get(PilotState.RUNNING, 0),
        is_limited=bool(limit),
        is_shut=bool(closed),
        is_off=is_off,
        is_unsent=bool(unsent),
    )


def _closed_queues(fits: list[QueueFit]) -> str:
    sentences = [
        f"{fit.site}/{fit.queue} {'is closed' if fit.is_shut else 'takes none now'}: {fit.closed}"
        for fit in fits[:_MAX_NAMED]
    ]
    rest = [f"{len(fits) - _MAX_NAMED} more"] if len(fits) > _MAX_NAMED else []
    return f"{'; '.join([*sentences, *rest])}."


def _verdict_and_summary(fits: list[QueueFit]) -> tuple[MatchVerdict, str]:
    if not fits:
        return MatchVerdict.NEVER, "There is no queue."
    fitting = [fit for fit in fits if not fit.refusal]
    if not fitting:
        reasons = grouped_reasons((f"{fit.site}/{fit.queue}", fit.refusal) for fit in fits)
        there = sum(fit.running_pilots for fit in fits if fit.is_unsent and not fit.is_limited)
        if not there:
            return MatchVerdict.NEVER, f"No queue can run it: {reasons}."
        return MatchVerdict.WAITING, (
            f"No pilot is sent for it: {reasons}. But {there} that "
            f"run{'s' if there == 1 else ''} there may still take it."
        )
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
