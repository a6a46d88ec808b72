from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.dags.follow.bad_events import (
    DEFAULT,
    EventAction,
    EventCounts,
    EventKind,
    check_at_end,
    check_event,
)

SUBMIT, EXECUTE, END, ABORT, POST = EventKind
OKAY, WARN, IGNORE, ERROR = EventAction


def test_the_default_is_the_one_of_dagman() -> None:
    assert DEFAULT == 114


@pytest.mark.parametrize(
    ("history", "kind"),
    [
        ([], SUBMIT),
        ([SUBMIT], EXECUTE),
        ([SUBMIT, EXECUTE], EXECUTE),
        ([SUBMIT, EXECUTE], END),
        ([SUBMIT], ABORT),
        ([SUBMIT, EXECUTE, END], POST),
        # The submission had failed.
        ([], POST),
    ],
)
def test_what_is_as_it_should_be_is_okay_whatever_is_allowed(
    history: list[EventKind], kind: EventKind
) -> None:
    counts = after(history)

    assert {check_event(kind, counts, allow).action for allow in range(128)} == {OKAY}


@pytest.mark.parametrize(
    ("history", "kind", "action", "flags", "problem"),
    [
        ([SUBMIT], SUBMIT, IGNORE, {1, 64}, "submitted twice"),
        ([SUBMIT, END], SUBMIT, IGNORE, {1, 16}, "submitted after its end"),
        ([], EXECUTE, WARN, {1, 8, 16}, "runs without having been submitted"),
        ([], END, WARN, {1, 8, 16}, "ended without having been submitted"),
        ([], ABORT, WARN, {1, 8, 16}, "ended without having been submitted"),
        ([SUBMIT, END], EXECUTE, IGNORE, {4}, "runs after its end"),
        ([SUBMIT, END], ABORT, IGNORE, {1, 2, 4, 64}, "ended and aborted"),
        ([SUBMIT, ABORT], END, IGNORE, {1, 2, 4, 64}, "ended and aborted"),
        ([SUBMIT, END], END, IGNORE, {1, 4, 32, 64}, "ended twice"),
        ([SUBMIT, ABORT], ABORT, IGNORE, {1, 4, 64}, "ended twice"),
        ([SUBMIT, END, POST], POST, IGNORE, {1, 8, 64}, "its POST script ended twice"),
        ([SUBMIT], POST, IGNORE, {1}, "its POST script ended before it"),
    ],
)
def test_a_bad_event_is_an_error_unless_one_of_its_flags_is_set(
    history: list[EventKind], kind: EventKind, action: EventAction, flags: set[int], problem: str
) -> None:
    for flag in (1, 2, 4, 8, 16, 32, 64):
        check = check_event(kind, after(history), flag)
        assert check == ((action if flag in flags else ERROR), problem), flag
    assert check_event(kind, after(history), 0) == (ERROR, problem)


def test_an_end_after_the_post_script_is_passed_over_when_repetitions_are_allowed() -> None:
    counts = after([SUBMIT, END, POST])

    assert check_event(END, counts, 64).action == IGNORE
    assert check_event(END, counts, 32).action == ERROR


@pytest.mark.parametrize(
    ("history", "action"),
    [([], OKAY), ([SUBMIT, END], OKAY), ([SUBMIT, ABORT], OKAY), ([SUBMIT, EXECUTE], ERROR)],
)
def test_a_job_that_never_ended_is_an_error_at_the_end(
    history: list[EventKind], action: EventAction
) -> None:
    assert check_at_end(after(history)).action == action
    assert check_at_end(after(history), 1).action == (IGNORE if action == ERROR else OKAY)


@given(st.lists(st.sampled_from(EventKind)), st.sampled_from(EventKind), st.integers(0, 127))
def test_allowing_more_makes_no_more_errors(
    history: list[EventKind], kind: EventKind, allow: int
) -> None:
    counts = after(history)

    if check_event(kind, counts, allow).action != ERROR:
        assert check_event(kind, counts, allow | 64 | 4).action != ERROR


def after(history: list[EventKind]) -> EventCounts:
    counts = EventCounts()
    for kind in history:
        counts = counts.after(kind)
    return counts
