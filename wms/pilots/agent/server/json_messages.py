"""Values of messages: what may be sent, problem reports of answers, and the server's clock."""

from __future__ import annotations

import email.utils
import http.client
import json
import random
import time
from typing import Any

_LONGEST_PAUSE_S = 120


def skew_s(response: http.client.HTTPResponse) -> float | None:
    """Clock skew: seconds that the server's clock is ahead of this node's, if it sends a date."""
    try:
        server_time = email.utils.parsedate_to_datetime(response.headers["Date"])
    except (TypeError, ValueError):
        return None
    return float(round(server_time.timestamp() - time.time()))


def retry_after_s(response: http.client.HTTPResponse) -> float:
    """Seconds that the server asks to wait, and a part of one, so that pilots do not come together.

    0 where it does not ask for it, or not in seconds; nobody waits for more than two minutes.
    """
    text = response.headers.get("Retry-After", "")
    if not (text.isascii() and text.isdecimal()):
        return 0.0
    return min(int(text[:9]), _LONGEST_PAUSE_S) + random.random()


def problem_of(response: http.client.HTTPResponse) -> dict[str, Any]:
    """Problem report of an answer, empty where there is none."""
    try:
        problem = json.loads(response.read(65536))
    except (ValueError, OSError, http.client.HTTPException):
        return {}
    return problem if isinstance(problem, dict) else {}


def storable(value: Any) -> Any:
    """Value with "?" in its texts for what no database takes as text.

    Names on this node are bytes: those that are no UTF-8 come as halves of surrogate pairs.
    """
    if isinstance(value, str):
        return value.replace("\0", "?").encode(errors="replace").decode()
    if isinstance(value, dict):
        return {name: storable(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [storable(each) for each in value]
    return value
