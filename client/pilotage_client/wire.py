"""Protocol without the wire: requests, answers, and flows of them.

A flow is a generator that yields requests and pauses, and is sent what became of each. It knows no
network and no clock, so one flow serves the synchronous and the asynchronous client.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import uniform
from typing import Any, Protocol, TypeVar, Union
from urllib.parse import quote

JSON = "application/json"
_PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0)
#: Nothing was begun: the same may be asked again, whatever it is.
_ASK_AGAIN = frozenset({429, 503})
#: A gateway that got no answer: nobody knows whether the portal did it.
_PERHAPS = frozenset({502, 504})
#: Who is told to wait longer is told so, instead of waiting.
_LONGEST_PAUSE_S = 120.0


class Body(Protocol):
    """Content of a request, of a length that is known; it can be read more than once."""

    content_type: str
    length: int

    def __iter__(self) -> Iterator[bytes]:
        """Pieces of the content."""
        ...


class Sink(Protocol):
    """Place where the content of an answer goes, piece by piece."""

    def begin(self, length: int | None) -> None:
        """Begin, once more after a piece was lost; the length if it is told."""
        ...

    def write(self, piece: bytes) -> None:
        """Take the next piece."""
        ...


@dataclass(frozen=True)
class Request:
    """One request to the portal; `path` is below /api/v1/.

    With a `key`, or if `is_idempotent`, it can be sent again after a lost answer: it has the effect
    of one. `sink` takes the content of a good answer. `is_json` tells what answer is expected.
    `more_headers` are those that its content does not need by itself.
    """

    method: str
    path: str
    query: Sequence[tuple[str, str]] = ()
    json: Any = None
    body: Body | None = None
    key: str = ""
    is_idempotent: bool = False
    is_json: bool = True
    sink: Sink | None = None
    more_headers: Sequence[tuple[str, str]] = ()

    @property
    def is_repeatable(self) -> bool:
        """Whether it may be sent again when nobody knows what became of it."""
        return self.method == "GET" or bool(self.key) or self.is_idempotent

    @property
    def headers(self) -> dict[str, str]:
        """Headers that its content needs."""
        found = {"Accept": JSON if self.is_json else "*/*"}
        if self.body is not None:
            found["Content-Type"] = self.body.content_type
            found["Content-Length"] = str(self.body.length)
        if self.key:
            found["Idempotency-Key"] = self.key
        return {**found, **dict(self.more_headers)}


@dataclass(frozen=True)
class Answer:
    """Answer of a server; the names of `headers` are in lower case, `body` is empty for a sink.

    `took_s` is how long it has kept the client waiting.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    took_s: float = 0.0

    @property
    def kind(self) -> str:
        """Media type without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def retry_after_s(self) -> float:
        """Time to wait before one asks again; 0 if none is told."""
        text = self.headers.get("retry-after", "")
        return float(text) if text.isdigit() else 0.0


@dataclass(frozen=True)
class Silence:
    """No answer: the server cannot be reached, or broke off; `is_sent` if it may have heard it."""

    url: str
    reason: str
    is_sent: bool = True


@dataclass(frozen=True)
class Pause:
    """Time to wait before the flow goes on; `reason` tells what keeps it, if something does."""

    seconds: float
    reason: str = ""


Outcome = Union[Answer, Silence]
Step = Union[Request, Pause]
T = TypeVar("T")
#: Yields steps, is sent the outcome of each request, returns its result.
Flow = Generator[Step, Any, T]


@dataclass(frozen=True)
class Patience:
    """Number of times a request is repeated that got no answer, or was put off."""

    repetitions: int = len(_PAUSES_S)
    pauses_s: Sequence[float] = field(default=_PAUSES_S)

    def pause_s(self, place: int, asked_s: float = 0.0) -> float:
        """Pause before the repetition, at least as long as the portal asked for.

        The others vary, so that programs that failed together do not come back together.
        """
        pause_s = self.pauses_s[min(place, len(self.pauses_s) - 1)] * uniform(0.7, 1.0)
        return max(pause_s, asked_s)


def patiently(request: Request, patience: Patience) -> Flow[Outcome]:
    """Send a request, again where that does no harm; the last outcome.

    It may have been heard if that is so of any of them.
    """
    is_sent = False
    for place in range(patience.repetitions):
        outcome: Outcome = _heard((yield request), is_sent)
        is_sent = is_sent or _may_be_heard(outcome)
        asked_s = outcome.retry_after_s if isinstance(outcome, Answer) else 0.0
        if asked_s > _LONGEST_PAUSE_S or not _may_ask_again(request, outcome):
            return outcome
        yield Pause(patience.pause_s(place, asked_s), told(outcome))
    return _heard((yield request), is_sent)


def _may_be_heard(outcome: Outcome) -> bool:
    return outcome.is_sent if isinstance(outcome, Silence) else outcome.status in _PERHAPS


def _heard(outcome: Outcome, is_sent: bool) -> Outcome:
    """The outcome, of a request that may have been heard before."""
    if is_sent and isinstance(outcome, Silence):
        return replace(outcome, is_sent=True)
    return outcome


def is_put_off(outcome: Outcome) -> bool:
    """Whether the same may go well later: nobody answered, or it was asked to wait."""
    return isinstance(outcome, Silence) or outcome.status in _ASK_AGAIN | _PERHAPS


def told(outcome: Outcome) -> str:
    """Reason why a request has to be sent again, for people."""
    if isinstance(outcome, Silence):
        return f"{outcome.url} does not answer: {outcome.reason}"
    return f"{outcome.url} asks to wait (status {outcome.status})"


def _may_ask_again(request: Request, outcome: Outcome) -> bool:
    if isinstance(outcome, Silence):
        return request.is_repeatable or not outcome.is_sent
    if outcome.status in _ASK_AGAIN:
        return True
    return outcome.status in _PERHAPS and request.is_repeatable


def path(*parts: object) -> str:
    """Path below /api/v1/ with a slash at its end; each part is quoted as a whole."""
    return "/".join(quote(str(part), safe="") for part in parts) + "/"


def query_of(values: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Parameters of an address; None and empty lists are left out, lists are joined by commas."""
    found = []
    for name, value in values.items():
        if value is None or value == ():
            continue
        if isinstance(value, bool):
            text = "true" if value else "false"
        elif isinstance(value, (list, tuple)):
            text = ",".join(map(str, value))
        else:
            text = str(value)
        found.append((name, text))
    return tuple(found)
