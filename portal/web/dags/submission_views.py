"""Submit page: a DAG is submitted, only checked, or stored with the times of a schedule."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods
from django_htmx.http import HttpResponseClientRedirect

from portal.middleware.uploads import keeps_names
from portal.shared.dag_submissions import submission_of
from portal.web.dags.run_forms import RunOptionsForm, read_submit_form
from portal.web.shared.findings import SHOWN, quoted, status_of
from portal.web.shared.nonces import fresh_nonce
from portal.web.shared.pages import page
from wms.core.actors import Actor
from wms.core.conf import conf
from wms.core.errors import Finding, InvalidInput, PilotageError
from wms.core.heavy import heavy_place
from wms.core.models import Role, User
from wms.core.policy import has_role, require_role
from wms.dags.submission.checking import CheckedDag, FaultyDag
from wms.dags.submission.submit import (
    DagSubmission,
    check_submission,
    submission_warnings,
    submit_dag,
)
from wms.schedules.services import create_schedule

_WARNINGS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a submission that is not stored: faults, or the findings of a check."""

    findings: Sequence[Finding] = ()
    checked: CheckedDag | None = None
    submission: DagSubmission | None = None
    refusal_status: int = InvalidInput.status

    @property
    def status(self) -> int:
        """HTTP status of the answer."""
        return self.refusal_status if self.findings else 200


@keeps_names
@require_http_methods(["GET", "HEAD", "POST"])
@page
def submit(request: HttpRequest) -> HttpResponse:
    """Submit form with the faults of what was sent; a DAG without faults is stored."""
    options = RunOptionsForm(request.POST if request.method == "POST" else None)
    if request.method != "POST":
        return _answer(request, options, Outcome())
    require_role(Actor.person(request.user), Role.USER, "submit DAGs")
    try:
        with heavy_place(request.user):
            return _submitted(request, options)
    except PilotageError as error:
        # A quota, or no free place: what was typed and chosen stays.
        refused = Outcome([Finding(str(error))], refusal_status=error.status)
        return _answer(request, options, refused)


def _submitted(request: HttpRequest, options: RunOptionsForm) -> HttpResponse:
    submission = None
    try:
        form = read_submit_form(request, options, owner=request.user)
        submission = submission_of(form.sent)
        if form.is_check:
            checked = check_submission(submission, owner=request.user)
            return _answer(request, options, Outcome(checked.findings, checked, submission))
        actor = Actor.person(request.user)
        if form.terms is not None:
            schedule = create_schedule(submission, form.terms, owner=request.user, actor=actor)
            messages.success(request, f"Schedule {schedule.pk} is made.")
            return _leave_for(request, reverse("web:schedule", args=[schedule.pk]))
        dag = submit_dag(submission, owner=request.user, actor=actor)
    except InvalidInput as error:
        checked = error.checked if isinstance(error, FaultyDag) else None
        return _answer(request, options, Outcome(error.findings, checked, submission))
    messages.success(request, f"DAG {dag.pk} is submitted and waits for a site.")
    tell_warnings(request, submission_warnings(dag))
    return _leave_for(request, reverse("web:dag", args=[dag.pk]))


def _leave_for(request: HttpRequest, address: str) -> HttpResponse:
    return HttpResponseClientRedirect(address) if request.htmx else redirect(address)


def tell_warnings(request: HttpRequest, warnings: Sequence[Finding]) -> None:
    """Warnings of a submitted DAG, the first of them, told on the next page."""
    if not warnings:
        return
    listed = "; ".join(str(each).removesuffix(".") for each in warnings[:_WARNINGS_SHOWN])
    more = len(warnings) - _WARNINGS_SHOWN
    rest = f"; and {more} more, among the DAG's events" if more > 0 else ""
    messages.warning(request, f"Possible mistakes: {listed}{rest}.")


def _answer(request: HttpRequest, options: RunOptionsForm, outcome: Outcome) -> HttpResponse:
    sent, checked = outcome.submission, outcome.checked
    files = {}
    if sent is not None:
        files = {**sent.files, sent.dag_name: io.BytesIO(sent.dag_content)}
        if sent.description_name:
            files[sent.description_name] = io.BytesIO(sent.description_text.encode())
    warnings = checked.warnings if checked is not None else []
    context = {
        "options": options,
        "origin": request.POST,
        "nonce": fresh_nonce(),
        "is_answered": bool(outcome.findings) or checked is not None,
        "findings": quoted(outcome.findings, files),
        "findings_total": len(outcome.findings),
        "warnings": quoted(warnings, files),
        "warnings_total": len(warnings),
        "shown": SHOWN,
        "statistics": checked.dag.statistics if checked is not None else None,
        "most_bytes": conf().max_upload_bytes,
        "may_submit": isinstance(request.user, User) and has_role(request.user, Role.USER),
    }
    # The faults alone are swapped in by the script, so that the chosen files stay chosen.
    template = "web/submit_findings.html" if request.htmx else "web/submit.html"
    status = status_of(request, outcome.status)
    return render(request, template, context, status=status)
