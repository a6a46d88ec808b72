from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import htcondor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wms.dags.files.samples import SAMPLES
from wms.dags.follow.event_log import (
    POST_SCRIPT_TERMINATED,
    TERMINATED,
    NotAnEventLog,
    ParsedLog,
    read_events,
)

NOW = datetime(2026, 11, 22, tzinfo=UTC)
LOGS = sorted(
    path.relative_to(SAMPLES)
    for pattern in ("*/*.nodes.log", "*/*.dagman.log", "joblogs/plain.log")
    for path in SAMPLES.glob(pattern)
)
EVENT = (
    b"000 (1141.000.000) 2026-11-20 14:00:50 Job submitted from host: <a>\n    DAG Node: A\n...\n"
)


def read(data: bytes, **options: Any) -> ParsedLog:
    return read_events(data, **{"now": NOW} | options)


def code_by_htcondor(event: Any) -> int | None:
    if int(event.type) not in (TERMINATED, POST_SCRIPT_TERMINATED):
        # Copies of another event's attributes.
        return None
    if "TerminatedBySignal" in event:
        return -int(event["TerminatedBySignal"])
    return event.get("ReturnValue")


def name_by_htcondor(event: Any) -> str:
    names = ("LogNotes", "DAGNodeName", "SkipEventLogNotes")
    note = next((event[name] for name in names if name in event), "")
    return str(note).removeprefix("DAG Node: ")


def test_there_are_real_logs_to_compare_with() -> None:
    assert len(LOGS) == 11


@pytest.mark.parametrize("path", LOGS, ids=str)
def test_it_reads_what_htcondors_own_reader_reads(path: Path) -> None:
    expected = [
        (int(e.type), e.cluster, e.proc, int(e["Subproc"]), e.timestamp, code_by_htcondor(e),
         name_by_htcondor(e))
        for e in htcondor2.JobEventLog(str(SAMPLES / path)).events(0)
    ]  # fmt: skip

    reading = read((SAMPLES / path).read_bytes())

    assert reading.faults == []
    assert reading.used == (SAMPLES / path).stat().st_size
    assert [
        (e.number, e.cluster, e.process, e.subprocess, int(e.time.timestamp()), e.code, e.node_name)
        for e in reading.events
    ] == expected


@given(st.lists(st.integers(0, 18_000), max_size=20))
def test_in_pieces_it_reads_the_same_as_at_once(cuts: list[int]) -> None:
    data = (SAMPLES / "all_outcomes/sample.dag.nodes.log").read_bytes()
    whole = read(data).events

    events, offset = [], 0
    for cut in [*sorted(cuts), len(data)]:
        reading = read(data[offset : max(cut, offset)])
        events += reading.events
        offset += reading.used

    assert offset == len(data)
    assert [(e.number, e.job, e.time, e.body) for e in events] == [
        (e.number, e.job, e.time, e.body) for e in whole
    ]


def test_an_event_without_its_end_is_not_there_yet() -> None:
    reading = read(EVENT + EVENT[:-1])

    assert len(reading.events) == 1
    assert reading.used == len(EVENT)


def test_an_event_of_a_later_version_is_passed_over() -> None:
    data = b"098 (001.000.000) 2026-11-20 14:00:50 Job did something new\n\tHow = 1\n...\n" + EVENT

    reading = read(data)

    assert [event.number for event in reading.events] == [0]
    assert reading.faults == []
    assert reading.used == len(data)


def test_what_makes_no_sense_is_passed_over_and_told() -> None:
    data = b"rubbish\n...\n" + EVENT + b"000 (001.000.000) 13/45 14:00:50 Job submitted\n...\n...\n"

    reading = read(data)

    assert [event.job for event in reading.events] == ["1141.0"]
    assert [fault.partition(":")[0] for fault in reading.faults] == [
        "byte 0",
        f"byte {12 + len(EVENT)}",
        f"byte {len(data) - 4}",
    ]
    assert "'rubbish'" in reading.faults[0]
    assert "13/45" in reading.faults[1]


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-11-20 14:00:50", datetime(2026, 11, 20, 14, 0, 50, tzinfo=UTC)),
        ("2026-11-20T14:00:50.083Z", datetime(2026, 11, 20, 14, 0, 50, 83_000, tzinfo=UTC)),
        ("2026-11-20 14:00:50+01:30", datetime(2026, 11, 20, 12, 30, 50, tzinfo=UTC)),
        ("11/20 14:00:50", datetime(2026, 11, 20, 14, 0, 50, tzinfo=UTC)),
        ("11/23 00:00:00", datetime(2026, 11, 23, tzinfo=UTC)),
        ("12/31 23:59:59", datetime(2025, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("02/29 00:00:00", datetime(2024, 2, 29, tzinfo=UTC)),
    ],
)
def test_it_reads_times_old_and_new(text: str, time: datetime) -> None:
    [event] = read(b"001 (001.000.000) %s Job executing\n...\n" % text.encode()).events

    assert event.time == time


def test_a_time_without_a_zone_is_of_the_zone_that_is_given() -> None:
    zone = timezone(timedelta(hours=2))

    [event] = read(EVENT, zone=zone).events

    assert event.time == datetime(2026, 11, 20, 12, 0, 50, tzinfo=UTC)


def test_it_reads_the_name_of_a_node_from_both_kinds_of_notes() -> None:
    newer = EVENT.replace(b"DAG Node: A", b'[ DAGNodeName = "S+B"; Other = 1 ]')

    assert [event.node_name for event in read(EVENT + newer).events] == ["A", "S+B"]


def test_it_reads_lines_that_end_as_on_windows() -> None:
    [event] = read(EVENT.replace(b"\n", b"\r\n")).events

    assert (event.node_name, event.reason) == ("A", "DAG Node: A")


@pytest.mark.parametrize(
    "line",
    [
        b"DAG Node: A" + b" " * 1_000_000,
        b" " * 1_000_000 + b"DAG Node: A",
        b"DAG Node: A " + b" x" * 500_000,
        b'[ DAGNodeName = "A"; ' * 1_000,
        b"[" * 1_000_000,
        b"(1) Normal termination (return value " + b"1" * 1_000_000,
        b" " * 1_000_000 + b"x",
    ],
)
def test_a_line_of_any_length_is_read_at_once(line: bytes) -> None:
    [event] = read(EVENT.replace(b"DAG Node: A", line)).events

    assert len(event.node_name) <= 16 * 1024
    assert len(event.reason) <= 16 * 1024
    assert event.code is None


@pytest.mark.parametrize("number", ["9" * 5_000, "9" * 11, "2147483648", "-2147483648"])
def test_numbers_that_no_column_holds_are_not_taken(number: str) -> None:
    ended = EVENT.replace(
        b"DAG Node: A", f"(1) Normal termination (return value {number})".encode()
    )
    assert [event.code for event in read(ended).events] == [None]

    for place in ("{}.000.000", "001.{}.000", "001.000.{}"):
        whose = place.format(number).encode()
        reading = read(EVENT.replace(b"1141.000.000", whose))
        assert (reading.events, len(reading.faults)) == ([], 1)


def test_zeros_are_dropped_from_names_and_reasons() -> None:
    [event] = read(EVENT.replace(b"DAG Node: A", b"DAG Node: \0A\0")).events

    assert (event.node_name, event.reason) == ("A", "DAG Node: A")


@pytest.mark.parametrize("path", ["joblogs/xml.log", "joblogs/global_eventlog.json"])
def test_logs_in_other_formats_are_refused(path: str) -> None:
    with pytest.raises(NotAnEventLog):
        read((SAMPLES / path).read_bytes())


@given(st.binary(max_size=300))
def test_whatever_is_read_it_ends_where_an_event_ends(data: bytes) -> None:
    try:
        reading = read(data)
    except NotAnEventLog:
        return
    assert data[: reading.used].endswith((b"...\n", b"...\r\n")) or reading.used == 0
