"""What leaves together, and when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from wms.notices.packing import BURST, USUAL, Daily, Packet, PendingNotice, SentMessage, packets

NOON = datetime(2026, 11, 22, 12, 20, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def waiting(*threads: str, since: datetime = NOON) -> list[PendingNotice]:
    return [PendingNotice(number, thread, since) for number, thread in enumerate(threads, start=1)]


def test_the_first_of_an_object_leaves_at_once() -> None:
    assert packets("now", waiting("dag:1"), [], NOON) == [Packet((1,), "dag:1")]


def test_what_came_meanwhile_of_one_object_leaves_in_one_message() -> None:
    assert packets("now", waiting("dag:1", "dag:1", "dag:2"), [], NOON) == [
        Packet((1, 2), "dag:1"), Packet((3,), "dag:2")
    ]  # fmt: skip


def test_an_object_of_which_was_just_told_waits_for_its_summary() -> None:
    sent = [SentMessage("dag:1", NOON - MINUTE)]
    held = waiting("dag:1", "dag:1")

    assert packets("now", held, sent, NOON) == []
    assert packets("now", held, sent, NOON + 13 * MINUTE) == []
    assert packets("now", held, sent, NOON + 14 * MINUTE) == [Packet((1, 2), "dag:1")]


def test_of_a_flood_the_first_leave_at_once_and_the_rest_as_one_summary() -> None:
    flood = waiting(*(f"dag:{number}" for number in range(2500)))

    first = packets("now", flood, [], NOON)
    sent = [SentMessage(packet.thread, NOON) for packet in first]
    rest = flood[BURST:]

    assert [len(packet.ids) for packet in first] == [1] * BURST
    assert packets("now", rest, sent, NOON + 14 * MINUTE) == []
    [summary] = packets("now", rest, sent, NOON + 15 * MINUTE)
    assert (len(summary.ids), summary.thread) == (2500 - BURST, "")


@pytest.mark.parametrize(
    ("since", "due"),
    [
        ("2026-11-22T12:20", "2026-11-22T13:00"),
        ("2026-11-22T12:00", "2026-11-22T13:00"),
        ("2026-11-22T23:59", "2026-11-23T00:00"),
    ],
)
def test_an_hourly_digest_leaves_at_the_next_full_hour(since: str, due: str) -> None:
    _leaves_at("hourly", since, due)


@pytest.mark.parametrize(
    ("since", "due"),
    [
        ("2026-11-22T06:59", "2026-11-22T07:00"),
        ("2026-11-22T07:00", "2026-11-23T07:00"),
        ("2026-12-31T12:00", "2027-01-01T07:00"),
    ],
)
def test_a_daily_digest_leaves_at_the_next_morning(since: str, due: str) -> None:
    _leaves_at("daily", since, due)


@pytest.mark.parametrize(
    ("since", "due"),
    [
        ("2026-11-22T04:59", "2026-11-22T05:00"),
        ("2026-11-22T05:00", "2026-11-23T05:00"),
        ("2026-12-31T22:30", "2027-01-01T05:00"),  # the next day in the zone, not in UTC
        ("2026-10-24T12:00", "2026-10-25T05:00"),  # the night in which a summer time ends
        ("2026-03-28T12:00", "2026-03-29T04:00"),  # and in which it begins
    ],
)
def test_a_daily_digest_leaves_at_the_hour_and_in_the_zone_that_were_chosen(
    since: str, due: str
) -> None:
    _leaves_at("daily", since, due, Daily(6, "Europe/Berlin"))


def test_a_zone_that_the_host_does_not_know_any_more_is_that_of_the_world() -> None:
    _leaves_at("daily", "2026-11-22T05:59", "2026-11-22T06:00", Daily(6, "Mars/Olympus"))


def _leaves_at(pace: str, since: str, due: str, daily: Daily = USUAL) -> None:
    first, at = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (since, due))
    held = [*waiting("dag:1", since=first), PendingNotice(9, "dag:2", at - timedelta(seconds=1))]

    assert packets(pace, held, [], at - timedelta(seconds=1), daily) == []
    assert packets(pace, held, [], at, daily) == [Packet((1, 9))]


@pytest.mark.parametrize("pace", ["now", "hourly", "daily"])
def test_nothing_leaves_where_nothing_waits(pace: str) -> None:
    assert packets(pace, [], [], NOON) == []
