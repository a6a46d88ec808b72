"""Numbers in sentences."""

from __future__ import annotations

import pytest

from matching.plurals import counted, pilots_are
from matching.pressure.capacity import ResourceVector
from matching.pressure.job_division import Need
from matching.pressure.plan import Bounds, QueueState, Scopes, plan


@pytest.mark.parametrize(
    ("number", "sentence"), [(0, "0 pilots wait"), (1, "1 pilot waits"), (2, "2 pilots wait")]
)
def test_one_is_no_plural(number: int, sentence: str) -> None:
    assert counted(number, "pilot waits", "pilots wait") == sentence


def test_pilots_are_and_a_pilot_is() -> None:
    assert (pilots_are(1, "idle"), pilots_are(3, "idle")) == (
        "1 pilot is idle",
        "3 pilots are idle",
    )


@pytest.mark.parametrize("number", [1, 2])
def test_the_reasons_of_a_request_count_in_words(number: int) -> None:
    need = Need(pilots=9)
    need.jobs[ResourceVector(1)] = 9
    queue = QueueState(
        "a/b", need, running=number, busy=number, max_queued=number, max_pilots=number, site="a"
    )
    bounds = Bounds("site limit", max_pilots=number, max_cores=number)

    reasons = plan([queue], Scopes(sites={"a": bounds}))["a/b"].reasons

    pilots, is_there = ("pilots", "are") if number > 1 else ("pilot", "is")
    assert f"queue limit {number}: {number} {pilots} {is_there} there" in reasons
    assert f"at most {number} waiting {pilots}" in reasons
