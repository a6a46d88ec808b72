"""Suspected worker nodes: how a suspicion begins, which jobs the node gets, how it ends.

A control loop, the rules for claims, selectors, and the service by which a person clears a node.
`matching.task_queues.suspected_nodes` decides which nodes are suspected. A pilot on a suspected
node gets one job in some minutes, and none that has failed elsewhere, so that what comes back from
the node is tried on others. The suspicion ends when some of these trials in a row did well, when
nothing has failed there for a while, or when a person says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Func, QuerySet, Value

from matching.task_queues.suspected_nodes import Rule, Suspect, is_cleared, suspects
from wms.accounting.walls import seen_or_all
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import Conflict, NotFound, ReasonRequired
from wms.core.models import User
from wms.jobs.models import Attempt
from wms.jobs.selectors import visible_jobs
from wms.pilots.monitoring.node_results import SiteTrials, trials_at, troubled_sites
from wms.pilots.protocol.refusals import Refusal
from wms.pilots.suspect_models import SuspectedNode
from wms.sites.models import Site
from wms.sites.policy import require_steering
from wms.sites.selectors import visible_sites
from wms.sites.services import note_at_site

RULE = Rule()
#: A suspected node gets a job so often.
TRIAL_PAUSE = timedelta(minutes=5)
#: Number of good trials in a row that ends a suspicion.
TRIALS_NEEDED = 3
#: Time without a failure that ends a suspicion.
QUIET = timedelta(hours=1)
_ACTOR = Actor.system("suspected-nodes")
_OUTCOME = Attempt.Outcome
_FAILED = frozenset({_OUTCOME.FAILED, _OUTCOME.NOT_RUN, _OUTCOME.LOST})


def run_cycle(now: datetime) -> dict[str, Any]:
    """End the suspicions that are over, and suspect further nodes."""
    ended = sum(_end_if_over(row, now) for row in current_suspects().order_by("pk"))
    sites = troubled_sites(now, least_failed=RULE.least_failed)
    begun = 0
    if sites:
        named = Site.objects.in_bulk(sites, field_name="name")
        for name, site_trials in sorted(trials_at(sites, now).items()):
            if name in named:
                begun += _suspect(named[name], site_trials, now)
    return {"suspected": begun, "ended": ended, "troubled_sites": len(sites)}


def current_suspects() -> QuerySet[SuspectedNode]:
    """Nodes that are suspected now, with their sites."""
    return SuspectedNode.objects.filter(ended_at=None).select_related("site")


def as_seen(user: User, nodes: Iterable[SuspectedNode]) -> list[SuspectedNode]:
    """Nodes as the user may see them: of the jobs that failed there only visible ones are named.

    Nor is a reason told that is of another's job. One query at most.
    """
    rows, jobs = list(nodes), seen_or_all(user, visible_jobs)
    if jobs is None:
        return rows
    named = {pk for row in rows for pk in row.failed_jobs}
    seen = set(jobs.filter(pk__in=named).values_list("pk", flat=True))
    for row in rows:
        latest = next(iter(row.failed_jobs), None)
        row.reason = row.reason if latest in seen else ""
        row.failed_jobs = [pk for pk in row.failed_jobs if pk in seen]
    return rows


def suspects_at(site: Site) -> QuerySet[SuspectedNode]:
    """Nodes of a site that are suspected now, by name."""
    return current_suspects().filter(site=site).order_by("host")


def described(row: SuspectedNode) -> str:
    """Figures of a suspicion, in words."""
    return (
        f"{row.failed} of {row.tried} payloads failed there, elsewhere at {row.site.name} "
        f"{row.others_failed} of {row.others_tried} of the same kinds"
    )


@transaction.atomic
def _suspect(site: Site, site_trials: SiteTrials, now: datetime) -> int:
    """Suspect the nodes of a site that deserve it; return how many are new."""
    known = {row.host: row for row in suspects_at(site).select_for_update(of=("self",))}
    begun = 0
    for each in suspects(site_trials.trials, RULE):
        row = known.get(each.host) or SuspectedNode(
            site=site, host=each.host, since=now, next_trial_at=now + TRIAL_PAUSE
        )
        _describe(row, each, site_trials.failed_jobs[each.host])
        if row.pk:
            row.save(update_fields=[*_figures(each), "failed_jobs", "reason"])
            continue
        row.save()
        begun += 1
        facts = {"host": row.host, **_figures(each)}
        note_at_site(
            site, "suspect", actor=_ACTOR, reason=f"worker node {row.host}: {described(row)}",
            facts=facts, at=now,
        )  # fmt: skip
    return begun


def _describe(row: SuspectedNode, suspect: Suspect, failed_jobs: Sequence[int]) -> None:
    for name, value in _figures(suspect).items():
        setattr(row, name, value)
    row.failed_jobs = list(failed_jobs)
    latest = Attempt.objects.filter(
        job_id=failed_jobs[0], host=row.host, outcome__in=_FAILED
    ).order_by("-number")
    row.reason = latest.values_list("reason", flat=True).first() or ""


def _figures(suspect: Suspect) -> dict[str, int]:
    figures: dict[str, int] = asdict(suspect)
    figures.pop("host")
    return figures


def _end_if_over(row: SuspectedNode, now: datetime) -> bool:
    """End a suspicion after trials that did well, or after a quiet time."""
    attempts = Attempt.objects.filter(pk__in=row.trials).order_by("pk")
    judged = [each for each in attempts if each.outcome in {_OUTCOME.DONE, *_FAILED}]
    failures = [each.outcome in _FAILED for each in judged]
    if is_cleared(failures, needed=TRIALS_NEEDED):
        return _end(row, now, actor=_ACTOR, reason=f"{TRIALS_NEEDED} trials in a row did well")
    ends = [each.ended_at for each in judged if each.outcome in _FAILED and each.ended_at]
    if now - max([row.since, *ends]) >= QUIET:
        minutes = int(QUIET.total_seconds() // 60)
        return _end(row, now, actor=_ACTOR, reason=f"nothing has failed there for {minutes} min")
    return False


@transaction.atomic
def _end(row: SuspectedNode, now: datetime, *, actor: Actor, reason: str) -> bool:
    still = SuspectedNode.objects.filter(pk=row.pk, ended_at=None)
    if not still.update(ended_at=now, ended_by=actor.name, end_reason=reason):
        return False
    note_at_site(
        row.site, "clear", actor=actor, reason=f"worker node {row.host}: {reason}",
        facts={"host": row.host}, at=now,
    )  # fmt: skip
    return True


def find_suspect(user: User, suspect_id: int) -> SuspectedNode:
    """Suspicion by its id, also one that is over. Raises NotFound."""
    rows = SuspectedNode.objects.filter(pk=suspect_id, site__in=visible_sites(user))
    row = rows.select_related("site").first()
    if row is None:
        raise NotFound(f"There is no suspected worker node {suspect_id}, or you may not see it.")
    [seen] = as_seen(user, [row])
    return seen


@transaction.atomic
def clear_node(suspect_id: int, *, actor: Actor, reason: str, now: datetime) -> SuspectedNode:
    """Suspect a node no longer: it gets jobs as any other one, and begins with a clean slate.

    Raises NotFound, NotPermitted, ReasonRequired, and Conflict when that is over already.
    """
    row = SuspectedNode.objects.select_related("site").filter(pk=suspect_id).first()
    if row is None:
        raise NotFound(f"There is no suspected worker node {suspect_id}.")
    require_steering(actor, "clear suspected worker nodes", row.site)
    if not (why := reason.strip()):
        raise ReasonRequired("clear")
    if not _end(row, now, actor=actor, reason=why):
        row.refresh_from_db()
        raise Conflict(f"{row.host} was cleared by {row.ended_by} already: {row.end_reason}.")
    record_action(
        "clear suspected worker node", target=f"site {row.site.name}", actor=actor, reason=why,
        facts={"host": row.host},
    )  # fmt: skip
    row.refresh_from_db()
    return row


def no_trial(suspect_id: int | None, now: datetime) -> Refusal | None:
    """Reason why the suspected node gets no job now; None when it may try one, or is none.

    Its row stays locked then, so that its pilots get one after the other. One that another pilot
    holds is as good as tried.
    """
    if suspect_id is None:
        return None
    locked = SuspectedNode.objects.select_for_update(of=("self",), skip_locked=True)
    row = locked.select_related("site").filter(pk=suspect_id, ended_at=None).first()
    if row is None:
        return Refusal("another pilot of this suspected node is given a job at this moment")
    if now >= row.next_trial_at:
        return None
    minutes = int(TRIAL_PAUSE.total_seconds() // 60)
    return Refusal(
        f"the worker node {row.host} is suspected: {described(row)}. It gets one job in {minutes} "
        f"minutes to prove itself, the next after {row.next_trial_at:%H:%M:%S} UTC"
    )


def note_trial(suspect_id: int, attempt_id: int, now: datetime) -> None:
    """Note an attempt that was given to the suspected node as a trial."""
    SuspectedNode.objects.filter(pk=suspect_id).update(
        next_trial_at=now + TRIAL_PAUSE,
        trials=Func(F("trials"), Value(attempt_id), function="array_append"),
    )


class Suspicions:
    """Suspicions of some nodes, also those that are over. One query."""

    def __init__(self, hosts: Collection[str]) -> None:
        rows = SuspectedNode.objects.filter(host__in=set(hosts)).select_related("site")
        self._rows = list(rows) if hosts else []

    def has(self, site: str, host: str, at: datetime) -> bool:
        """Whether the node of this site was suspected at that time."""
        return any(
            row.host == host
            and row.site.name == site
            and row.since <= at
            and (row.ended_at is None or at <= row.ended_at)
            for row in self._rows
        )
