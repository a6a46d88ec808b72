"""The list of TaskQueues and a TaskQueue's page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from portal.filters import TaskQueueFilter
from portal.web import explained
from portal.web.needs import facts_of
from portal.web.pages import REFRESH_S, Way, is_part, may_configure, page, refusal, render_page
from portal.web.paging import PAGE_SIZE
from portal.web.verdicts import JOB_VERDICTS
from wms.core.errors import NotFound
from wms.dags import explaining
from wms.jobs.models import Job
from wms.jobs.selectors import visible_jobs
from wms.taskqueues import listing
from wms.taskqueues.listing import Border, OldJob, Order

_ORDERS = {
    Order.WAITING: "Most waiting",
    Order.OLDEST: "Oldest job",
    Order.PRIORITY: "Highest priority",
}
_PLACES = ("after",)
#: A list of more than so many is refreshed seldom: to count them all takes a while.
_MANY = 5000
_SELDOM_S = 30


@dataclass(frozen=True, slots=True)
class Choice:
    """A link to the same list, ordered or narrowed in another way."""

    label: Any
    query: str
    is_chosen: bool
    count: int = 0


@dataclass(frozen=True, slots=True)
class OldJobLine:
    """A waiting job with its row; the row is missing when somebody removed the job meanwhile."""

    waiting: OldJob
    job: Job | None


@require_safe
@page
def task_queue_list(request: HttpRequest) -> HttpResponse:
    """TaskQueues with waiting jobs; with a filter that does not parse, only its faults."""
    every = listing.visible_task_queues(request.user)
    chosen = TaskQueueFilter(request.GET, queryset=every)
    context = {"form": chosen.form, "is_filtered": any(request.GET.values())}
    if chosen.is_valid():
        counts = listing.counts_by_segment(
            TaskQueueFilter(_without(request.GET, "cpu_time_s"), queryset=every).qs
        )
        context |= _listed(request, chosen, counts)
        context["refresh_s"] = _SELDOM_S if sum(counts.values()) > _MANY else REFRESH_S
    return render_page(request, "task_queues", context)


def _listed(
    request: HttpRequest, chosen: TaskQueueFilter, counts: dict[int, int]
) -> dict[str, Any]:
    order, segment = chosen.order, chosen.form.cleaned_data["cpu_time_s"]
    after = Border.parse(request.GET.get("after", ""), order)
    found = listing.task_queue_page(chosen.qs, order=order, after=after, limit=PAGE_SIZE)
    first = _way(request.GET) if after is not None else ""
    following = _way(request.GET, after=str(found.following)) if found.following else ""
    return {
        "lines": found.lines,
        "total": counts.get(int(segment), 0) if segment else sum(counts.values()),
        "first": first,
        "following": following,
        "orders": [
            Choice(label, _way(request.GET, sort=each.value), each is order)
            for each, label in _ORDERS.items()
        ],
        "segments": _segments(request.GET, counts, segment),
    }


def _segments(query: QueryDict, counts: dict[int, int], chosen: Any) -> list[Choice]:
    without = _without(query, "cpu_time_s")
    every = Choice("", _way(without), chosen is None, sum(counts.values()))
    return [every] + [
        Choice(end_s, _way(without, cpu_time_s=end_s), chosen == end_s, count)
        for end_s, count in counts.items()
    ]


def _without(query: QueryDict, *names: str) -> QueryDict:
    changed = query.copy()
    for name in (*names, *_PLACES):
        changed.pop(name, None)
    return changed


def _way(query: QueryDict, **others: Any) -> str:
    changed = _without(query)
    for name, value in others.items():
        changed[name] = str(value)
    return f"?{changed.urlencode()}"


@require_safe
@page
def task_queue_page(request: HttpRequest, task_queue_id: int) -> HttpResponse:
    """Everything about one TaskQueue. One that goes while its page is open says so there."""
    try:
        context = _detail(request, task_queue_id)
    except NotFound as error:
        if not is_part(request):
            return refusal(request, error, Way("All TaskQueues", reverse("web:task-queues")))
        context = {"gone": str(error)}
    return render_page(request, "task_queue", context)


def _detail(request: HttpRequest, task_queue_id: int) -> dict[str, Any]:
    detail = listing.find_task_queue_detail(request.user, task_queue_id)
    answer = explaining.answer_for_task_queue(request.user, task_queue_id, now=timezone.now())
    return {
        "line": detail.line,
        "facts": facts_of(detail.line.needs),
        "origin": detail.origin,
        "priorities": detail.priorities,
        "oldest": _with_jobs(request, detail.oldest),
        "answer": answer,
        "meaning": JOB_VERDICTS[answer.verdict],
        "queues": explained.queue_lines(answer.queues) if answer.queues else None,
        "may_configure": may_configure(request),
    }


def _with_jobs(request: HttpRequest, oldest: Sequence[OldJob]) -> list[OldJobLine]:
    ids = [waiting.job_id for waiting in oldest]
    jobs = visible_jobs(request.user).only("name").in_bulk(ids)
    return [OldJobLine(waiting, jobs.get(waiting.job_id)) for waiting in oldest]
