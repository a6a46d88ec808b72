"""Page rendering: decorator for login and errors, full page or live part with ETag, refusals.

Also whether a page links to the administration.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from functools import wraps
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils.cache import get_conditional_response, patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import HttpResponseClientRefresh

from portal.middleware.error_pages import REFUSED, TROUBLES, request_id_of
from portal.personal.selectors import preferences_of
from portal.personal.zones import shown_in
from wms.core.errors import PilotageError
from wms.core.models import Role
from wms.core.policy import has_role

View = Callable[..., HttpResponseBase]

#: The element of a page that is refreshed, and how often.
LIVE_TARGET = "live"
REFRESH_S = 5
#: Its header in which the server asks for another pace than the page began with.
REFRESH_HEADER = "X-Refresh-Every"
#: Parts of a page that vary per rendering without a change of meaning: signatures, and how long ago
#: something was, which a script of the page keeps true.
_VARYING = re.compile(
    rb"<input[^<>]* data-varying>"
    rb'|(?<=<time class="at" )title="[^"]*"'
    rb'|(<time class="since"[^>]*>)[^<]*'
)


def page(view: View) -> View:
    """Decorator of views for logged-in users; domain errors become pages with their status."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            # A part of a page cannot show the login form, so the whole page is loaded again.
            if request.htmx:
                return HttpResponseClientRefresh()
            return _to_login(request)
        try:
            with shown_in(preferences_of(request.user)):
                return view(request, *args, **kwargs)
        except PilotageError as error:
            return refusal(request, error)

    return wrapped


def _to_login(request: HttpRequest) -> HttpResponse:
    """Redirect to the login. A submitted form is lost: the page says so and links back."""
    if request.method != "POST":
        return redirect_to_login(request.get_full_path())
    messages.warning(
        request,
        "Your login has ended: what you sent was not carried out. Log in and send it again.",
    )
    origin = request.headers.get("Referer", "")
    is_ours = url_has_allowed_host_and_scheme(
        origin, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    parts = urlsplit(origin if is_ours else "")
    return redirect_to_login(urlunsplit(("", "", parts.path, parts.query, "")) or "/")


class Link(NamedTuple):
    """A link with its label."""

    label: str
    address: str


def refusal(request: HttpRequest, error: PilotageError, way: Link | None = None) -> HttpResponse:
    """Page with the reason of a refusal, and a link to the overview or elsewhere."""
    refused = error.status == HTTPStatus.BAD_REQUEST
    trouble = REFUSED if refused else TROUBLES.get(error.status, REFUSED)
    context = {
        "status": error.status,
        "title": trouble.title,
        "detail": str(error),
        "advice": trouble.advice,
        "request_id": request_id_of(request),
        "way": way,
    }
    answer = render(request, "web/refusal.html", context, status=error.status)
    if error.retry_after_s is not None:
        answer["Retry-After"] = str(error.retry_after_s)
    return answer


def render_page(
    request: HttpRequest, name: str, context: Mapping[str, Any], *, status: int = 200
) -> HttpResponse:
    """Page `name`, or its live part alone when that is what the page asks to refresh.

    An unchanged live part is answered by 304, so that nothing in the page moves. The page is
    refreshed every `refresh_s` seconds of the context, if that is set.
    """
    is_live = is_part(request)
    context = {"refresh_s": REFRESH_S, "is_part": is_live, **context}
    template = f"web/{name}_live.html" if is_live else f"web/{name}.html"
    response = render(request, template, context, status=status)
    patch_vary_headers(response, ("HX-Request", "HX-Target"))
    if not is_live:
        return response
    response["Cache-Control"] = "no-store"
    response[REFRESH_HEADER] = str(context["refresh_s"])
    response["ETag"] = _etag(response.content)
    answer: HttpResponse = get_conditional_response(
        request, etag=response["ETag"], response=response
    )
    return answer


def _etag(content: bytes) -> str:
    """ETag of the page without what varies per rendering."""
    lasting = _VARYING.sub(rb"\1", content)
    return f'"{hashlib.sha256(lasting).hexdigest()[:32]}"'


def is_part(request: HttpRequest) -> bool:
    """Whether an open page requests only its live part."""
    return bool(request.htmx and request.htmx.target == LIVE_TARGET)


def may_configure(request: HttpRequest) -> bool:
    """Whether the page shows a link to the administration."""
    return request.user.is_staff and has_role(request.user, Role.OPERATOR)
