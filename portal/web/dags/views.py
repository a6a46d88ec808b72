"""Views of the DAG page and of its actions: hold, halt, release, rematch, remove."""

from __future__ import annotations

from operator import attrgetter

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from portal.web.dags.page import show_dag
from portal.web.shared.action_forms import ActionForm, Refused
from portal.web.shared.pages import page
from portal.web.shared.stale_forms import while_seen
from wms.actions.dags import DAGS
from wms.core.actors import Actor
from wms.core.errors import Conflict, NotFound, NotPermitted, PilotageError
from wms.dags.models import Dag
from wms.dags.reading.selectors import find_dag


@require_safe
@page
def dag_page(request: HttpRequest, dag_id: int) -> HttpResponse:
    """Page of one DAG."""
    return show_dag(request, dag_id)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def steer(request: HttpRequest, dag_id: int, event: str) -> HttpResponse:
    """Hold, halt, release, rematch or remove a DAG; a refusal is shown at the form that was sent.

    Whoever had to log in again comes here by GET, and is led to the form.
    """
    action = DAGS.find_on_page(event)
    if action is None:
        raise Http404
    if request.method != "POST":
        return redirect("web:dag", dag_id=find_dag(request.user, dag_id).pk)
    dag = find_dag(request.user, dag_id)
    form = ActionForm(action, request.POST)
    try:
        order = form.order(Actor.person(request.user))
        rows, state = Dag.objects.filter(pk=dag.pk), attrgetter("state")
        with while_seen(request, rows, state, what=f"DAG {dag.pk}") as now:
            applied = action.act(dag.pk, order)
        if not applied.changed:
            raise Conflict(f"Nothing was done: the DAG is {now.state}.")
    except (NotPermitted, NotFound):
        raise
    except PilotageError as error:
        return show_dag(request, dag_id, refused=Refused(form, error))
    messages.success(request, f"DAG {dag.pk} {action.done}.")
    return redirect("web:dag", dag_id=dag.pk)
