"""Log lines of requests: a refusal takes one line, a failure brings its trace."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from portal.config.logging_setup import configure


def _line(level: int) -> str:
    """The line of a message with an exception, as the portal's formatter writes it."""
    given: dict[str, Any] = configure()["formatters"]["lines"]
    formatter = given.pop("()")(**given)
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
