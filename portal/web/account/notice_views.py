"""Views of notices: the list, the bell's count, marking as read, and the subscription to a DAG."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from portal.web.lists.paging import page_of
from portal.web.shared.pages import page, render_page
from wms.core.actors import Actor
from wms.core.errors import InvalidInput
from wms.dags.reading.selectors import find_dag
from wms.notices.fanout import MAX_KEPT
from wms.notices.gate_notices import gates_of
from wms.notices.models import Rule
from wms.notices.selectors import own_notices, subscription_to_dag
from wms.notices.services import mark_read, subscribe, unsubscribe

_MOST_MARKED = 100


@require_safe
@page
def notice_list(request: HttpRequest) -> HttpResponse:
    """The user's own notices, latest first; with `unread` only the unread ones."""
    notices = own_notices(request.user)
    only_unread = "unread" in request.GET
    if only_unread:
        notices = notices.filter(read_at=None)
    shown = page_of(notices, request.GET)
    context = {
        "page": shown,
        "gates": gates_of(request.user, shown.rows),
        "only_unread": only_unread,
        "kept": MAX_KEPT,
        "unread": request.user.unread_notices(),
    }
    return render_page(request, "notices", context)


@require_safe
@page
def bell(request: HttpRequest) -> HttpResponse:
    """Number of unread notices, for the bell in the menu."""
    answer = render(request, "components/bell.html", {"unread": request.user.unread_notices()})
    answer["Cache-Control"] = "no-store"
    return answer


@require_POST
@page
def read(request: HttpRequest) -> HttpResponse:
    """Mark the named notices, or all of them, as read."""
    actor = Actor.person(request.user)
    ids = None if "all" in request.POST else _ids(request.POST.getlist("notice"))
    count = mark_read(ids, actor=actor, now=timezone.now())
    if ids is None:
        messages.success(request, f"{count} notice{'' if count == 1 else 's'} marked as read.")
    return redirect("web:notices")


def _ids(words: list[str]) -> list[int]:
    if len(words) > _MOST_MARKED or not all(
        word.isascii() and word.isdigit() and len(word) < 19 for word in words
    ):
        raise InvalidInput.of(f"must be at most {_MOST_MARKED} numbers", field="notice")
    return [int(word) for word in words]


@require_POST
@page
def tell(request: HttpRequest, dag_id: int) -> HttpResponse:
    """Subscribe to a DAG or end the subscription: the button on its page."""
    dag = find_dag(request.user, dag_id)
    actor = Actor.person(request.user)
    known = subscription_to_dag(request.user, dag.pk)
    if request.POST.get("tell") == "no":
        if known is not None:
            unsubscribe(known.pk, actor=actor)
        messages.success(request, f"You are no longer notified about DAG {dag.pk}.")
    else:
        subscribe(Rule.DAG, dag_id=dag.pk, actor=actor)
        messages.success(request, f"You are notified when DAG {dag.pk} ends, fails or is held.")
    return redirect("web:dag", dag_id=dag.pk)
