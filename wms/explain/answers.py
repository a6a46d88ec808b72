"""Answers to "why does this not run?" for DAGs, jobs, TaskQueues, sites and pasted ads.

For a site: which idle DAGs and waiting jobs it takes. What-if changes are answered beside it. All
is computed by the code that decides, from the data of the next negotiation cycle. Nothing is
written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import wraps
from typing import ParamSpec, TypeVar

from matching.ads.ad_cost import check_cost
from matching.ads.ad_formats import parse_ad
from matching.ads.classads import AdError
from matching.negotiation import acceptance
from matching.negotiation.cycle_sites import Offer
from matching.negotiation.decision import NEWCOMER_PRIORITY, Bounds, Request, Usage
from matching.negotiation.explanation import (
    Explanation,
    MatchVerdict,
    explain,
    with_changes,
)
from matching.negotiation.near_misses import NearMiss, near_misses
from matching.negotiation.site_explanation import SiteExplanation, explain_site
from matching.negotiation.unmatched_reasons import Kind
from matching.task_queues.needs import Needs
from wms.accounting import selectors as accounting
from wms.core.conf import conf
from wms.core.errors import InvalidInput, NotFound
from wms.core.heavy import heavy_place
from wms.core.models import User
from wms.dags.models import Dag, NegotiationCycle
from wms.dags.negotiation import requests as demand
from wms.dags.negotiation.cycle import read_offers
from wms.dags.negotiation.node_fit import current_fitter
from wms.dags.negotiation.records import seen_requests
from wms.dags.reading.selectors import find_dag
from wms.dags.states import DAG_TERMINAL, DagState
from wms.explain.ad_changes import WhatIfChanges, changed_offers, checked
from wms.explain.avoided_sites import AvoidedSite, avoidance_sentences, avoided_sites
from wms.explain.input_data import with_inputs
from wms.explain.needs import NeedsExplanation, explain_needs
from wms.explain.queue_changes import SiteJobs, changed_needs, jobs_for_site, queue_changes
from wms.jobs.binding.scopes import needs_now
from wms.jobs.input_data.sets import near_inputs
from wms.jobs.input_data.wanted import Located
from wms.jobs.models import Job
from wms.jobs.selectors import find_job
from wms.jobs.states import TERMINAL, WITH_PILOT, JobState
from wms.placement.catalogue.locating import inputs_of
from wms.sites.selectors import visible_sites
from wms.sites.standing import Standing, standings
from wms.taskqueues.selectors import avoided_hosts, find_task_queue

_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")
#: Time limits of an answer, for which a person waits.
BOUNDS = Bounds(time.monotonic, request_s=2.0, decision_s=3.0)
#: Limit of different ads of idle DAGs that are evaluated for an answer about a site.
_MAX_ADS = 500


@dataclass(frozen=True, slots=True)
class Turn:
    """Position of a DAG in the order of idle DAGs; all numbers count from 1.

    `submitter_place` is the position of the owner among submitters of idle DAGs, best priority
    first; `own_place` that of the DAG among the idle DAGs of its submitter.
    """

    submitter_place: int
    submitters: int
    own_place: int
    own_dags: int


@dataclass(frozen=True, slots=True)
class DagAnswer:
    """Answer for a DAG or a pasted ad; `after` is the explanation with the changes.

    `avoided` are the sites that the DAG avoids now. `sites` are the answers of all sites to a DAG
    whose jobs are bound at the claim.
    """

    verdict: MatchVerdict
    summary: str
    explanation: Explanation
    misses: tuple[NearMiss, ...]
    after: Explanation | None = None
    turn: Turn | None = None
    avoided: tuple[AvoidedSite, ...] = ()
    sites: tuple[acceptance.SiteAnswer, ...] = ()


@dataclass(frozen=True, slots=True)
class JobAnswer:
    """Answer for a job or a TaskQueue; `queues` is None for a job that does not wait.

    `after` is the explanation with the changes. `avoided_hosts` are worker nodes whose pilots leave
    the job to others for now, unless there are no others. `inputs` tell where the input data of the
    job are, if it names any.
    """

    verdict: MatchVerdict
    summary: str
    queues: NeedsExplanation | None = None
    after: NeedsExplanation | None = None
    avoided_hosts: tuple[str, ...] = ()
    inputs: Located | None = None


@dataclass(frozen=True, slots=True)
class SiteAnswer:
    """Answer for a site: which idle DAGs it takes; `after` is the explanation with the changes.

    `jobs` and `jobs_after` are the waiting jobs that the site's queues could run.
    """

    standing: Standing
    summary: str
    explanation: SiteExplanation | None
    after: SiteExplanation | None = None
    jobs: SiteJobs | None = None
    jobs_after: SiteJobs | None = None


def _in_heavy_place(answer: Callable[_Arguments, _Answer]) -> Callable[_Arguments, _Answer]:
    """Decorator that limits concurrent answers, since each may use a processor for seconds."""

    @wraps(answer)
    def limited(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Answer:
        user = args[0]
        assert isinstance(user, User)
        with heavy_place(user):
            return answer(*args, **kwargs)

    return limited


@_in_heavy_place
def answer_for_dag(
    user: User, dag_id: int, *, now: datetime, changes: WhatIfChanges | None = None
) -> DagAnswer:
    """Answer why a DAG has no site. Raises NotFound, and InvalidInput for faulty changes."""
    dag = find_dag(user, dag_id)
    (request,) = demand.requests_of(Dag.objects.filter(pk=dag.pk), current_fitter())
    answer = _answer(request, changes or WhatIfChanges(), now, takes_places=not dag.binds_jobs)
    if dag.binds_jobs:
        answer = _with_sites(answer, request, now)
    verdict, summary = _verdict_by_state(dag, answer)
    avoided = avoided_sites(request, now)
    if dag.state == DagState.IDLE:
        summary = " ".join([summary, *avoidance_sentences(avoided)])
    turn = _turn(request) if dag.state == DagState.IDLE and not dag.binds_jobs else None
    return replace(answer, verdict=verdict, summary=summary, turn=turn, avoided=tuple(avoided))


@_in_heavy_place
def answer_for_ad(
    user: User, text: str, *, now: datetime, changes: WhatIfChanges | None = None
) -> DagAnswer:
    """Answer for an idle DAG of the user that had this ad. Raises InvalidInput."""
    try:
        expressions = parse_ad(text)
        check_cost(expressions)
    except AdError as error:
        raise InvalidInput.of(error.message, field="ad", line=error.line) from error
    request = Request(
        dag_id=0,
        expressions=expressions,
        values={"MyType": "Job", "TargetType": "Machine", "Owner": user.username},
        submitter=demand.submitter_key(user.pk, None),
    )
    return _answer(request, changes or WhatIfChanges(), now)


def answer_for_job(
    user: User, job_id: int, *, now: datetime, changes: WhatIfChanges | None = None
) -> JobAnswer:
    """Answer why a job does not run. Raises NotFound, and InvalidInput for faulty changes."""
    job = find_job(user, job_id)
    if job.state == JobState.WAITING:
        inputs, own = inputs_of(job), needs_now(Needs.from_dict(job.needs), job.late)
        needs = near_inputs(own, inputs)
        before, after = _needs_explained(needs, changes or WhatIfChanges(), now)
        hosts = avoided_hosts(job.pk, now - timedelta(seconds=conf().retry_patience_s))
        summary = f"{before.summary}{_avoided_hosts_sentence(hosts)}"
        verdict, summary = with_inputs(before.verdict, summary, inputs, own.sites)
        return JobAnswer(verdict, summary, before, after, hosts, inputs)
    return _answer_by_state(job)


def _avoided_hosts_sentence(hosts: Sequence[str]) -> str:
    """Sentence about the worker nodes that a waiting job avoids at first, or ''."""
    if not hosts:
        return ""
    minutes = conf().retry_patience_s / 60
    named = ", ".join(hosts)
    return f" It failed on {named}: for {minutes:g} minutes other worker nodes get it first."


def _needs_explained(
    needs: Needs, changes: WhatIfChanges, now: datetime
) -> tuple[NeedsExplanation, NeedsExplanation | None]:
    """Explanations of the needs as they are, and with the changes if there are any."""
    before = explain_needs(needs, now=now)
    if not (changes.needs or changes.queues):
        return before, None
    changed, offers = changed_needs(needs, changes.needs), queue_changes(changes.queues)
    return before, explain_needs(changed, now=now, changes=offers)


def _answer_by_state(job: Job) -> JobAnswer:
    reason = f": {job.state_reason}" if job.state_reason else ""
    if job.state in TERMINAL:
        return JobAnswer(MatchVerdict.ENDED, f"The job is {job.state}{reason}.")
    if job.state in WITH_PILOT:
        return JobAnswer(MatchVerdict.BOUND, f"The job is {job.state}: a pilot has it.")
    return JobAnswer(MatchVerdict.NOT_ALLOWED, f"The job is {job.state}{reason}.")


def answer_for_task_queue(
    user: User, task_queue_id: int, *, now: datetime, changes: WhatIfChanges | None = None
) -> JobAnswer:
    """Answer why the jobs of a TaskQueue wait. Raises NotFound, InvalidInput for faulty changes."""
    queue = find_task_queue(user, task_queue_id)
    return answer_for_demand(queue.needs, queue.waiting_jobs, now=now, changes=changes)


def answer_for_demand(
    needs: Needs, waiting_jobs: int, *, now: datetime, changes: WhatIfChanges | None = None
) -> JobAnswer:
    """Answer why this number of jobs with these needs wait. Raises InvalidInput."""
    before, after = _needs_explained(needs, changes or WhatIfChanges(), now)
    if not waiting_jobs:
        return JobAnswer(MatchVerdict.ENDED, "No job waits in this TaskQueue.", before, after)
    jobs = "1 job waits" if waiting_jobs == 1 else f"{waiting_jobs} jobs wait"
    return JobAnswer(before.verdict, f"{jobs}. {before.summary}", before, after)


@_in_heavy_place
def answer_for_site(
    user: User, name: str, *, now: datetime, changes: WhatIfChanges | None = None
) -> SiteAnswer:
    """Answer which idle DAGs a site would take now. Raises NotFound and InvalidInput."""
    site = visible_sites(user).filter(name=name).first()
    if site is None:
        raise NotFound(f"There is no site {name!r}.")
    standing = standings(now)[site.pk]
    changes = changes or WhatIfChanges()
    jobs, jobs_after = jobs_for_site(user, site.pk, queue_changes(changes.queues))
    offers = [offer for offer in read_offers(now) if offer.site_id == site.pk]
    if not offers:
        summary = "The site has no valid ad: it is not published."
        return SiteAnswer(standing, summary, None, jobs=jobs, jobs_after=jobs_after)
    fitter = current_fitter(stopwatch=time.monotonic, limit_s=BOUNDS.decision_s)
    idle = seen_requests(user, demand.idle_requests(fitter))
    left_out = len(idle) - len(requests := _limited_by_ads(idle))
    before = explain_site(offers[0], requests, now, bounds=BOUNDS)
    after = None
    if changes.dag or changes.sites:
        dag_changes = checked(changes.dag, "dag")
        changed = [with_changes(request, dag_changes) for request in requests]
        offer = changed_offers(offers, changes, changed)[0]
        after = explain_site(offer, changed, now, bounds=BOUNDS)
        after = replace(after, unseen=after.unseen + left_out)
    before = replace(before, unseen=before.unseen + left_out)
    summary = _site_summary(standing, before)
    return SiteAnswer(standing, summary, before, after, jobs, jobs_after)


def _limited_by_ads(requests: Sequence[Request]) -> list[Request]:
    """Requests with the first different ads, up to a limit, since a person waits for the answer."""
    ads: set[tuple[tuple[str, str], ...]] = set()
    kept = []
    for request in requests:
        ad = tuple(request.expressions.items())
        if ad in ads or len(ads) < _MAX_ADS:
            ads.add(ad)
            kept.append(request)
    return kept


def _site_summary(standing: Standing, explanation: SiteExplanation) -> str:
    state = f"The site is {standing.reason}." if standing.kind else "The site takes DAGs."
    unseen = f" {explanation.unseen} more were not looked at." if explanation.unseen else ""
    if not explanation.dags:
        return f"{state}{unseen or ' No DAG is idle.'}"
    counts = "; ".join(f"{count} {stand.value}" for stand, count in explanation.stands.items())
    return f"{state} Of {explanation.dags} idle DAGs: {counts}.{unseen}"


def _with_sites(answer: DagAnswer, request: Request, now: datetime) -> DagAnswer:
    """The answer with those of all sites, and a summary of them."""
    sites = acceptance.answers_of_sites(request, read_offers(now), now, bounds=BOUNDS)
    if not answer.explanation.would_match:
        return replace(answer, sites=sites)
    return replace(answer, sites=sites, summary=_accepting_sentence(sites))


def _accepting_sentence(sites: Sequence[acceptance.SiteAnswer]) -> str:
    accepting = sum(each.accepts for each in sites)
    return f"Its jobs may run at {accepting} of {len(sites)} site{'s' * (len(sites) != 1)}."


def _answer(
    request: Request, changes: WhatIfChanges, now: datetime, *, takes_places: bool = True
) -> DagAnswer:
    """Answer for a request; one that takes no places is asked for as if no site had any DAG."""
    offers = read_offers(now) if takes_places else acceptance.without_places(read_offers(now))
    before = _explained(request, offers, now, takes_places=takes_places)
    after = None
    if changes.dag or changes.sites:
        changed = with_changes(request, checked(changes.dag, "dag"))
        after = _explained(
            changed,
            changed_offers(offers, changes, [changed]),
            now,
            takes_places=takes_places,
        )
    misses = near_misses(request, offers, now, bounds=BOUNDS)
    return DagAnswer(before.verdict, before.summary, before, misses, after)


def _explained(
    request: Request, offers: Sequence[Offer], now: datetime, *, takes_places: bool
) -> Explanation:
    limits = demand.concurrency_limits([request])
    usage = demand.usage(offers) if takes_places else Usage()
    return explain(request, offers, usage, limits, now, bounds=BOUNDS)


def _verdict_by_state(dag: Dag, answer: DagAnswer) -> tuple[MatchVerdict, str]:
    """Verdict and summary for a stored DAG, by its state and the last negotiation cycle."""
    if dag.state in DAG_TERMINAL:
        return MatchVerdict.ENDED, f"The DAG is {dag.state}."
    if dag.state == DagState.HELD:
        return MatchVerdict.NOT_ALLOWED, f"The DAG is held: {dag.state_reason}"
    if dag.is_followed:
        return MatchVerdict.NOT_ALLOWED, "The DAG is run elsewhere, and followed by its log."
    if dag.state == DagState.RUNNING:
        if dag.binds_jobs:
            return MatchVerdict.BOUND, f"The DAG runs. {_accepting_sentence(answer.sites)}"
        return MatchVerdict.BOUND, f"The DAG runs at {dag.site}."
    if answer.verdict is not MatchVerdict.WOULD_MATCH:
        return answer.verdict, answer.summary
    last = NegotiationCycle.objects.order_by("-started_at").first()
    is_seen = last is not None and last.started_at >= dag.state_since
    if not is_seen or dag.unmatched_kind == Kind.UNSEEN:
        return MatchVerdict.NOT_LOOKED_AT, f"No negotiation has looked at it yet. {answer.summary}"
    return MatchVerdict.WAITING, f"Others came first in the last negotiation. {answer.summary}"


def _turn(request: Request) -> Turn:
    priorities = {
        demand.submitter_key(share.user_id, share.group_id): share.effective_priority
        for share in accounting.submitters()
    }
    idle = demand.idle_by_submitter()
    order = sorted(idle, key=lambda key: (priorities.get(key, NEWCOMER_PRIORITY), key))
    own = idle.get(request.submitter, [])
    return Turn(
        submitter_place=order.index(request.submitter) + 1 if own else 0,
        submitters=len(order),
        own_place=own.index(request.dag_id) + 1 if request.dag_id in own else 0,
        own_dags=len(own),
    )
