"""Checks of job events against DAGMan's table of bad events, without database access.

They tell, by the events that a process has had, whether a further one is used, used or ignored with
a warning, or an error that ends the DAG; and what a process lacks that gets no more. Allowed bad
events are a sum of flags, as in `DAGMAN_ALLOW_EVENTS`.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntFlag, StrEnum
from typing import NamedTuple


class Allow(IntFlag):
    """Flags of bad events that are not errors."""

    #: All except a job that runs after its end.
    ALMOST_ALL = 1
    END_AND_ABORT = 2
    RUN_AFTER_END = 4
    FOREIGN = 8
    BEFORE_SUBMIT = 16
    TWO_ENDS = 32
    REPEATED = 64


DEFAULT = int(Allow.END_AND_ABORT | Allow.BEFORE_SUBMIT | Allow.TWO_ENDS | Allow.REPEATED)


class EventKind(StrEnum):
    """Kinds of events in the table."""

    SUBMIT = "submit"
    EXECUTE = "execute"
    END = "end"
    ABORT = "abort"
    POST = "POST script"


class EventAction(StrEnum):
    """Action for an event: use it, use it with a warning, ignore it with a warning, end the DAG."""

    OKAY = "okay"
    WARN = "warn"
    IGNORE = "ignore"
    ERROR = "error"


class EventCounts(NamedTuple):
    """Numbers of events that a process has had."""

    submits: int = 0
    executes: int = 0
    ends: int = 0
    aborts: int = 0
    posts: int = 0

    @property
    def all_ends(self) -> int:
        """Number of ends and aborts."""
        return self.ends + self.aborts

    def after(self, kind: EventKind) -> EventCounts:
        """Counts after one more event of this kind."""
        name = _FIELDS[kind]
        return self._replace(**{name: getattr(self, name) + 1})


_FIELDS = {
    EventKind.SUBMIT: "submits",
    EventKind.EXECUTE: "executes",
    EventKind.END: "ends",
    EventKind.ABORT: "aborts",
    EventKind.POST: "posts",
}


class EventCheck(NamedTuple):
    """Action for an event, and the problem with it unless it is okay."""

    action: EventAction
    problem: str = ""


_OKAY = EventCheck(EventAction.OKAY)


def check_event(kind: EventKind, before: EventCounts, allow: int = DEFAULT) -> EventCheck:
    """Action for an event of a process that had the events counted in `before`.

    With several problems, the last one of the table decides.
    """
    check = _OKAY
    for problem, is_error, action in _RULES[kind](before, Allow(allow)):
        check = EventCheck(EventAction.ERROR if is_error else action, problem)
    return check


def check_at_end(counts: EventCounts, allow: int = DEFAULT) -> EventCheck:
    """Problem of a process that gets no further events."""
    if counts.submits == 0 or counts.all_ends > 0:
        return _OKAY
    is_allowed = bool(Allow(allow) & (Allow.ALMOST_ALL | Allow.FOREIGN))
    return EventCheck(
        EventAction.IGNORE if is_allowed else EventAction.ERROR,
        "it was submitted and has never ended",
    )


#: Problem, whether it is an error, and the action if it is not.
_Row = tuple[str, bool, EventAction]


def _submit(before: EventCounts, allow: Allow) -> Iterator[_Row]:
    if before.submits:
        yield "submitted twice", not _has(allow, Allow.REPEATED), EventAction.IGNORE
    if before.all_ends:
        yield "submitted after its end", not _has(allow, Allow.BEFORE_SUBMIT), EventAction.IGNORE


def _execute(before: EventCounts, allow: Allow) -> Iterator[_Row]:
    if not before.submits:
        yield _without_submit("runs", allow)
    if before.all_ends:
        # The one thing that "almost all" does not allow.
        yield "runs after its end", Allow.RUN_AFTER_END not in allow, EventAction.IGNORE


def _end(before: EventCounts, allow: Allow) -> Iterator[_Row]:
    yield from _end_of_either_kind(before.after(EventKind.END), allow)


def _abort(before: EventCounts, allow: Allow) -> Iterator[_Row]:
    yield from _end_of_either_kind(before.after(EventKind.ABORT), allow)


def _end_of_either_kind(counts: EventCounts, allow: Allow) -> Iterator[_Row]:
    if not counts.submits:
        yield _without_submit("ended", allow)
    if counts.all_ends > 1:
        flags = Allow.REPEATED | Allow.RUN_AFTER_END
        if (counts.ends, counts.aborts) == (1, 1):
            flags |= Allow.END_AND_ABORT
        elif counts.ends == 2:
            flags |= Allow.TWO_ENDS
        problem = "ended and aborted" if counts.ends and counts.aborts else "ended twice"
        yield problem, not _has(allow, flags), EventAction.IGNORE
    if counts.posts:
        yield "ended after its POST script", not _has(allow, Allow.REPEATED), EventAction.IGNORE


def _post(before: EventCounts, allow: Allow) -> Iterator[_Row]:
    if before.submits and not before.all_ends:
        yield (
            "its POST script ended before it",
            not _has(allow, Allow.ALMOST_ALL),
            EventAction.IGNORE,
        )
    if before.posts:
        is_error = not _has(allow, Allow.FOREIGN | Allow.REPEATED)
        yield "its POST script ended twice", is_error, EventAction.IGNORE


def _without_submit(verb: str, allow: Allow) -> _Row:
    is_error = not _has(allow, Allow.BEFORE_SUBMIT | Allow.FOREIGN)
    return f"{verb} without having been submitted", is_error, EventAction.WARN


def _has(allow: Allow, flags: Allow) -> bool:
    return bool(allow & (flags | Allow.ALMOST_ALL))


_RULES = {
    EventKind.SUBMIT: _submit,
    EventKind.EXECUTE: _execute,
    EventKind.END: _end,
    EventKind.ABORT: _abort,
    EventKind.POST: _post,
}
