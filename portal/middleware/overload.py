"""Overload: who finds no working place is answered 503 at once, before anything was begun.

Programs are answered here, before Django, which costs next to nothing; for people the request goes
on to a middleware that makes a page of it. Free of places is what must not be refused: probes,
figures, static files, the overview, and what pilots tell - that they live, and how jobs fare.
"""

from __future__ import annotations

import io
import random
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from typing import Any, Final

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from portal.metrics.counts import count_refusal
from portal.middleware.error_pages import OVERLOADED, error_page
from portal.middleware.errors import OTHER_FACES
from portal.middleware.request_ids import HEADER
from portal.shared.problem_details import problem_without_view
from portal.shared.working_places import RetryAdvice, WorkingPlaces, resting, working

log = structlog.get_logger(__name__)

_App = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
#: The seconds of `Retry-After`, in the environment of a request that is to get a page.
_REFUSED: Final = "pilotage.refused"
_FREE: Final = re.compile(
    r"/|/metrics|/(?:health|static)/.*"
    r"|/pilot/v1/(?:heartbeat|end|jobs/\d+/\d+/(?:report|files/.*|links/.*))"
)
#: So much is read before a place is asked for, for more it is given back: a sender may be slow.
_READ_AHEAD_BYTES: Final = 64 * 1024
_LOG_EVERY_S: Final = 10.0
_DETAIL: Final = "The portal has more requests than it can answer; this one was not begun."


class BoundedWork:
    """WSGI application that lets a few requests at once into another one, and refuses the rest."""

    def __init__(self, app: _App, places: WorkingPlaces) -> None:
        self._app, self._places = app, places
        self._advice = RetryAdvice()
        self._logged_s = float("-inf")

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """The application's answer, or a refusal that says when to come again."""
        path = environ.get("PATH_INFO", "")
        if _FREE.fullmatch(path):
            return self._app(environ, start_response)
        try:
            _read_ahead(environ)
        except OSError:
            # The sender is gone; the application finds out, and what it does then stands there.
            return self._app(environ, start_response)
        with working(self._places) as has_place:
            self._advice.note(time.monotonic(), is_refused=not has_place)
            if has_place:
                return self._app(environ, start_response)
        return self._refused(path, environ, start_response)

    def _refused(
        self, path: str, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        now_s = time.monotonic()
        # Spread, so that those refused together do not come back together.
        retry_s = self._advice.seconds(now_s, random.random())
        face = path.split("/", 2)[1] if path.startswith(OTHER_FACES) else "page"
        count_refusal(face)
        if now_s - self._logged_s > _LOG_EVERY_S:
            self._logged_s = now_s
            log.warning("requests_refused", face=face, retry_after_s=retry_s)
        if face == "page":
            environ[_REFUSED] = retry_s
            return self._app(environ, start_response)
        name = secrets.token_hex(8)
        with structlog.contextvars.bound_contextvars(request_id=name):
            problem = problem_without_view(
                HTTPStatus.SERVICE_UNAVAILABLE, _DETAIL, code="overloaded"
            )
        fields = [
            *problem.headers.items(),
            (HEADER, name),
            ("Retry-After", str(retry_s)),
            ("Cache-Control", "no-store"),
            ("Content-Length", str(len(problem.content))),
        ]
        status = HTTPStatus.SERVICE_UNAVAILABLE
        start_response(f"{status.value} {status.phrase}", fields)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [problem.content]


def bounded(app: _App) -> _App:
    """The application with as many working places as the settings say; itself where that is 0."""
    if settings.WORKING_PLACES == 0:
        return app
    places = WorkingPlaces(
        settings.WORKING_PLACES,
        waiting=settings.WORKING_PLACES_QUEUE,
        wait_s=settings.WORKING_PLACES_WAIT_S,
    )
    return BoundedWork(app, places)


class RefusedPages:
    """Middleware that answers people who found no working place, before anything is looked up."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer as usual, unless the request was refused."""
        retry_s = request.META.get(_REFUSED)
        if retry_s is None:
            return self._get_response(request)
        page = error_page(request, HTTPStatus.SERVICE_UNAVAILABLE, trouble=OVERLOADED)
        page["Retry-After"] = str(retry_s)
        return page


def _read_ahead(environ: dict[str, Any]) -> None:
    """Read a small body; a large one lets others work while its sender is waited for."""
    announced = environ.get("CONTENT_LENGTH") or ""
    if announced in ("", "0") and not environ.get("wsgi.input_terminated"):
        return
    content = environ["wsgi.input"]
    # Any number of noughts may come before it, so that no part of it says how long it is.
    if announced.isdecimal() and len(announced) <= 20 and int(announced) <= _READ_AHEAD_BYTES:
        environ["wsgi.input"] = io.BytesIO(content.read(int(announced)))
    else:
        environ["wsgi.input"] = _Unhurried(content)


class _Unhurried:
    """Body of a request that gives its working place back while it is read."""

    def __init__(self, content: Any) -> None:
        self._content = content

    def read(self, *size: int) -> bytes:
        with resting():
            found: bytes = self._content.read(*size)
        return found

    def readline(self, *size: int) -> bytes:
        with resting():
            found: bytes = self._content.readline(*size)
        return found

    def readlines(self, *hint: int) -> list[bytes]:
        with resting():
            found: list[bytes] = self._content.readlines(*hint)
        return found

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.readline, b"")
