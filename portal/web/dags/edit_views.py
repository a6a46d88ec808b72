"""Page on which a DAG is edited and submitted anew: checked, compared, or submitted."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from portal.middleware.uploads import keeps_names
from portal.web.dags.edit_forms import TextField, Values, read_edit, seen_values, text_fields
from portal.web.dags.run_forms import RunOptionsForm
from portal.web.dags.submission_views import tell_warnings
from portal.web.dags.text_changes import TextChange, change_of
from portal.web.shared.findings import SHOWN, quoted
from portal.web.shared.nonces import fresh_nonce
from portal.web.shared.pages import page
from portal.web.shared.stale_forms import seen_by, version_of
from wms.core.actors import Actor
from wms.core.conf import conf
from wms.core.errors import Conflict, Finding, InvalidInput, NotFound, NotPermitted, PilotageError
from wms.core.heavy import heavy_place
from wms.core.models import Role
from wms.core.policy import has_role, require_role
from wms.dags.models import Dag
from wms.dags.reading.run_selectors import ResumePoint, rescues_of, resume_points_of
from wms.dags.reading.selectors import find_dag
from wms.dags.resubmission.services import PreparedEdit, check_edit, resubmit_dag
from wms.dags.resubmission.texts import EditSource, read_source
from wms.dags.states import DAG_TERMINAL
from wms.dags.submission.checking import CheckedDag
from wms.dags.submission.submit import submission_warnings

#: Files that stay as they are, and nodes, that are named.
_LISTED, _NAMED = 200, 10


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Outcome of a form that made no DAG: faults, what a check found, or a comparison."""

    findings: Sequence[Finding] = ()
    prepared: PreparedEdit | None = None
    checked: CheckedDag | None = None
    is_comparison: bool = False
    status: int = 200


@dataclass(frozen=True, slots=True)
class _Shown:
    """Sources of the page: the DAG's files, and where a copy may begin."""

    source: EditSource
    starts: Sequence[ResumePoint]

    @property
    def version(self) -> str:
        """Version against stale forms."""
        return version_of(*seen_values(self.source, self.starts))


@keeps_names
@require_http_methods(["GET", "HEAD", "POST"])
@page
def edit(request: HttpRequest, dag_id: int) -> HttpResponse:
    """Form with the texts of a DAG; without faults it is submitted as a new DAG."""
    dag = find_dag(request.user, dag_id)
    if request.method == "POST":
        require_role(Actor.person(request.user), Role.USER, "submit DAGs")
    try:
        shown = _read(dag)
    except PilotageError as error:
        status = error.status if request.method == "POST" else 200
        context = {"dag": dag, "obstacle": str(error)}
        return render(request, "web/dag_edit.html", context, status=status)
    if request.method != "POST":
        return _answer(request, shown, _Outcome())
    try:
        with heavy_place(request.user):
            return _edited(request, shown)
    except (NotPermitted, NotFound):
        raise
    except PilotageError as error:
        findings = error.findings if isinstance(error, InvalidInput) else [Finding(str(error))]
        return _answer(request, shown, _Outcome(findings, status=error.status))


def _read(dag: Dag) -> _Shown:
    starts = resume_points_of(dag, list(rescues_of(dag)))
    return _Shown(read_source(dag), starts if dag.state in DAG_TERMINAL else [])


def _edited(request: HttpRequest, shown: _Shown) -> HttpResponse:
    """Page of what was asked, or the way to the new DAG. Raises PilotageError."""
    source = shown.source
    if seen_by(request) not in ("", shown.version):
        raise Conflict(
            f"Nothing was stored: DAG {source.dag.pk} changed since this form was loaded, and is "
            f"{source.dag.state} now. What you typed stands below: send it again if it still holds."
        )
    sent = read_edit(request, RunOptionsForm(request.POST))
    wanted = request.POST.get("do")
    if wanted == "changes":
        return _answer(request, shown, _Outcome(is_comparison=True))
    if wanted == "check":
        prepared, checked = check_edit(source, sent, owner=request.user)
        status = InvalidInput.status if checked.findings else 200
        found = _Outcome(checked.findings, prepared, checked, status=status)
        return _answer(request, shown, found)
    actor = Actor.person(request.user)
    done, prepared = resubmit_dag(source, sent, owner=request.user, actor=actor)
    _tell(request, source.dag, done.dag, prepared)
    return redirect("web:dag", dag_id=done.dag.pk)


def _tell(request: HttpRequest, source: Dag, new: Dag, edited: PreparedEdit) -> None:
    told = f"DAG {new.pk} is submitted, an edited copy of DAG {source.pk}, and waits for a site."
    messages.success(request, told)
    if edited.again:
        count = len(edited.again)
        messages.warning(
            request,
            f"{count} node{'' if count == 1 else 's'} that DAG {source.pk} had done will run "
            f"again: {_names(edited.again)}.",
        )
    if source.state not in DAG_TERMINAL:
        messages.warning(
            request, f"DAG {source.pk} is still {source.state}: remove it if nobody needs it."
        )
    tell_warnings(request, submission_warnings(new))


def _names(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _answer(request: HttpRequest, shown: _Shown, outcome: _Outcome) -> HttpResponse:
    sent = request.POST if request.method == "POST" else None
    source, found = shown.source, outcome.checked
    dag, texts = source.dag, text_fields(source, sent)
    lines = {each.text.path: io.BytesIO(each.value.encode()) for each in texts}
    warnings = found.warnings if found is not None else []
    outputs = source.outputs
    context: dict[str, Any] = {
        "dag": dag,
        "may_submit": has_role(request.user, Role.USER),
        "is_own": dag.owner_id == request.user.pk,
        "has_ended": dag.state in DAG_TERMINAL,
        "seen": shown.version,
        "nonce": fresh_nonce(),
        "texts": texts,
        "starts": shown.starts,
        "values": Values.of(sent, source, shown.starts),
        "options": RunOptionsForm(sent, now=dag.options),
        "kept": source.kept[:_LISTED],
        "kept_total": len(source.kept),
        "outputs_total": len(outputs),
        "outputs_bytes": sum(each.size_bytes for each in outputs),
        "most_bytes": conf().max_upload_bytes,
        "changes": _changes(texts) if outcome.is_comparison else None,
        "is_answered": bool(outcome.findings) or found is not None,
        "findings": quoted(outcome.findings, lines),
        "findings_total": len(outcome.findings),
        "warnings": quoted(warnings, lines),
        "warnings_total": len(warnings),
        "shown": SHOWN,
        "statistics": found.dag.statistics if found is not None else None,
        "prepared": outcome.prepared if not outcome.findings else None,
        "named": _LISTED,
    }
    return render(request, "web/dag_edit.html", context, status=outcome.status)


def _changes(texts: Sequence[TextField]) -> list[TextChange]:
    return [
        change_of(each.text.path, each.text.text, each.value) for each in texts if each.is_changed
    ]
