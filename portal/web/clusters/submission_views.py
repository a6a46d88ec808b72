"""Page on which jobs are submitted or only checked."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods
from django_htmx.http import HttpResponseClientRedirect

from portal.middleware.uploads import keeps_names
from portal.web.clusters.forms import JobsForm, SentJobs, read_jobs_form
from portal.web.shared.findings import SHOWN, quoted, status_of
from portal.web.shared.nonces import fresh_nonce
from portal.web.shared.pages import page
from wms.core.actors import Actor
from wms.core.conf import conf
from wms.core.errors import Finding, InvalidInput, PilotageError
from wms.core.heavy import heavy_place
from wms.core.models import Role
from wms.core.policy import has_role, require_role
from wms.jobs.clusters.submit import SubmittedCluster, check_submission, submit_cluster

_WARNINGS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a submission that is not stored: faults, or the findings of a check."""

    findings: Sequence[Finding] = ()
    warnings: Sequence[Finding] = ()
    size: int | None = None
    files: dict[str, BinaryIO] = field(default_factory=dict)
    status: int = 200


@keeps_names
@require_http_methods(["GET", "HEAD", "POST"])
@page
def submit_jobs(request: HttpRequest) -> HttpResponse:
    """Form with the faults of what was sent; jobs without faults are stored as a cluster."""
    form = JobsForm(request.POST if request.method == "POST" else None, user=request.user)
    if request.method != "POST":
        return _answer(request, form, Outcome())
    require_role(Actor.person(request.user), Role.USER, "submit jobs")
    try:
        with heavy_place(request.user):
            return _submitted(request, form)
    except PilotageError as error:
        # A quota, or no free place: what was typed and chosen stays.
        return _answer(request, form, Outcome([Finding(str(error))], status=error.status))


def _submitted(request: HttpRequest, form: JobsForm) -> HttpResponse:
    sent: SentJobs | None = None
    try:
        sent = read_jobs_form(request, form, owner=request.user)
        if sent.is_check:
            checked = check_submission(sent.submission, owner=request.user)
            size = None if checked.findings else checked.size
            found = Outcome(
                checked.findings, checked.warnings, size, _files(sent), _status(checked.findings)
            )
            return _answer(request, form, found)
        done = submit_cluster(sent.submission, owner=request.user, actor=Actor.person(request.user))
    except InvalidInput as error:
        return _answer(
            request, form, Outcome(error.findings, files=_files(sent), status=error.status)
        )
    return _to_cluster(request, done)


def _to_cluster(request: HttpRequest, done: SubmittedCluster) -> HttpResponse:
    cluster = done.cluster
    jobs = f"{cluster.size:,} job{'' if cluster.size == 1 else 's'}"
    messages.success(request, f"Cluster {cluster.pk} of {jobs} is submitted.")
    if done.warnings:
        listed = "; ".join(str(each).removesuffix(".") for each in done.warnings[:_WARNINGS_SHOWN])
        more = len(done.warnings) - _WARNINGS_SHOWN
        rest = f"; and {more} more, on this page" if more > 0 else ""
        messages.warning(request, f"Possible mistakes: {listed}{rest}.")
    if request.htmx:
        return HttpResponseClientRedirect(reverse("web:cluster", args=[cluster.pk]))
    return redirect("web:cluster", cluster_id=cluster.pk)


def _files(sent: SentJobs | None) -> dict[str, BinaryIO]:
    """Texts that findings quote: the description and the files that came with it."""
    if sent is None:
        return {}
    submission = sent.submission
    return {**submission.files, submission.description_name: io.BytesIO(sent.text)}


def _status(findings: Sequence[Finding]) -> int:
    return InvalidInput.status if findings else 200


def _answer(request: HttpRequest, form: JobsForm, outcome: Outcome) -> HttpResponse:
    context = {
        "form": form,
        "nonce": fresh_nonce(),
        "is_answered": bool(outcome.findings) or outcome.size is not None,
        "findings": quoted(outcome.findings, outcome.files),
        "findings_total": len(outcome.findings),
        "warnings": quoted(outcome.warnings, outcome.files),
        "warnings_total": len(outcome.warnings),
        "shown": SHOWN,
        "size": outcome.size,
        "most_bytes": conf().max_upload_bytes,
        "may_submit": has_role(request.user, Role.USER),
    }
    # The faults alone are swapped in by the script, so that the chosen files stay chosen.
    template = "web/submit_findings.html" if request.htmx else "web/submit_jobs.html"
    status = status_of(request, outcome.status)
    return render(request, template, context, status=status)
