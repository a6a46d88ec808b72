"""Taking a selection of DAGs from their sites, with a look before at what that means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from portal.web.dag_steering import STEERINGS
from portal.web.forms import RematchForm
from portal.web.pages import page, render_page
from wms.core.actors import Actor
from wms.core.errors import Conflict, NotFound, NotPermitted, PilotageError
from wms.core.transitions import Applied
from wms.dags.models import Dag
from wms.dags.policies import matchmaking_policy
from wms.dags.policy import may_steer
from wms.dags.selectors import JobCounts, listed_dags, states_of, unfinished_jobs
from wms.dags.services import rematch_dags

#: So many DAGs are taken from their sites by one form.
_MAX_SELECTION = 200


@dataclass(frozen=True, slots=True)
class Concerned:
    """A DAG of the selection; `obstacle` tells why it is left as it is."""

    dag: Dag
    jobs: JobCounts
    obstacle: str


@require_http_methods(["GET", "HEAD", "POST"])
@page
def rematch(request: HttpRequest) -> HttpResponse:
    """Show what a rematch of the DAGs named by `dag` would do, or do it."""
    if request.method != "POST":
        return _confirm(request, _selected(request, request.GET.getlist("dag")))
    concerned = _selected(request, request.POST.getlist("dag"))
    ids = [one.dag.pk for one in concerned]
    try:
        options = RematchForm(request.POST).options()
        applied = rematch_dags(ids, actor=Actor.person(request.user), **options)
        if not applied.changed:
            raise Conflict("Nothing was done: none of these DAGs is at a site.")
    except (NotPermitted, NotFound):
        raise
    except PilotageError as error:
        return _confirm(request, concerned, error=error)
    _tell(request, applied)
    return redirect("web:dags")


def _selected(request: HttpRequest, given: Sequence[str]) -> list[Concerned]:
    """The DAGs with these ids. Raises NotFound for one that is none, Conflict for too many."""
    wanted = set(given)
    if len(wanted) > _MAX_SELECTION:
        raise Conflict(f"Select at most {_MAX_SELECTION} DAGs at once.")
    for text in wanted:
        if not (text.isascii() and text.isdigit() and len(text) <= 18):
            raise NotFound(f"There is no DAG {text[:40]!r}.")
    dags = list(listed_dags(request.user).filter(pk__in=[int(text) for text in wanted]))
    missing = {int(text) for text in wanted} - {dag.pk for dag in dags}
    if missing:
        raise NotFound(f"There is no DAG {min(missing)}, or you may not see it.")
    jobs = unfinished_jobs([dag.pk for dag in dags])
    nothing = JobCounts()
    return [Concerned(dag, jobs.get(dag.pk, nothing), _obstacle(request, dag)) for dag in dags]


def _obstacle(request: HttpRequest, dag: Dag) -> str:
    if not may_steer(request.user, dag):
        return f"it belongs to {dag.owner.username}"
    if not STEERINGS["rematch"].is_possible(dag):
        return "it is at no site" if dag.site_id is None else f"it is {dag.state}"
    return ""


def _confirm(
    request: HttpRequest, concerned: Sequence[Concerned], *, error: PilotageError | None = None
) -> HttpResponse:
    leaving = [one for one in concerned if not one.obstacle]
    context = {
        "leaving": leaving,
        "staying": [one for one in concerned if one.obstacle],
        "queued": sum(one.jobs.queued for one in leaving),
        "running": sum(one.jobs.running for one in leaving),
        "form": RematchForm(request.POST or None),
        "avoid_s": matchmaking_policy().avoid_s,
        "error": error,
    }
    return render_page(request, "rematch", context, status=error.status if error else 200)


def _tell(request: HttpRequest, applied: Applied) -> None:
    count = len(applied.changed)
    messages.success(
        request,
        f"DAG {applied.changed[0]} is taken from its site."
        if count == 1
        else f"{count} DAGs are taken from their sites.",
    )
    states = states_of(request.user, applied.skipped)
    if states:
        left = ", ".join(f"DAG {pk} is {state}" for pk, state in sorted(states.items()))
        messages.warning(request, f"Left as they are: {left}.")
