"""Errors of the client: a class for each kind of refusal, with its code, place and reason.

The text of each is one sentence for people. `exit_code` is that of the command line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from .model import Finding
from .wire import Answer, Outcome, Silence

_NO_TYPE = "about:blank"
_PROBLEM = "application/problem+json"
_REDIRECTIONS = range(300, 400)
_SHOWN_CHARACTERS = 200


class PilotageError(Exception):
    """Something did not work; the text says what, and what helps."""

    exit_code = 1
    code = "error"
    place = ""

    @property
    def reason(self) -> str:
        """Why, for people."""
        return str(self)


class UsageError(PilotageError):
    """A parameter, a profile or a file of this host is not as it has to be."""

    exit_code = 2
    code = "usage"


def why_of(error: OSError | UnicodeDecodeError) -> str:
    """Reason why a file cannot be read, for people."""
    return error.strerror or str(error) if isinstance(error, OSError) else "it is no text in UTF-8"


class NoProfile(UsageError):
    """Nobody has told which portal, or with which token."""

    exit_code = 3
    code = "no-profile"


class LoginEnded(PilotageError):
    """A login by a provider was refused, or has come to its end; another one begins anew."""

    exit_code = 3
    code = "login-ended"


class NoAnswer(PilotageError):
    """The portal cannot be reached, or broke off before it answered; `is_sent` if it may have heard
    what was asked.
    """

    exit_code = 6
    code = "no-answer"

    def __init__(self, message: str, *, is_sent: bool = True) -> None:
        super().__init__(message)
        self.is_sent = is_sent


class NotPilotage(PilotageError):
    """Something else answered: a proxy, a login page, another server."""

    exit_code = 6
    code = "not-pilotage"


class NoSuchNode(PilotageError):
    """A DAG has no node of this name."""

    exit_code = 5
    code = "no-such-node"


class TimedOut(PilotageError):
    """End of a wait for something that has not come in time."""

    exit_code = 7
    code = "timed-out"


class LogLost(PilotageError):
    """A part of a followed log is not there any more."""

    code = "log-lost"


class Problem(PilotageError):
    """A refusal by the portal, as it tells it (RFC 9457)."""

    def __init__(self, document: Mapping[str, Any], answer: Answer) -> None:
        self.status, self.url = answer.status, answer.url
        self.type = str(document.get("type") or _NO_TYPE)
        self.title = str(document.get("title") or "")
        self.detail = str(document.get("detail") or self.title or f"status {answer.status}")
        self.findings: Sequence[Finding] = tuple(map(Finding.of, document.get("findings") or ()))
        self.warnings: Sequence[Finding] = tuple(map(Finding.of, document.get("warnings") or ()))
        self.request_id = str(
            document.get("request_id") or answer.headers.get("x-request-id") or ""
        )
        self.retry_after_s = answer.retry_after_s
        self.document = document
        super().__init__(self.detail)

    @property
    def code(self) -> str:  # type: ignore[override]
        """Last part of the problem's type; without a type of its own, the status."""
        if self.type == _NO_TYPE:
            return str(self.status)
        return self.type.rstrip("/").replace(":", "/").rpartition("/")[2]

    @property
    def place(self) -> str:  # type: ignore[override]
        """Place of the first fault: a file with its line, or a field; empty if it has no place."""
        return next((found.place for found in self.findings if found.place), "")


class InvalidInput(Problem):
    """The input has faults; nothing was changed."""


class NotAuthenticated(Problem):
    """No token, or one that is unknown, revoked or has run out."""

    exit_code = 3

    def __str__(self) -> str:
        """The reason, and what helps."""
        return f"{self.detail.rstrip('.')}: `pilotage login` takes another token."


class NotPermitted(Problem):
    """One may not do this."""

    exit_code = 4


class NotFound(Problem):
    """There is no such object, or one may not see it."""

    exit_code = 5

    def __str__(self) -> str:
        """The reason, and which object was asked for if that does not tell it."""
        if any(character.isdigit() for character in self.detail):
            return self.detail
        return f"{self.detail.rstrip('.')}: {self.url.partition('/api/v1/')[2]}"


class Conflict(Problem):
    """The state of the object does not allow it, or the key was used for something else."""


class QuotaExceeded(Conflict):
    """More than the quota allows."""


class TooLarge(InvalidInput):
    """The request is larger than the portal takes."""


class Busy(Problem):
    """Too much is asked for at once; later it may be asked again."""

    exit_code = 6


class ServerFault(Problem):
    """A fault of the portal itself."""

    exit_code = 6

    def __str__(self) -> str:
        """The fault, and by what operators find it."""
        told = f" Operators find it in the log as request {self.request_id}."
        return f"The portal has a fault ({self.status}): {self.detail.rstrip('.')}." + (
            told if self.request_id else ""
        )


_BY_STATUS: Mapping[int, type[Problem]] = {
    400: InvalidInput,
    401: NotAuthenticated,
    403: NotPermitted,
    404: NotFound,
    409: Conflict,
    413: TooLarge,
    415: InvalidInput,
    422: InvalidInput,
    429: Busy,
}
_BY_CODE: Mapping[str, type[Problem]] = {"quota": QuotaExceeded}


def good(outcome: Outcome, *, is_json: bool = True) -> Answer:
    """Answer that is as it should be. Raises the error that another one means."""
    if isinstance(outcome, Silence):
        message = f"The portal at {outcome.url} does not answer: {outcome.reason}."
        raise NoAnswer(message, is_sent=outcome.is_sent)
    if outcome.status in _REDIRECTIONS:
        target = outcome.headers.get("location", "elsewhere")
        raise NotPilotage(
            f"{outcome.url} sends on to {target}, and the token is for one portal only: "
            "log in to the address that the portal itself has."
        )
    if outcome.status >= 400:
        raise _refusal(outcome)
    if is_json and outcome.status != 204 and not outcome.kind.endswith("json"):
        raise _foreign(outcome)
    return outcome


def decoded(answer: Answer) -> Any:
    """Value of a JSON answer; None for one without content. Raises NotPilotage."""
    if not answer.body:
        return None
    try:
        return json.loads(answer.body)
    except ValueError:
        raise _foreign(answer) from None


def _refusal(answer: Answer) -> PilotageError:
    if answer.kind != _PROBLEM:
        return _foreign(answer)
    try:
        document = json.loads(answer.body)
    except ValueError:
        return _foreign(answer)
    if not isinstance(document, dict):
        return _foreign(answer)
    kind = _BY_STATUS.get(answer.status, ServerFault if answer.status >= 500 else Problem)
    found = Problem(document, answer)
    kind = _BY_CODE.get(found.code, kind)
    return kind(document, answer)


def _foreign(answer: Answer) -> NotPilotage:
    named = answer.headers.get("server", "")
    by = f" by {named}" if named else ""
    what = "a web page" if answer.kind == "text/html" else f"{answer.kind or 'no content'}"
    return NotPilotage(
        f"{answer.url} answered with {what} (status {answer.status}{by}) where Pilotage answers "
        "with JSON: a proxy is in between, or the address is not that of a portal."
    )
