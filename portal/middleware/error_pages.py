"""Error pages for people by status code: what happened, what to do next, and the request id.

They need neither database nor session nor user, since any of these may be missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string


@dataclass(frozen=True, slots=True)
class StatusExplanation:
    """Explanation of a status code, and advice."""

    title: str
    detail: str
    advice: str


TROUBLES: dict[int, StatusExplanation] = {
    HTTPStatus.BAD_REQUEST: StatusExplanation(
        "This request cannot be read",
        "The browser sent something that the portal does not understand. Nothing was changed.",
        "Go back, load the page again, and repeat what you did.",
    ),
    HTTPStatus.FORBIDDEN: StatusExplanation(
        "You may not do this",
        "Your account has no right to see or do this.",
        "Ask somebody who may, or ask an admin for the role: admins give roles.",
    ),
    HTTPStatus.NOT_FOUND: StatusExplanation(
        "There is nothing here",
        "The address is wrong, what was here has gone, or you may not see it.",
        "Look for it in the lists: DAGs, jobs, sites and pilots are found there by name.",
    ),
    HTTPStatus.METHOD_NOT_ALLOWED: StatusExplanation(
        "This address cannot be used so",
        "It is for another kind of request: a form is sent to it, or it is only read.",
        "Open the page that the form is on, and send it from there.",
    ),
    HTTPStatus.CONFLICT: StatusExplanation(
        "This has changed meanwhile",
        "What you saw is not what is there now. Nothing was changed by this request.",
        "Look at it as it is now, and decide again.",
    ),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: StatusExplanation(
        "This is too large",
        "The request is larger than allowed. Nothing was stored.",
        "Send less at once; the limits stand in the reference of the settings.",
    ),
    HTTPStatus.TOO_MANY_REQUESTS: StatusExplanation(
        "Too much at once",
        "You ask for more at once than one may.",
        "Wait some minutes, and try again.",
    ),
    HTTPStatus.INTERNAL_SERVER_ERROR: StatusExplanation(
        "Something went wrong on our side",
        "The request was not carried out, and what it had begun was taken back.",
        "Try again in a moment. If it happens again, give the operators the id below: the log "
        "tells what happened under it.",
    ),
    HTTPStatus.SERVICE_UNAVAILABLE: StatusExplanation(
        "The portal cannot reach its database",
        "Nothing can be shown or changed at present. What runs at the sites goes on, and is "
        "reported when the database is back.",
        "Wait a moment and load the page again. If it lasts, tell the operators.",
    ),
}
#: There was no working place.
OVERLOADED = StatusExplanation(
    "The portal has too much to do",
    "More is asked of it at this moment than it can answer. This request was not begun, so nothing "
    "was changed. What runs at the sites goes on.",
    "Wait a few seconds, and load the page again or send the form once more.",
)
#: A value that the refusal itself names.
REFUSED = StatusExplanation(
    "This was refused",
    "What was sent has a fault. Nothing was changed.",
    "Go back, put right what is named here, and try again.",
)
STALE_FORM = StatusExplanation(
    "This form is too old",
    "It was loaded before you last logged in, or cookies are switched off. Nothing was changed.",
    "Load the page again and repeat what you did.",
)


def request_id_of(request: HttpRequest) -> str:
    """The id of a request, as it stands in the log."""
    return getattr(request, "request_id", "")


def error_page(
    request: HttpRequest,
    status: HTTPStatus,
    *,
    trouble: StatusExplanation | None = None,
    detail: str = "",
) -> HttpResponse:
    """Error page of a status; `detail` adds what exactly happened."""
    found = trouble or TROUBLES[status]
    context = {
        "status": status.value,
        "title": found.title,
        "detail": detail or found.detail,
        "advice": found.advice,
        "request_id": request_id_of(request),
    }
    # Rendered without the request: context processors would ask for the user.
    return HttpResponse(render_to_string("error.html", context), status=status)
