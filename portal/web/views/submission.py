"""Submitting a DAG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods
from django_htmx.http import HttpResponseClientRedirect

from portal.web.forms import SubmitForm
from portal.web.pages import page
from wms.core.actors import Actor
from wms.core.conf import conf
from wms.core.errors import Finding, InvalidInput
from wms.core.models import Role
from wms.core.policy import has_role
from wms.dags.submission import submission_warnings, submit_dag

#: So many faults are quoted; the rest is counted.
_FINDINGS_SHOWN = 50
_WARNINGS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Quoted:
    """A fault with the line that it is in."""

    place: str
    message: str
    line: str


@require_http_methods(["GET", "HEAD", "POST"])
@page
def submit(request: HttpRequest) -> HttpResponse:
    """The form, and what is wrong with what was sent; a DAG without a fault is stored."""
    if request.method != "POST":
        form = SubmitForm(initial={"nonce": SubmitForm.fresh_nonce()})
        return _answer(request, form, ())
    form = SubmitForm(request.POST, request.FILES)
    if not form.is_valid():
        return _answer(request, form, _faults_of(form))
    try:
        dag = submit_dag(form.submission(), owner=request.user, actor=Actor.person(request.user))
    except InvalidInput as error:
        return _answer(request, form, error.findings)
    messages.success(request, f"DAG {dag.pk} is submitted and waits for a site.")
    _tell_warnings(request, submission_warnings(dag))
    if request.htmx:
        return HttpResponseClientRedirect(reverse("web:dag", args=[dag.pk]))
    return redirect("web:dag", dag_id=dag.pk)


def _tell_warnings(request: HttpRequest, warnings: Sequence[Finding]) -> None:
    if not warnings:
        return
    told = "; ".join(map(str, warnings[:_WARNINGS_SHOWN]))
    more = len(warnings) - _WARNINGS_SHOWN
    rest = f"; and {more} more, among the DAG's events" if more > 0 else ""
    messages.warning(request, f"Perhaps not meant: {told}{rest}.")


def _answer(request: HttpRequest, form: SubmitForm, findings: Sequence[Finding]) -> HttpResponse:
    dag = request.FILES.get("dag")
    context = {
        "form": form,
        "findings": _quoted(findings[:_FINDINGS_SHOWN], dag),
        "findings_total": len(findings),
        "may_submit": has_role(request.user, Role.USER),
    }
    # The faults alone are swapped in by the script, so that the chosen files stay chosen.
    template = "web/submit_findings.html" if request.htmx else "web/submit.html"
    return render(request, template, context, status=400 if findings else 200)


def _faults_of(form: SubmitForm) -> list[Finding]:
    return [
        Finding(message, field=name) for name, faults in form.errors.items() for message in faults
    ]


def _quoted(findings: Sequence[Finding], dag: UploadedFile | None) -> list[Quoted]:
    lines = _lines_of(dag) if dag is not None and findings else []
    in_order = sorted(findings, key=lambda finding: (finding.file, finding.line or 0))
    return [_quote(finding, dag, lines) for finding in in_order]


def _lines_of(dag: UploadedFile) -> list[str]:
    dag.seek(0)
    return dag.read(conf().max_dag_text_bytes).decode("utf-8", errors="replace").splitlines()


def _quote(finding: Finding, dag: UploadedFile | None, lines: Sequence[str]) -> Quoted:
    is_in_dag = dag is not None and finding.file == dag.name and finding.line is not None
    is_known = is_in_dag and 0 < finding.line <= len(lines)
    place = finding.file or finding.field
    if finding.line is not None:
        place = f"{place}, line {finding.line}"
    return Quoted(place, finding.message, lines[finding.line - 1].strip() if is_known else "")
