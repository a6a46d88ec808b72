"""Comparison page of two DAGs: the choice of the other, sums, and nodes by name; CSV."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_safe

from portal.shared.dag_comparisons import (
    MOST_IN_CSV,
    Compared,
    ComparisonQuestion,
    as_csv,
    compared,
    read_question,
)
from portal.web.shared.pages import page, render_page
from portal.web.templatetags.pilotage import span
from wms.core.errors import InvalidInput
from wms.core.models import User
from wms.dags.models import Dag
from wms.dags.reading.comparing import CHOICES, ComparedNode, Proposed, Side, proposed_runs
from wms.dags.reading.selectors import find_dag
from wms.dags.states import NodeState
from wms.schedules.selectors import dags_beside


@dataclass(frozen=True, slots=True)
class Choice:
    """Link to the lines with one kind of difference."""

    name: str
    label: str
    count: int
    query: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Cell:
    """Value of a node in both DAGs, or in the one that has the node; empty texts for none."""

    label: str
    here: str
    there: str
    is_different: bool
    is_one: bool


@dataclass(frozen=True, slots=True)
class Line:
    """Line of a node. States are badges, and stand beside the other cells."""

    node: ComparedNode
    words: str
    cells: list[Cell]
    slower: str


@dataclass(frozen=True, slots=True)
class SumLine:
    """Sum of both DAGs, and how much it changed from there to here."""

    label: str
    here: str
    there: str
    change: str


@require_safe
@page
def comparison(request: HttpRequest, dag_id: int) -> HttpResponse:
    """Page of a comparison; without another DAG, the choice of one."""
    dag = find_dag(request.user, dag_id)
    context: dict[str, Any] = {"dag": dag, "with": request.GET.get("with", "")}
    status = 200
    if request.GET.get("with"):
        try:
            question = read_question(request.GET.dict())
            found = compared(request.user, dag, question)
            context |= _shown(found, question)
        except InvalidInput as error:
            context["error"], status = error, error.status
    if "found" not in context:
        context["proposed"] = _proposed(request.user, dag)
    return render_page(request, "dag_compare", context, status=status)


def _proposed(user: User, dag: Dag) -> list[Proposed]:
    return proposed_runs(user, dag, [("Same schedule", dags_beside(dag))])


@require_safe
@page
def comparison_csv(request: HttpRequest, dag_id: int) -> HttpResponse:
    """Lines of a comparison as a CSV file, up to a number of them."""
    dag = find_dag(request.user, dag_id)
    asked = read_question(request.GET.dict())
    question = ComparisonQuestion(asked.other, asked.chosen, 0, MOST_IN_CSV)
    text = as_csv(compared(request.user, dag, question))
    response = HttpResponse(text, content_type="text/csv; charset=utf-8")
    name = f"dag-{dag.pk}-with-{asked.other}.csv"
    response["Content-Disposition"] = content_disposition_header(True, name)
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _shown(found: Compared, question: ComparisonQuestion) -> Mapping[str, Any]:
    value, offset, size = found.comparison, question.offset, question.limit
    last = offset + len(value.lines)
    return {
        "found": found,
        "other": found.there,
        "sums": _sums(found),
        "sites": (value.here, value.there),
        "choices": [
            Choice(name, label, value.counts[name], _query(question, name, 0), name == chosen)
            for name, label in CHOICES.items()
            for chosen in (question.chosen,)
            if value.counts[name] or name in {"all", chosen}
        ],
        "lines": [_line(each) for each in value.lines],
        "first": offset + 1,
        "last": last,
        "previous": _query(question, question.chosen, max(0, offset - size)) if offset else "",
        "following": _query(question, question.chosen, last) if last < value.total else "",
        "csv_query": _query(question, question.chosen, 0),
        "most_in_csv": MOST_IN_CSV,
    }


def _query(question: ComparisonQuestion, chosen: str, offset: int) -> str:
    query: dict[str, Any] = {"with": question.other}
    query |= {"differs": chosen} if chosen != "all" else {}
    query |= {"offset": offset} if offset else {}
    return f"?{urlencode(query)}"


def _line(node: ComparedNode) -> Line:
    different = set(node.differences)
    columns: tuple[tuple[str, Callable[[Side], str], set[str]], ...] = (
        ("tries", lambda side: str(side.tries or ""), {"tries"}),
        ("site", lambda side: side.site, {"site"}),
        ("ended with", _end, {"outcome"}),
        ("queue", lambda side: span(side.queue_s), {"longer_queue", "shorter_queue"}),
        ("wall time", lambda side: span(side.wall_s), {"slower", "faster"}),
    )
    cells = [_cell(node, label, of, bool(kinds & different)) for label, of, kinds in columns]
    words = ", ".join(CHOICES[each] for each in node.differences)
    return Line(node, words, cells, _signed(node.slower_s))


def _cell(node: ComparedNode, label: str, of: Callable[[Side], str], is_different: bool) -> Cell:
    here, there = (of(side) if side else "" for side in (node.here, node.there))
    is_one = here == there or node.here is None or node.there is None
    return Cell(label, here, there, is_different, is_one)


def _end(side: Side) -> str:
    if side.signal:
        end = f"signal {side.signal}"
    else:
        end = "" if side.exit_code is None else str(side.exit_code)
    return " ".join(filter(None, (end, side.cause.replace("_", " "))))


def _signed(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{'-' if seconds < 0 else '+'}{span(abs(seconds))}" if round(seconds) else "0 s"


def _sums(found: Compared) -> list[SumLine]:
    here, there = found.comparison.here, found.comparison.there
    states = [state for state in NodeState if here.states.every[state] or there.states.every[state]]
    counts = [
        SumLine(f"nodes {state.label}", str(a), str(b), f"{a - b:+d}" if a != b else "")
        for state in states
        for a, b in ((here.states.every[state], there.states.every[state]),)
    ]
    times = [
        SumLine(label, span(a), span(b), _signed(a - b))
        for label, a, b in (
            ("from match to end", here.elapsed_s, there.elapsed_s),
            ("wall time of nodes", here.wall_s, there.wall_s),
            ("time in the queue", here.queue_s, there.queue_s),
        )
    ]
    hours = [
        SumLine(label, f"{a / 3600:,.1f}", f"{b / 3600:,.1f}", f"{(a - b) / 3600:+,.1f}")
        for label, a, b in (
            ("core hours", here.use.spent.total_s, there.use.spent.total_s),
            ("failed core hours", here.use.spent.failed_s, there.use.spent.failed_s),
            ("lost core hours", here.use.spent.lost_s, there.use.spent.lost_s),
        )
    ]
    return [*counts, *times, *hours]
