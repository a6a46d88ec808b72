"""Views of a DAG's run: start a further run (rescue), change limits, download exports."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from portal.middleware.download_slots import sent_from_a_slot
from portal.shared.dag_exports import send_export
from portal.web.dags.run_forms import LimitsForm, RescueForm, RunOptionsForm, resumption_of
from portal.web.shared.findings import Quoted, quoted
from portal.web.shared.forms import ReasonForm
from portal.web.shared.pages import page, render_page
from portal.web.shared.stale_forms import version_of, while_version
from wms.actions.arguments import Order
from wms.actions.dags import DAGS
from wms.core.actors import Actor
from wms.core.errors import InvalidInput, NotFound, NotPermitted, PilotageError
from wms.core.heavy import heavy_place
from wms.dags.engine.round import options_of
from wms.dags.models import Dag
from wms.dags.policy import may_steer, require_steering
from wms.dags.reading.run_selectors import (
    categories_of,
    next_runs,
    rescues_of,
    resume_points_of,
    shared_limits_of,
)
from wms.dags.reading.selectors import counts_by_state, find_dag
from wms.dags.rescue.preview import preview_of
from wms.dags.states import DAG_TERMINAL

_RESCUE, _CHANGE_LIMITS = DAGS.actions["rescue"], DAGS.actions["change-limits"]
#: So many of the nodes that would run are named.
_PREVIEWED = 50


@require_safe
@page
def dag_export(request: HttpRequest, dag_id: int, kind: str) -> StreamingHttpResponse:
    """Export of a DAG in a file format, as a download."""
    dag = find_dag(request.user, dag_id)
    return sent_from_a_slot(request.user, lambda: send_export(dag, kind))


@require_http_methods(["GET", "HEAD", "POST"])
@page
def rescue(request: HttpRequest, dag_id: int) -> HttpResponse:
    """Show the starting points of a further run, or start it."""
    with heavy_place(request.user):
        return _rescue(request, find_dag(request.user, dag_id))


def _rescue(request: HttpRequest, dag: Dag) -> HttpResponse:
    if request.method != "POST":
        return _rescue_page(request, dag)
    try:
        form, options = RescueForm(request.POST), RunOptionsForm(request.POST)
        rows = Dag.objects.filter(pk=dag.pk)
        with while_version(request, rows, _runs_seen, what="what was begun of this DAG"):
            given = {**form.resumption(), "options": options.options()}
            reason = ReasonForm.options(form)["reason"]
            new = _RESCUE.act(dag.pk, Order(Actor.person(request.user), reason, given))
    except (NotPermitted, NotFound):
        raise
    except PilotageError as error:
        return _rescue_page(request, dag, error)
    begun = f"from rescue {new.rescue_number}" if new.rescue_number else "without a rescue"
    messages.success(request, f"DAG {new.pk} is a further run of DAG {dag.pk}, begun {begun}.")
    return redirect("web:dag", dag_id=new.pk)


def _runs_seen(dag: Dag) -> str:
    """Version of the further runs, so that a stale form does not start a second one."""
    return version_of(sorted(next_runs(dag).values_list("pk", flat=True)))


def _rescue_page(
    request: HttpRequest, dag: Dag, error: PilotageError | None = None
) -> HttpResponse:
    starts = resume_points_of(dag, list(rescues_of(dag)))
    obstacle = ""
    if dag.state not in DAG_TERMINAL:
        obstacle = f"The DAG is {dag.state}: it can be rescued when it has ended."
    elif dag.parent_node_id is not None:
        obstacle = "This DAG is inside another one: rescue that one, or rerun its node."
    chosen = request.POST.get("start") or request.GET.get("start") or "newest"
    preview, unreadable = None, ""
    try:
        preview = preview_of(dag, resumption_of(chosen), limit=_PREVIEWED)
    except InvalidInput as fault:
        unreadable = str(fault)
    context = {
        "dag": dag,
        "counts": counts_by_state(dag).counted,
        "obstacle": obstacle,
        "may_steer": may_steer(request.user, dag),
        "seen": _runs_seen(dag),
        "starts": starts,
        "newest": any(start.is_newest for start in starts),
        "chosen": chosen,
        "preview": preview,
        "unreadable": unreadable,
        "form": RescueForm(_sent(request)),
        "option_form": RunOptionsForm(_sent(request), now=dag.options),
        "error": error,
        "findings": _findings(error),
    }
    return render_page(request, "rescue", context, status=error.status if error else 200)


def _sent(request: HttpRequest) -> QueryDict | None:
    return request.POST if request.method == "POST" else None


def _findings(error: PilotageError | None) -> Sequence[Quoted]:
    return quoted(error.findings) if isinstance(error, InvalidInput) else ()


def _limits_form(request: HttpRequest, dag: Dag) -> LimitsForm:
    return LimitsForm(_sent(request), now=options_of(dag), categories=dag.category_limits)


def _version_of_limits(request: HttpRequest, dag: Dag) -> str:
    return _limits_form(request, dag).version


@require_http_methods(["GET", "HEAD", "POST"])
@page
def limits(request: HttpRequest, dag_id: int) -> HttpResponse:
    """Form of a DAG's limits; a refusal is shown in it."""
    dag = find_dag(request.user, dag_id)
    require_steering(Actor.person(request.user), [dag])
    form, error = _limits_form(request, dag), None
    if request.method == "POST":
        rows, now = Dag.objects.filter(pk=dag.pk), partial(_version_of_limits, request)
        try:
            with while_version(request, rows, now, what="the limits of this DAG") as locked:
                changes = _limits_form(request, locked).changes()
                order = Order(Actor.person(request.user), changes.pop("reason"), changes)
                _CHANGE_LIMITS.act(dag.pk, order)
        except (NotPermitted, NotFound):
            raise
        except PilotageError as caught:
            error, form = caught, _limits_form(request, find_dag(request.user, dag_id))
        else:
            messages.success(request, f"The limits of DAG {dag.pk} are changed.")
            return redirect("web:dag", dag_id=dag.pk)
    context = {
        "dag": dag,
        "form": form,
        "has_ended": dag.state in DAG_TERMINAL,
        "categories": categories_of(dag),
        "shared_limits": list(shared_limits_of(dag)),
        "error": error,
    }
    return render_page(request, "dag_limits", context, status=error.status if error else 200)
