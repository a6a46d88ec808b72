"""Views of the cluster page, of its actions, and of the way to one of its jobs."""

from __future__ import annotations

from operator import attrgetter

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from portal.web.clusters.page import show_cluster
from portal.web.shared.action_forms import ActionForm, Refused
from portal.web.shared.pages import page
from portal.web.shared.stale_forms import while_seen
from wms.actions.clusters import CLUSTERS
from wms.core.actors import Actor
from wms.core.errors import Conflict, NotFound, NotPermitted, PilotageError
from wms.core.transitions import Applied
from wms.jobs.clusters.selectors import find_cluster, find_job_of_cluster
from wms.jobs.models import Cluster


@require_safe
@page
def cluster_page(request: HttpRequest, cluster_id: int) -> HttpResponse:
    """Page of one cluster."""
    return show_cluster(request, cluster_id)


@require_safe
@page
def cluster_job(request: HttpRequest, cluster_id: int) -> HttpResponse:
    """Redirect to the job with the number that was asked for."""
    cluster = find_cluster(request.user, cluster_id)
    number = request.GET.get("process", "").strip()
    if not (number.isascii() and number.isdigit() and len(number) <= 18):
        raise NotFound(f"Give the number of a job of the cluster, from 0 to {cluster.size - 1}.")
    return redirect("web:job", job_id=find_job_of_cluster(request.user, cluster, int(number)).pk)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def steer(request: HttpRequest, cluster_id: int, event: str) -> HttpResponse:
    """Carry out an action on a cluster; a refusal is shown at the form that was sent.

    Whoever had to log in again comes here by GET, and is led to the cluster.
    """
    action = CLUSTERS.find_on_page(event)
    if action is None:
        raise Http404
    cluster = find_cluster(request.user, cluster_id)
    if request.method != "POST":
        return redirect("web:cluster", cluster_id=cluster.pk)
    form = ActionForm(action, request.POST)
    try:
        order = form.order(Actor.person(request.user))
        rows, state = Cluster.objects.filter(pk=cluster.pk), attrgetter("state")
        with while_seen(request, rows, state, what=f"cluster {cluster.pk}") as now:
            done = action.act(cluster.pk, order)
        if isinstance(done, Applied) and not done.changed:
            raise Conflict(f"Nothing was done: the cluster is {now.state}.")
    except (NotPermitted, NotFound):
        raise
    except PilotageError as error:
        return show_cluster(request, cluster_id, refused=Refused(form, error))
    messages.success(request, f"Cluster {cluster.pk} {action.done}.")
    # A rerun is a cluster of its own.
    shown = done.pk if isinstance(done, Cluster) else cluster.pk
    return redirect("web:cluster", cluster_id=shown)
