"""Log lines of requests: a refusal takes one line, a failure brings its trace."""

from __future__ import annotations

import io
import json
import logging
from typing import Any

import pytest
import structlog
from django.http import HttpRequest, HttpResponse
from django.test import Client

from portal.config.logging_setup import configure
from portal.middleware.request_ids import NamedRequests


def _formatter(form: str) -> logging.Formatter:
    given: dict[str, Any] = configure(form)["formatters"]["lines"]
    made: logging.Formatter = given.pop("()")(**given)
    return made


def _line(level: int) -> str:
    """The line of a message with an exception, as the portal's formatter writes it."""
    formatter = _formatter("logfmt")
    try:
        raise PermissionError("not for you")
    except PermissionError as error:
        trace = (type(error), error, error.__traceback__)
    record = logging.LogRecord("django.request", level, __file__, 1, "Forbidden", None, trace)
    return str(formatter.format(record))


@pytest.mark.parametrize(("level", "has_trace"), [(logging.WARNING, False), (logging.ERROR, True)])
def test_only_failures_are_logged_with_their_trace(level: int, has_trace: bool) -> None:
    line = _line(level)

    assert "event=Forbidden" in line
    assert ("Traceback" in line) is has_trace


def test_a_line_of_json_has_the_ids_of_what_it_is_about() -> None:
    lines = []

    def view(request: HttpRequest) -> HttpResponse:
        named.process_view(request, view, (), {"dag_id": 17, "job_id": 4, "page": 2})
        record = logging.LogRecord("wms", logging.INFO, __file__, 1, 'a "b"\nc', None, None)
        lines.append(_formatter("json").format(record))
        return HttpResponse()

    named = NamedRequests(view)
    request = HttpRequest()
    request.META["HTTP_X_REQUEST_ID"] = "request-0001"

    named(request)

    facts = json.loads(lines[0])
    assert (facts["event"], facts["level"], facts["logger"]) == ('a "b"\nc', "info", "wms")
    assert (facts["request_id"], facts["dag"], facts["job"]) == ("request-0001", "17", "4")
    assert "page" not in facts
    assert structlog.contextvars.get_contextvars() == {}


def test_a_refusal_is_logged_once_with_the_id_that_its_answer_has(client: Client) -> None:
    lines = io.StringIO()
    handler = logging.StreamHandler(lines)
    handler.setFormatter(_formatter("json"))
    logger = logging.getLogger("django.request")
    logger.addHandler(handler)

    answer = client.get("/api/v1/nothing/")

    logger.removeHandler(handler)
    [line] = lines.getvalue().splitlines()
    assert json.loads(line)["request_id"] == answer["X-Request-ID"]
