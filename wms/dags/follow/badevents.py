"""Which events of a job may follow which: DAGMan's table of bad events, as a pure function.

What is allowed is a sum of flags, as in `DAGMAN_ALLOW_EVENTS`.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntFlag, StrEnum
from typing import NamedTuple


class Allow(IntFlag):
    """Bad events that are no error."""

    #: All but that a job runs after its end.
    ALMOST_ALL = 1
    END_AND_ABORT = 2
    RUN_AFTER_END = 4
    FOREIGN = 8
    BEFORE_SUBMIT = 16
    TWO_ENDS = 32
    REPEATED = 64


DEFAULT = int(Allow.END_AND_ABORT | Allow.BEFORE_SUBMIT | Allow.TWO_ENDS | Allow.REPEATED)


class EventKind(StrEnum):
    """The events that the table is about."""

    SUBMIT = "submit"
    EXECUTE = "execute"
    END = "end"
    ABORT = "abort"
    POST = "POST script"


class Answer(StrEnum):
    """What is done with an event: used, used and told, passed over and told, or the DAG ends."""

    OKAY = "okay"
    WARN = "warn"
    IGNORE = "ignore"
    ERROR = "error"


class Counts(NamedTuple):
    """The events that a process has had."""

    submits: int = 0
    executes: int = 0
    ends: int = 0
    aborts: int = 0
    posts: int = 0

    @property
    def all_ends(self) -> int:
        """Ends of either kind."""
        return self.ends + self.aborts

    def after(self, kind: EventKind) -> Counts:
        """The counts when an event of this kind has come as well."""
        name = _FIELDS[kind]
        return self._replace(**{name: getattr(self, name) + 1})


_FIELDS = {
    EventKind.SUBMIT: "submits",
    EventKind.EXECUTE: "executes",
    EventKind.END: "ends",
    EventKind.ABORT: "aborts",
    EventKind.POST: "posts",
}


class Judgement(NamedTuple):
    """The answer, and what is wrong with the event unless it is okay."""

    answer: Answer
    what: str = ""


_OKAY = Judgement(Answer.OKAY)


def judge(kind: EventKind, before: Counts, allow: int = DEFAULT) -> Judgement:
    """What is done with an event of a process that had the events of `before`.

    Where several things are wrong, the last of the table decides.
    """
    found = _OKAY
    for what, is_error, else_answer in _RULES[kind](before, Allow(allow)):
        found = Judgement(Answer.ERROR if is_error else else_answer, what)
    return found


def judge_at_end(counts: Counts, allow: int = DEFAULT) -> Judgement:
    """What is wrong with a process when nothing more will come."""
    if counts.submits == 0 or counts.all_ends > 0:
        return _OKAY
    is_allowed = bool(Allow(allow) & (Allow.ALMOST_ALL | Allow.FOREIGN))
    return Judgement(
        Answer.IGNORE if is_allowed else Answer.ERROR, "it was submitted and has never ended"
    )


#: What is wrong, whether that is an error, and the answer where it is none.
_Row = tuple[str, bool, Answer]


def _submit(before: Counts, allow: Allow) -> Iterator[_Row]:
    if before.submits:
        yield "submitted twice", not _has(allow, Allow.REPEATED), Answer.IGNORE
    if before.all_ends:
        yield "submitted after its end", not _has(allow, Allow.BEFORE_SUBMIT), Answer.IGNORE


def _execute(before: Counts, allow: Allow) -> Iterator[_Row]:
    if not before.submits:
        yield _without_submit("runs", allow)
    if before.all_ends:
        # The one thing that "almost all" does not allow.
        yield "runs after its end", Allow.RUN_AFTER_END not in allow, Answer.IGNORE


def _end(before: Counts, allow: Allow) -> Iterator[_Row]:
    yield from _end_of_either_kind(before.after(EventKind.END), allow)


def _abort(before: Counts, allow: Allow) -> Iterator[_Row]:
    yield from _end_of_either_kind(before.after(EventKind.ABORT), allow)


def _end_of_either_kind(counts: Counts, allow: Allow) -> Iterator[_Row]:
    if not counts.submits:
        yield _without_submit("ended", allow)
    if counts.all_ends > 1:
        wanted = Allow.REPEATED | Allow.RUN_AFTER_END
        if (counts.ends, counts.aborts) == (1, 1):
            wanted |= Allow.END_AND_ABORT
        elif counts.ends == 2:
            wanted |= Allow.TWO_ENDS
        what = "ended and aborted" if counts.ends and counts.aborts else "ended twice"
        yield what, not _has(allow, wanted), Answer.IGNORE
    if counts.posts:
        yield "ended after its POST script", not _has(allow, Allow.REPEATED), Answer.IGNORE


def _post(before: Counts, allow: Allow) -> Iterator[_Row]:
    if before.submits and not before.all_ends:
        yield "its POST script ended before it", not _has(allow, Allow.ALMOST_ALL), Answer.IGNORE
    if before.posts:
        is_error = not _has(allow, Allow.FOREIGN | Allow.REPEATED)
        yield "its POST script ended twice", is_error, Answer.IGNORE


def _without_submit(what: str, allow: Allow) -> _Row:
    is_error = not _has(allow, Allow.BEFORE_SUBMIT | Allow.FOREIGN)
    return f"{what} without having been submitted", is_error, Answer.WARN


def _has(allow: Allow, wanted: Allow) -> bool:
    return bool(allow & (wanted | Allow.ALMOST_ALL))


_RULES = {
    EventKind.SUBMIT: _submit,
    EventKind.EXECUTE: _execute,
    EventKind.END: _end,
    EventKind.ABORT: _abort,
    EventKind.POST: _post,
}
