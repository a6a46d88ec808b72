"""Views of the pages Explain and What if: why something does not run, and the effect of changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from matching.negotiation.unmatched_reasons import SiteStanding
from portal.lists.filters import DagFilter
from portal.web.explain import answers as explained
from portal.web.explain.questions import QuestionForm
from portal.web.explain.verdicts import JOB_VERDICTS, VERDICTS
from portal.web.shared.pages import may_configure, page
from wms.core.errors import Finding, InvalidInput, NotFound
from wms.core.models import User
from wms.dags.reading.selectors import dags_of_jobs, find_dag, listed_dags
from wms.dags.states import DagState
from wms.explain import answers as explaining
from wms.explain.ad_changes import WhatIfChanges
from wms.explain.answers import DagAnswer
from wms.explain.queue_changes import NEEDS, OFFERS, SiteJobs
from wms.jobs.selectors import find_job
from wms.sites.selectors import visible_sites
from wms.sites.standing import standings
from wms.taskqueues.listing import Order, task_queue_page, visible_task_queues
from wms.taskqueues.selectors import task_queue_of

#: Most idle DAGs, and most TaskQueues, offered on the start page.
_OFFERED = 10
#: Longer addresses are refused by web servers.
_LONGEST_QUERY = 3000
#: Where the faults that the domain finds belong in the form.
_FIELDS = {"dag": "change", "sites": "at", "needs": "change", "queues": "queue_change"}


@dataclass(frozen=True, slots=True)
class Question:
    """User, form, changes and time of a question."""

    user: User
    form: QuestionForm
    changes: WhatIfChanges
    now: datetime

    @property
    def about(self) -> Any:
        """Number, name or text of the subject."""
        return self.form.cleaned_data[self.form.subject]


@require_http_methods(["GET", "HEAD", "POST"])
@page
def explain(request: HttpRequest) -> HttpResponse:
    """Answer a question, or show the form. Nothing is written, whatever the method.

    A question with changes is one of the other page.
    """
    form = QuestionForm(request.POST if request.method == "POST" else request.GET)
    if not form.is_valid():
        return _start(request, form, _faults_of(form))
    if not form.subject:
        return _start(request, form, [], status=200)
    if form.is_what_if and request.method != "POST":
        return redirect(f"{reverse('web:what-if')}?{_query(form)}")
    query = _query(form)
    if request.method == "POST" and form.subject != "ad" and len(query) <= _LONGEST_QUERY:
        return redirect(f"{reverse('web:explain')}?{query}")
    return _answer(request, form, here="explain")


@require_http_methods(["GET", "HEAD", "POST"])
@page
def what_if(request: HttpRequest) -> HttpResponse:
    """Answer a question before and after its changes. Nothing is written.

    One that was posted and fits into an address is led there, so that it can be kept and sent.
    """
    form = QuestionForm(request.POST if request.method == "POST" else request.GET)
    if not form.is_valid():
        return _start_what_if(request, form, _faults_of(form))
    if not form.subject:
        return _start_what_if(request, form, [], status=200)
    query = _query(form)
    if request.method == "POST" and len(query) <= _LONGEST_QUERY:
        return redirect(f"{reverse('web:what-if')}?{query}")
    return _answer(request, form, here="what-if")


def _query(form: QuestionForm) -> str:
    names = (form.subject, "change", "at", "site_change", "queue_change")
    given = {**form.cleaned_data, "change": form.changed}
    return urlencode({name: given[name] for name in names if given[name] not in (None, "")})


def _answer(request: HttpRequest, form: QuestionForm, *, here: str) -> HttpResponse:
    """Answer page; if the changes have faults, the answer without them."""
    faults: Sequence[Finding] = ()
    question = Question(request.user, form, WhatIfChanges(), timezone.now())
    answer_of = _ANSWERS[form.subject]
    start = _start if here == "explain" else _start_what_if
    try:
        try:
            context = answer_of(replace(question, changes=form.changes()))
        except InvalidInput as error:
            faults = [replace(fault, field=_field(fault)) for fault in error.findings]
            if any(fault.field == "ad" for fault in faults):
                return start(request, form, faults)
            context = answer_of(question)
    except NotFound as error:
        return start(request, form, [Finding(str(error), field=form.subject)], status=404)
    query = _query(form)
    is_address = form.subject != "ad" or len(query) <= _LONGEST_QUERY
    context |= {
        "form": form,
        "here": here,
        "now": question.now,
        "faults": _by_field(faults),
        "again": f"?{query}" if is_address else "",
        "plain": f"?{urlencode({form.subject: question.about})}" if form.subject != "ad" else "",
        "bounds": explaining.BOUNDS,
        "needs_names": NEEDS,
        "offer_names": OFFERS,
        "may_configure": may_configure(request),
    }
    return render(request, "web/explain.html", context, status=400 if faults else 200)


def _start_what_if(
    request: HttpRequest, form: QuestionForm, faults: Sequence[Finding], *, status: int = 400
) -> HttpResponse:
    """Empty form for a subject and its changes."""
    context = {
        "form": form,
        "faults": _by_field(faults),
        "site_names": _site_names(request.user),
        "needs_names": NEEDS,
        "offer_names": OFFERS,
        "bounds": explaining.BOUNDS,
    }
    return render(request, "web/what_if_start.html", context, status=status)


def _start(
    request: HttpRequest, form: QuestionForm, faults: Sequence[Finding], *, status: int = 400
) -> HttpResponse:
    """Empty form, with the DAGs and TaskQueues that wait now."""
    idle = DagFilter({"state": [DagState.IDLE]}, queryset=listed_dags(request.user)).qs
    queues = visible_task_queues(request.user)
    waiting = task_queue_page(queues, order=Order.WAITING, after=None, limit=_OFFERED)
    context = {
        "form": form,
        "faults": _by_field(faults),
        "idle": idle.order_by("state_since")[:_OFFERED],
        "waiting": waiting.lines,
        "site_names": _site_names(request.user),
    }
    return render(request, "web/explain_start.html", context, status=status)


def _site_names(user: User) -> list[str]:
    return list(visible_sites(user).order_by("name").values_list("name", flat=True))


def _faults_of(form: QuestionForm) -> list[Finding]:
    return [Finding(text, field=name) for name, texts in form.errors.items() for text in texts]


def _field(fault: Finding) -> str:
    return _FIELDS.get(fault.field, fault.field)


def _by_field(faults: Sequence[Finding]) -> dict[str, list[str]]:
    faults_by_field: dict[str, list[str]] = {}
    for fault in faults:
        place = "" if fault.line is None else f"Line {fault.line}: "
        faults_by_field.setdefault(fault.field, []).append(place + fault.message)
    return faults_by_field


def _about_dag(question: Question) -> dict[str, Any]:
    dag = find_dag(question.user, question.about)
    answer = explaining.answer_for_dag(
        question.user, dag.pk, now=question.now, changes=question.changes
    )
    notes = {SiteStanding.CLOSED: _reasons(question.now), SiteStanding.AVOIDED: _avoided(answer)}
    return {"dag": dag, **_sites(question, answer, notes)}


def _about_ad(question: Question) -> dict[str, Any]:
    answer = explaining.answer_for_ad(
        question.user, question.about, now=question.now, changes=question.changes
    )
    return _sites(question, answer, {SiteStanding.CLOSED: _reasons(question.now)})


def _sites(
    question: Question, answer: DagAnswer, notes: Mapping[SiteStanding, Mapping[str, str]]
) -> dict[str, Any]:
    found, after = answer.explanation, answer.after
    return {
        "answer": answer,
        "meaning": VERDICTS[answer.verdict],
        "conjuncts": explained.conjunct_lines(found.conjuncts, found.sites),
        "conjuncts_after": explained.conjunct_lines(after.conjuncts, after.sites) if after else [],
        "before_meaning": VERDICTS[found.verdict],
        "after_meaning": VERDICTS[after.verdict] if after else None,
        "changed": explained.changes_of_sites(answer) if after else [],
        "misses": explained.miss_lines(answer),
        "is_enough": all(miss.is_enough for miss in answer.misses),
        "groups": explained.groups(found, notes),
        "refusals": explained.refusal_lines(found.refusals),
        "unmet": explained.unmet_lines(found),
        "candidates": explained.candidates(found),
        "site_names": sorted(name for names in (found.stands or {}).values() for name in names),
    }


def _reasons(now: datetime) -> dict[str, str]:
    return {standing.name: standing.reason for standing in standings(now).values()}


def _avoided(answer: DagAnswer) -> dict[str, str]:
    untils = {
        each: f"until {each.until.astimezone(UTC):%Y-%m-%d %H:%M} UTC" for each in answer.avoided
    }
    return {
        each.site: f"{until}: {each.reason}" if each.reason else until
        for each, until in untils.items()
    }


def _about_job(question: Question) -> dict[str, Any]:
    job = find_job(question.user, question.about)
    answer = explaining.answer_for_job(
        question.user, job.pk, now=question.now, changes=question.changes
    )
    return {
        "job": job,
        "dag": dags_of_jobs([job]).get(job.pk),
        "task_queue": task_queue_of(job.pk),
        **_queues(question, answer),
    }


def _about_task_queue(question: Question) -> dict[str, Any]:
    answer = explaining.answer_for_task_queue(
        question.user, question.about, now=question.now, changes=question.changes
    )
    return {"task_queue": question.about, **_queues(question, answer)}


def _queues(question: Question, answer: explaining.JobAnswer) -> dict[str, Any]:
    found, after = answer.queues, answer.after
    return {
        "answer": answer,
        "meaning": JOB_VERDICTS[answer.verdict],
        "queues": explained.queue_lines(after or found) if found else None,
        "before_meaning": JOB_VERDICTS[found.verdict] if found else None,
        "after_meaning": JOB_VERDICTS[after.verdict] if after else None,
        "changed": explained.changes_of_queues(found, after) if found and after else [],
        "site_names": _site_names(question.user),
    }


def _about_site(question: Question) -> dict[str, Any]:
    answer = explaining.answer_for_site(
        question.user, question.about, now=question.now, changes=question.changes
    )
    found, after = answer.explanation, answer.after
    return {
        "answer": answer,
        "site_name": answer.standing.name,
        "conjuncts": explained.conjunct_lines(found.conjuncts, found.dags) if found else [],
        "conjuncts_after": explained.conjunct_lines(after.conjuncts, after.dags) if after else [],
        "changed": explained.changes_of_dags(answer),
        "changed_jobs": explained.changes_of_jobs(answer),
        "jobs_note": _looked_at(answer.jobs) if answer.jobs else "",
    }


def _looked_at(jobs: SiteJobs) -> str:
    cut = ", those with most of them: there are more" if jobs.unseen else ""
    return f"In {jobs.task_queues} TaskQueue{'s' if jobs.task_queues != 1 else ''}{cut}"


_ANSWERS = {
    "dag": _about_dag,
    "ad": _about_ad,
    "job": _about_job,
    "task_queue": _about_task_queue,
    "site": _about_site,
}
