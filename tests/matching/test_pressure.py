from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.pressure import QueueSnapshot, decide_pressure

BUSY = QueueSnapshot(
    is_enabled=True,
    waiting_jobs=10,
    pending_pilots=0,
    idle_pilots=0,
    alive_pilots=0,
    max_pilots=8,
    max_queued_pilots=5,
    free_slots=6,
)


@pytest.mark.parametrize(
    ("changes", "submit", "reason"),
    [
        ({}, 5, "at most 5 queued pilots"),
        ({"max_queued_pilots": 20}, 6, "free slots"),
        ({"max_queued_pilots": 20, "free_slots": 20}, 8, "at most 8 pilots"),
        ({"waiting_jobs": 3, "pending_pilots": 1, "idle_pilots": 1}, 1, "no pilot is free for"),
        ({"waiting_jobs": 1, "idle_pilots": 4}, 0, "no pilot is free for"),
        (
            {
                "waiting_jobs": 999,
                "max_pilots": 999,
                "max_queued_pilots": 999,
                "free_slots": 999,
            },
            200,
            "at most 200 pilots at once",
        ),
        ({"waiting_jobs": 0}, 0, "no waiting job fits"),
        ({"is_enabled": False}, 0, "switched off"),
    ],
)
def test_the_tightest_limit_decides_and_is_named(
    changes: dict[str, int], submit: int, reason: str
) -> None:
    decision = decide_pressure(replace(BUSY, **changes))

    assert decision.submit == submit
    assert reason in decision.reason


@given(*[st.integers(0, 20)] * 7)
def test_no_limit_is_ever_exceeded(
    waiting: int, pending: int, idle: int, alive: int, most: int, most_queued: int, free: int
) -> None:
    decision = decide_pressure(
        QueueSnapshot(True, waiting, pending, idle, pending + idle + alive, most, most_queued, free)
    )

    assert decision.submit >= 0
    if decision.submit:
        assert pending + idle + alive + decision.submit <= most
        assert pending + decision.submit <= most_queued
        assert decision.submit <= free
        assert decision.submit + pending + idle <= waiting
