"""Pages of failure groups: list, matrix of sites and causes, one group, and decisions about it.

The decisions are mute, resolve, reopen and categorise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from portal.lists.columns import Column
from portal.lists.failure_filters import FailureFilter
from portal.lists.job_filter import JobFilter
from portal.lists.sorting import Order as SortOrder
from portal.web.failures.lines import bars_of, cells_of, failure_lines, lines_of
from portal.web.lists.listing import mine_of
from portal.web.lists.paging import page_of
from portal.web.lists.sort_links import choices_of, heads_of
from portal.web.remarks.notes import notes_on
from portal.web.shared.forms import ReasonForm
from portal.web.shared.pages import page, render_page
from portal.web.shared.stale_forms import while_seen
from wms.actions.actions import Action
from wms.actions.arguments import Order
from wms.actions.failures import FAILURES
from wms.core.actors import Actor
from wms.core.database.counting import EXACT_UP_TO, count_up_to
from wms.core.errors import Conflict, NotFound, NotPermitted, PilotageError
from wms.core.selectors import user_ids
from wms.failures.models import Category, FailureGroup, Kind
from wms.failures.policy import may_change_rules, may_steer
from wms.failures.rules import rule_book
from wms.failures.selectors import (
    CountedGroup,
    Window,
    counted_groups,
    events_of_group,
    failures_in,
    find_group,
    messages_of,
    trends_of,
    visible_groups,
)
from wms.failures.site_counts import matrix_of, total_at_sites
from wms.failures.states import GroupState
from wms.jobs.selectors import visible_jobs
from wms.remarks.selectors import cares_of
from wms.remarks.states import SubjectKind

#: Most groups that are shown, and most that are counted by state.
_GROUPS = 25
_COUNTED = 2000
_EVENTS = 20
_COLUMNS = (
    Column("count", "Failures", {}, style="num"),
    Column("message", "Message", {}),
    Column("state", "State", {}),
    Column("category", "Category", {}),
    Column("trend", "Last day", {}),
    Column("first", "First seen", {}),
    Column("last", "Last seen", {}),
)
_LINES = 25
_SITES = 15
#: Parameters that choose which failures of a group are counted.
_CHOOSING = ("within", "site", "dag")


@dataclass(frozen=True, slots=True)
class StateFacet:
    """A state of groups, the number in it, and the link to only those."""

    state: str
    count: int
    query: str
    is_chosen: bool


@require_safe
@page
def error_list(request: HttpRequest) -> HttpResponse:
    """Failure groups of a time, most frequent first, and the matrix of sites and causes."""
    now = timezone.now()
    list_filter = _filter_of(request, request.GET, now)
    context = {
        "form": list_filter.form,
        "unknown": list_filter.unknown(),
        "windows": list(Window),
        "categories": Category.choices,
        "kinds": Kind.choices,
        "is_filtered": any(request.GET.values()),
        "book": rule_book(),
    }
    if list_filter.is_valid() and not list_filter.unknown():
        context |= _listed(request, list_filter, now)
    return render_page(request, "errors", context)


def _filter_of(request: HttpRequest, query: Mapping[str, str], now: datetime) -> FailureFilter:
    return FailureFilter(query, queryset=visible_groups(request.user), now=now, request=request)


def _listed(request: HttpRequest, list_filter: FailureFilter, now: datetime) -> dict[str, object]:
    window, site, dag_id = list_filter.window, list_filter.at_site, list_filter.of_dag
    user = request.user
    found = counted_groups(
        user, list_filter.at_any_time("state"), window, now=now, site=site, limit=_COUNTED + 1,
        dag_id=dag_id,
    )  # fmt: skip
    counts = Counter(hit.group.state for hit in found[:_COUNTED])
    wanted = list_filter.form.cleaned_data["state"]
    hits = [hit for hit in found if _passes(hit.group.state, wanted)]
    shown = _in_order(hits, list_filter.order)[:_GROUPS]
    matrix = matrix_of(
        user, hits, list_filter.at_any_time(), window, now=now, site=site, dag_id=dag_id
    )
    trends = trends_of(user, [hit.group.pk for hit in shown], now=now, site=site, dag_id=dag_id)
    return {
        "window": window,
        "since": window.since(now),
        "site": site,
        "dag_id": dag_id,
        "facets": _facets(request, counts, wanted),
        "all_query": _query(request, state=None),
        "mine": mine_of(request.GET, list_filter),
        "total": sum(counts.values()),
        "failures": sum(hit.count for hit in hits),
        "groups": len(hits),
        "is_cut": len(hits) > len(shown) or len(found) > _COUNTED,
        "sorted_among": _COUNTED if len(found) > _COUNTED else None,
        "order": list_filter.order,
        "heads": heads_of(_COLUMNS, list_filter, request.GET),
        "sorts": choices_of(list_filter, request.GET),
        "lines": lines_of(shown, trends),
        "cares": cares_of({SubjectKind.FAILURE: [hit.group for hit in shown]}, now=now),
        "matrix": matrix,
        "cells": cells_of(matrix, request.GET),
        "ways": {each.value: _query(request, within=each.value) for each in Window},
    }


def _in_order(hits: list[CountedGroup], order: SortOrder) -> list[CountedGroup]:
    """Groups in the order that was asked for; the query returns most failures first."""
    if order.sort.name == "count":
        return hits if order.is_falling else hits[::-1]
    seen = attrgetter(order.sort.field)
    return sorted(hits, key=lambda hit: (seen(hit.group), hit.group.pk), reverse=order.is_falling)


def _passes(state: str, wanted: object) -> bool:
    included = getattr(wanted, "included", ())
    return state not in getattr(wanted, "excluded", ()) and (not included or state in included)


def _facets(request: HttpRequest, counts: Counter[str], wanted: object) -> list[StateFacet]:
    chosen = set(getattr(wanted, "included", ()))
    return [
        StateFacet(state, counts[state], _query(request, state=state), chosen == {state})
        for state in GroupState.values
    ]


def _query(request: HttpRequest, **changes: str | None) -> str:
    query = request.GET.copy()
    for name, value in changes.items():
        query.pop(name, None)
        if value is not None:
            query[name] = value
    return f"?{query.urlencode()}"


@dataclass(frozen=True, slots=True)
class GroupFilter:
    """Filter of a group's failures; `fault` says which part of the address is invalid."""

    window: Window = Window.ALL
    site: str = ""
    owner: str = ""
    owner_id: int | None = None
    dag_id: int | None = None
    fault: str = ""


def _view_of(request: HttpRequest, now: datetime) -> GroupFilter:
    query = {name: request.GET[name] for name in _CHOOSING if name in request.GET}
    list_filter = _filter_of(request, query, now)
    if not list_filter.is_valid():
        return GroupFilter(fault="This time, site or DAG cannot be read.")
    owner = request.GET.get("owner", "")
    owner_id = user_ids([owner]).get(owner) if owner else None
    if owner and owner_id is None:
        return GroupFilter(fault=f"There is no user {owner[:100]}.")
    window = list_filter.window if "within" in query else Window.ALL
    return GroupFilter(window, list_filter.at_site, owner, owner_id, list_filter.of_dag)


@require_safe
@page
def error_page(request: HttpRequest, group_id: int) -> HttpResponse:
    """Page of one group: message, sites, trend, failures, decisions."""
    return _show(request, find_group(request.user, group_id))


def _show(
    request: HttpRequest,
    group: FailureGroup,
    *,
    opened: str = "",
    error: PilotageError | None = None,
) -> HttpResponse:
    now, user = timezone.now(), request.user
    view = _view_of(request, now)
    whose = {"owner_id": view.owner_id, "dag_id": view.dag_id}
    at_sites = total_at_sites(user, group, view.window, now=now, **whose)
    chosen = sum(count for name, count in at_sites if view.site in ("", name))
    failures = failures_in(user, view.window, now=now, group_id=group.pk, site=view.site, **whose)
    rows = page_of(failures, request.GET, page_size=_LINES)
    trend = trends_of(user, [group.pk], now=now, site=view.site, dag_id=view.dag_id)[group.pk]
    context = {
        "group": group,
        "view": view,
        "window": view.window,
        "since": view.window.since(now),
        "site": view.site,
        "at_sites": at_sites[:_SITES],
        "more_sites": max(0, len(at_sites) - _SITES),
        "chosen": chosen,
        "most": at_sites[0][1] if at_sites else 0,
        "trend": trend,
        "bars": bars_of(trend),
        "page": rows,
        "lines": failure_lines(rows.rows, messages_of(rows.rows)),
        "jobs": _jobs_of(request, group),
        "jobs_bound": EXACT_UP_TO,
        "events": list(events_of_group(group)[:_EVENTS]),
        "windows": list(Window),
        "ways": {each.value: _query(request, within=each.value, after=None, before=None)
                 for each in Window},
        "actions": FAILURES.possible_on_page(request.user, group),
        "notes": notes_on(SubjectKind.FAILURE, group, may_write=may_steer(user)),
        "may_change_rules": may_change_rules(user),
        "opened": opened,
        "error": error,
        "form": ReasonForm(request.POST or None),
    }  # fmt: skip
    return render_page(request, "error", context, status=error.status if error else 200)


def _jobs_of(request: HttpRequest, group: FailureGroup) -> int | None:
    """Number of jobs in the list that the group links to; None for groups of other things."""
    if group.kind != Kind.JOB:
        return None
    jobs = JobFilter({"failure": str(group.pk)}, queryset=visible_jobs(request.user))
    return count_up_to(jobs.qs, EXACT_UP_TO)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def steer(request: HttpRequest, group_id: int, event: str) -> HttpResponse:
    """Mute, resolve, reopen or categorise a group; a refusal is shown at the form that was sent.

    Whoever had to log in again comes here by GET, and is led to the form.
    """
    group = find_group(request.user, group_id)
    action = FAILURES.find_on_page(event)
    if action is None:
        raise NotFound(f"A failure group cannot be steered by {event!r}.")
    if request.method != "POST":
        return redirect("web:error", group_id=group.pk)
    try:
        _decide(request, group, action)
    except NotPermitted:
        raise
    except PilotageError as error:
        now = find_group(request.user, group_id)
        return _show(request, now, opened=event, error=error)
    return redirect("web:error", group_id=group.pk)


def _decide(request: HttpRequest, group: FailureGroup, action: Action) -> None:
    """Carry out the action on the group as the form showed it, with the form's arguments."""
    given = {each.name: request.POST.get(each.name, "") for each in action.arguments}
    reason = ReasonForm(request.POST).options()["reason"]
    rows = FailureGroup.objects.filter(pk=group.pk)
    decided = attrgetter("category" if "category" in given else "state")
    with while_seen(request, rows, decided, what=f"failure group {group.pk}"):
        order = Order(Actor.person(request.user), reason, given)
        if not action.act(group.pk, order).changed and not given:
            state = group.get_state_display()
            raise Conflict(f"The group is {state}: one cannot {action.name} it now.")
    told = " ".join([action.done, *given.values()])
    messages.success(request, f"Failure group {group.pk} {told}.")
