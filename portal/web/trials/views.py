"""Pages of trials: list, form of a new one, progress and report of one; and the view that stops."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from portal.middleware.uploads import keeps_names
from portal.shared.dag_submissions import submission_of
from portal.web.lists.listing import show_list
from portal.web.shared.findings import SHOWN, quoted
from portal.web.shared.pages import page, render_page
from portal.web.trials.forms import TrialForm, dag_id_of, read_trial_form
from wms.core.actors import Actor
from wms.core.errors import Finding, InvalidInput, NotFound, NotPermitted, PilotageError
from wms.core.heavy import heavy_place
from wms.core.models import Role, User
from wms.core.policy import has_role, require_role
from wms.dags.models import Trial
from wms.dags.reading.selectors import find_dag
from wms.dags.trials import services
from wms.dags.trials.policy import may_stop
from wms.dags.trials.selectors import find_trial
from wms.dags.trials.services import TrialRequest
from wms.dags.trials.states import ACTIVE, TrialKind, TrialState

#: So much of a report is shown; the API has it whole.
_REPORT_CHARACTERS = 100_000
#: How often the page of a trial asks for news while it goes on, and when it has ended.
_WORKING_S, _ENDED_S = 2, 60


@require_safe
@page
def trial_list(request: HttpRequest) -> HttpResponse:
    """Trials that the user may see, latest first."""
    return show_list(request, "trials", may_try=has_role(request.user, Role.USER))


@keeps_names
@require_http_methods(["GET", "HEAD", "POST"])
@page
def new_trial(request: HttpRequest) -> HttpResponse:
    """Form of a new trial; one without faults is stored, and its page shown.

    With `of` in the address the files of that DAG are tried.
    """
    if request.method != "POST":
        return _answer(request)
    require_role(Actor.person(request.user), Role.USER, "try DAGs")
    try:
        with heavy_place(request.user):
            trial = _asked(read_trial_form(request), request.user)
    except (NotPermitted, NotFound):
        raise
    except InvalidInput as error:
        return _answer(request, error.findings, status=error.status)
    except PilotageError as error:
        return _answer(request, [Finding(str(error))], status=error.status)
    return redirect("web:trial", trial_id=trial.pk)


def _asked(form: TrialForm, user: User) -> Trial:
    """The new trial. Raises PilotageError, and InvalidInput with every fault."""
    wanted = TrialRequest(
        form.kind,
        (),
        {},
        allows_missing=form.allows_missing,
        is_for_dagman=form.is_for_dagman,
        behaviour=form.behaviour if form.kind is TrialKind.DRY_RUN else {},
    )
    actor = Actor.person(user)
    if form.dag_id is not None:
        return services.request_trial_of_dag(form.dag_id, wanted, owner=user, actor=actor)
    return services.request_trial(
        wanted.of_submission(submission_of(form.sent)), owner=user, actor=actor
    )


def _answer(
    request: HttpRequest, findings: Sequence[Finding] = (), *, status: int = 200
) -> HttpResponse:
    given = request.POST if request.method == "POST" else request.GET
    try:
        dag_id = dag_id_of(given.get("of", ""))
    except InvalidInput:
        dag_id = None
    context = {
        "given": given,
        "kinds": TrialKind.choices,
        "kind": given.get("kind") or TrialKind.CHECK.value,
        "dag": find_dag(request.user, dag_id) if dag_id is not None else None,
        "findings": quoted(findings),
        "findings_total": len(findings),
        "may_try": has_role(request.user, Role.USER),
    }
    return render(request, "web/trial_new.html", context, status=status)


@require_safe
@page
def trial_page(request: HttpRequest, trial_id: int) -> HttpResponse:
    """Progress of one trial, and its report."""
    trial = find_trial(request.user, trial_id)
    report = json.loads(trial.report) if trial.report else {}
    context = {
        "trial": trial,
        "may_stop": may_stop(request.user, trial) and trial.state in ACTIVE,
        "is_well": trial.state == TrialState.DONE and trial.exit_code == 0,
        "errors": _findings(report, "errors"),
        "warnings": _findings(report, "warnings"),
        "totals": {name: len(report.get(name) or []) for name in ("errors", "warnings")},
        "text": trial.text[:_REPORT_CHARACTERS],
        "is_cut": len(trial.text) > _REPORT_CHARACTERS,
        "refresh_s": _WORKING_S if trial.state in ACTIVE else _ENDED_S,
    }
    return render_page(request, "trial", context)


def _findings(report: dict[str, Any], name: str) -> list[Any]:
    """Findings that a report has, as pages show them; a dry run calls `message` what it finds."""
    told = (report.get(name) or []) if isinstance(report, dict) else []
    return quoted(
        [
            Finding(
                each.get("reason") or each.get("message", ""),
                file=each.get("file", ""),
                line=each.get("line"),
                command=each.get("command", ""),
            )
            for each in told[:SHOWN]
            if isinstance(each, dict)
        ]
    )


@require_http_methods(["GET", "HEAD", "POST"])
@page
def stop_trial(request: HttpRequest, trial_id: int) -> HttpResponse:
    """Stop a trial. Whoever had to log in again comes here by GET, and is led to the trial."""
    if request.method == "POST":
        services.stop_trial(trial_id, actor=Actor.person(request.user))
        messages.success(request, f"Trial {trial_id} is stopped.")
    else:
        find_trial(request.user, trial_id)
    return redirect("web:trial", trial_id=trial_id)
