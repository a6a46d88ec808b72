"""Efficiency page: used and wasted core-seconds by site, user, group, label, day or month; CSV."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_safe

from portal.shared.efficiency import EfficiencyQuery, as_csv, read_question
from portal.web.records.waste import MOST_LINES, shown_lines
from portal.web.shared.pages import page
from wms.accounting.accounts import UseBy

_DAYS_OFFERED = (1, 7, 30, 365)
_OF_JOBS = (UseBy.USER, UseBy.GROUP, UseBy.LABEL)
_OF_TIME = (UseBy.DAY, UseBy.MONTH)
_OF_PERIOD = ("days", "since", "until")


class Link(NamedTuple):
    """Link to another view of the accounts."""

    name: str
    words: str
    query: str
    is_current: bool


@require_safe
@page
def efficiency(request: HttpRequest) -> HttpResponse:
    """Core-seconds of some days by one thing, most wasted first."""
    question, given, now = _asked(request)
    today = now.astimezone(UTC).date()
    answer = question.answer(request.user, today=today)
    lines = shown_lines(answer.lines, answer.before, adds_up=question.by is not UseBy.LABEL)
    context = {
        "question": question,
        "period": answer.period,
        "before": answer.period.before,
        "lines": lines,
        "has_pilots": question.by not in _OF_JOBS and not question.of.is_of_jobs,
        "is_cut": len(answer.lines) > MOST_LINES,
        "most_lines": MOST_LINES,
        "groupings": _groupings(question, given),
        "periods": _periods(given, today),
        "kept": {name: given[name] for name in ("by", "compare") if name in given},
        "comparison": _comparison(question, given),
        "csv_query": urlencode(given),
        "now": now,
    }
    return render(request, "web/efficiency.html", context)


@require_safe
@page
def efficiency_csv(request: HttpRequest) -> HttpResponse:
    """All lines of the page as a CSV file."""
    question, _, now = _asked(request)
    today = now.astimezone(UTC).date()
    answer = question.answer(request.user, today=today)
    response = HttpResponse(as_csv(question, answer), content_type="text/csv; charset=utf-8")
    days = f"{answer.period.since}-to-{answer.period.until}"
    name = f"core-seconds-by-{question.by}-{days}.csv"
    response["Content-Disposition"] = content_disposition_header(True, name)
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _asked(request: HttpRequest) -> tuple[EfficiencyQuery, dict[str, str], datetime]:
    """Question, its parameters that say something, and the present time."""
    now = timezone.now()
    given = {name: value for name, value in request.GET.dict().items() if value}
    return read_question(given, today=now.astimezone(UTC).date()), given, now


def _groupings(question: EfficiencyQuery, given: Mapping[str, str]) -> list[Link]:
    kept = {name: value for name, value in given.items() if name != "by"}
    links = []
    for by in UseBy:
        query = {"by": by.value, **kept}
        if by in _OF_TIME:
            query.pop("compare", None)
        links.append(Link(f"by-{by}", f"by {by}", urlencode(query), by is question.by))
    return links


def _periods(given: Mapping[str, str], today: date) -> list[Link]:
    kept = {name: value for name, value in given.items() if name not in _OF_PERIOD}
    first = today.replace(day=1)
    last_month = first - timedelta(days=1)
    offered: list[tuple[str, str, dict[str, str]]] = [
        (f"days-{days}", "today" if days == 1 else f"{days} days", {"days": str(days)})
        for days in _DAYS_OFFERED
    ]
    offered += [
        ("this-month", "this month", {"since": str(first)}),
        ("last-month", "last month",
         {"since": str(last_month.replace(day=1)), "until": str(last_month)}),
    ]  # fmt: skip
    chosen = {name: given[name] for name in _OF_PERIOD if name in given} or {"days": "7"}
    return [
        Link(name, words, urlencode({**kept, **period}), period == chosen)
        for name, words, period in offered
    ]


def _comparison(question: EfficiencyQuery, given: Mapping[str, str]) -> Link | None:
    """Link that compares with the days before, or no more; None for days and months."""
    if question.by in _OF_TIME:
        return None
    kept = {name: value for name, value in given.items() if name != "compare"}
    if question.is_compared:
        return Link("compare", "compared with the days before", urlencode(kept), True)
    query = urlencode({**kept, "compare": "before"})
    return Link("compare", "compare with the days before", query, False)
