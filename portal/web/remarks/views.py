"""Pages of the shift log, of the notes on one subject, and what their forms send."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from portal.web.lists.listing import show_list
from portal.web.remarks.forms import LogForm, RemarkForm, form_key
from portal.web.remarks.notes import notes_on
from portal.web.shared.nonces import fresh_nonce
from portal.web.shared.pages import page, render_page
from portal.web.templatetags.remarks import page_of_subject
from wms.actions.dags import DAGS
from wms.actions.failures import FAILURES
from wms.actions.kinds import Kind
from wms.actions.sites_and_pilots import SITES
from wms.core.actors import Actor
from wms.core.errors import Conflict, NotFound, NotPermitted, PilotageError
from wms.core.idempotency import only_once
from wms.remarks.policy import may_write_log
from wms.remarks.services import write_log
from wms.remarks.states import SubjectKind
from wms.remarks.subjects import SUBJECTS, find_subject, may_write

_KINDS: dict[str, Kind] = {
    SubjectKind.DAG: DAGS,
    SubjectKind.SITE: SITES,
    SubjectKind.FAILURE: FAILURES,
}


@require_safe
@page
def shift_log(request: HttpRequest) -> HttpResponse:
    """All entries that the user may see, latest first."""
    may = may_write_log(request.user)
    return show_list(request, "remarks", may_write=may, form=LogForm(), nonce=fresh_nonce())


@require_http_methods(["GET", "HEAD", "POST"])
@page
def write(request: HttpRequest) -> HttpResponse:
    """Write an entry that is about no subject; a refusal is shown at the form.

    Whoever had to log in again comes here by GET, and is led to the log.
    """
    if request.method != "POST":
        return redirect("web:remarks")
    form = LogForm(request.POST)
    try:
        values = form.checked()
        with only_once(request.user, form_key(request)) as creation:
            if creation.known_answer is None:
                remark = write_log(actor=Actor.person(request.user), **values)
                creation.answer = {"remark": remark.pk}
    except NotPermitted:
        raise
    except PilotageError as error:
        context = {"form": form, "nonce": fresh_nonce(), "error": error, "may_write": True}
        return render_page(request, "shift_log_entry", context, status=error.status)
    messages.success(request, "It stands in the shift log.")
    return redirect("web:remarks")


@require_http_methods(["GET", "HEAD", "POST"])
@page
def notes(request: HttpRequest, kind: str, key: str) -> HttpResponse:
    """Notes on one subject. What their form sends comes here, and a refusal is shown at it."""
    subject = find_subject(request.user, kind, key)
    if request.method != "POST":
        return _show(request, kind, subject)
    form = RemarkForm(request.POST)
    try:
        said = _write(request, kind, key, form)
    except (NotPermitted, NotFound):
        raise
    except PilotageError as error:
        now = find_subject(request.user, kind, key)
        return _show(request, kind, now, form=form, error=error)
    what = SUBJECTS[kind].target_of(subject)
    messages.success(request, f"{what[0].upper()}{what[1:]}: {said}.")
    return redirect(f"{page_of_subject(kind, key)}#notes")


def _write(request: HttpRequest, kind: str, key: str, form: RemarkForm) -> str:
    """Carry out what the form says, once, and return its past in words."""
    name, order = form.order(request)
    action = _KINDS[kind].actions[name]
    with only_once(request.user, form_key(request)) as creation:
        if creation.known_answer is None:
            done = action.act(key, order)
            if not done.remark_ids:
                raise Conflict(f"There is nothing to {action.label.lower()}: it is so already.")
            creation.answer = {"remark": done.remark_ids[0]}
    return {"note": "noted", "acknowledge": "acknowledged", "assign": "assigned"}.get(
        name, "handed back"
    )


def _show(
    request: HttpRequest,
    kind: str,
    subject: Any,
    *,
    form: RemarkForm | None = None,
    error: PilotageError | None = None,
) -> HttpResponse:
    may = may_write(request.user, kind, subject)
    found = notes_on(SubjectKind(kind), subject, may_write=may, form=form)
    context = {
        "notes": found,
        "what": SUBJECTS[kind].target_of(subject),
        "name": SUBJECTS[kind].name_of(subject),
        "subject_address": page_of_subject(kind, found.key),
        "error": error,
    }
    return render_page(request, "notes", context, status=error.status if error else 200)
