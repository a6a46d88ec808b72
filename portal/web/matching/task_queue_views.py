"""Pages of TaskQueues: the list, and one with its jobs and the queues that can run them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from portal.lists.filter_fields import Chosen
from portal.lists.filters import TaskQueueFilter
from portal.lists.registry import find_list
from portal.web.explain import answers as explained
from portal.web.explain.verdicts import JOB_VERDICTS
from portal.web.jobs.needs import facts_of
from portal.web.lists.listing import Facet, framed, is_valid_filter, show_listing
from portal.web.lists.paging import PAGE_SIZE, Page, narrowed, way
from portal.web.shared.pages import (
    REFRESH_S,
    Link,
    is_part,
    may_configure,
    page,
    refusal,
    render_page,
)
from wms.core.database.counting import Count
from wms.core.errors import NotFound
from wms.explain import answers as explaining
from wms.jobs.models import Job
from wms.jobs.selectors import visible_jobs
from wms.taskqueues import listing
from wms.taskqueues.listing import Border, OldJob, Order, TaskQueueLine

#: A list of more than so many is refreshed seldom: to count them all takes a while.
_MANY = 5000
_SELDOM_S = 30


@dataclass(frozen=True, slots=True)
class OldJobLine:
    """A waiting job with its row; None if the job was removed meanwhile."""

    waiting: OldJob
    job: Job | None


@require_safe
@page
def task_queue_list(request: HttpRequest) -> HttpResponse:
    """TaskQueues with waiting jobs; with an invalid filter, only its faults."""
    kind = find_list("task-queues")
    list_filter = kind.filter_of(request.GET, request.user)
    if not is_valid_filter(list_filter):
        return show_listing(request, framed(request, kind, list_filter))
    counts = listing.counts_by_segment(list_filter.without("cpu_time_s"))
    total = sum(counts.values())
    chosen: Chosen = list_filter.form.cleaned_data["cpu_time_s"] or Chosen()
    page = _page_in_order(request, list_filter)
    found = framed(
        request,
        kind,
        list_filter,
        facets=_segments(request.GET, counts, chosen),
        total=Count(total),
        chosen_total=Count(sum(n for end_s, n in counts.items() if _has(chosen, end_s))),
        page=page,
        lines=page.rows,
    )
    refresh_s = _SELDOM_S if total > _MANY else REFRESH_S
    return show_listing(request, found, refresh_s=refresh_s)


def _page_in_order(request: HttpRequest, list_filter: TaskQueueFilter) -> Page[TaskQueueLine]:
    order = Order(list_filter.order.text)
    after = Border.parse(request.GET.get("after", ""), order)
    found = listing.task_queue_page(list_filter.qs, order=order, after=after, limit=PAGE_SIZE)
    return Page(
        rows=found.lines,
        newer=way(request.GET) if after is not None else "",
        older=way(request.GET, after=found.following) if found.following else "",
    )


def _segments(query: QueryDict, counts: dict[int, int], chosen: Chosen) -> list[Facet]:
    return [
        Facet(
            end_s,
            count,
            narrowed(query, "cpu_time_s", None if _is_one(chosen, end_s) else [str(end_s)]),
            _is_one(chosen, end_s),
        )
        for end_s, count in counts.items()
    ]


def _is_one(chosen: Chosen, end_s: int) -> bool:
    return bool(chosen.included) and _has(chosen, end_s)


def _has(chosen: Chosen, end_s: int) -> bool:
    """True for a segment of CPU time that the filter includes."""
    is_in = [span.has(end_s) for span in chosen.included]
    return (any(is_in) or not is_in) and not any(span.has(end_s) for span in chosen.excluded)


@require_safe
@page
def task_queue_page(request: HttpRequest, task_queue_id: int) -> HttpResponse:
    """Page of one TaskQueue. A page that is open when its TaskQueue is removed says so."""
    try:
        context = _detail(request, task_queue_id)
    except NotFound as error:
        if not is_part(request):
            return refusal(request, error, Link("All TaskQueues", reverse("web:task-queues")))
        context = {"gone": str(error)}
    return render_page(request, "task_queue", context)


def _detail(request: HttpRequest, task_queue_id: int) -> dict[str, Any]:
    detail = listing.find_task_queue_detail(request.user, task_queue_id)
    line = detail.line
    answer = explaining.answer_for_demand(line.needs, line.waiting_jobs, now=timezone.now())
    return {
        "line": line,
        "facts": facts_of(line.needs),
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
