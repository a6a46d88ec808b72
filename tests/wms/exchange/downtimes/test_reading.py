"""Downtimes read from calendars and GOCDB's XML: times, repetition, bounds, faults."""

from __future__ import annotations

import contextlib
import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wms.core.errors import InvalidInput
from wms.exchange.downtimes.calendars import read_calendar
from wms.exchange.downtimes.entries import (
    MAX_FINDINGS,
    MAX_PLACES,
    Entry,
    ImportOptions,
    site_names,
)
from wms.exchange.downtimes.gocdb import read_gocdb

NOW = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)


def calendar(*events: str, zones: str = "") -> str:
    inner = "".join(f"BEGIN:VEVENT\n{event.strip()}\nEND:VEVENT\n" for event in events)
    return f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:test\n{zones}{inner}END:VCALENDAR\n"


def read(*events: str, zone: str = "UTC") -> list[Entry]:
    return read_calendar(calendar(*events), zone=zone, now=NOW)


def faults(*events: str) -> str:
    with pytest.raises(InvalidInput) as refused:
        read(*events)
    return str(refused.value)


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("times", "start", "end"),
    [
        (
            "DTSTART:20261201T080000Z\nDTEND:20261201T100000Z",
            at(2026, 12, 1, 8),
            at(2026, 12, 1, 10),
        ),
        (
            "DTSTART;TZID=America/Chicago:20261201T080000\nDURATION:PT90M",
            at(2026, 12, 1, 14),
            at(2026, 12, 1, 15, 30),
        ),
        # Without a zone, and as whole days: those of the importer's zone.
        (
            "DTSTART:20261201T080000\nDTEND:20261201T100000",
            at(2026, 12, 1, 7),
            at(2026, 12, 1, 9),
        ),
        ("DTSTART;VALUE=DATE:20261201", at(2026, 11, 30, 23), at(2026, 12, 1, 23)),
        (
            "DTSTART;VALUE=DATE:20261201\nDTEND;VALUE=DATE:20261204",
            at(2026, 11, 30, 23),
            at(2026, 12, 3, 23),
        ),
    ],
    ids=["UTC", "zone and duration", "floating", "a day", "days"],
)
def test_times_are_read_as_the_calendar_means_them(
    times: str, start: datetime, end: datetime
) -> None:
    [entry] = read(f"UID:a\nSUMMARY:new disks\n{times}", zone="Europe/Zurich")

    assert (entry.start, entry.end, entry.recurrence) == (start, end, "")


def test_text_place_sequence_and_cancellation_are_taken_over() -> None:
    [entry] = read(
        "UID:a\nSEQUENCE:3\nSTATUS:CANCELLED\nLOCATION:CERN\\, FNAL\nSUMMARY:new\n  disks\n"
        "DESCRIPTION:in\\nall racks\nDTSTART:20261201T080000Z\nDTEND:20261201T100000Z"
    )

    assert (entry.uid, entry.sequence, entry.is_cancelled) == ("a", 3, True)
    assert entry.places == ("CERN", "FNAL")
    assert entry.reason == "new disks in all racks"


def test_what_is_over_is_left_out_and_of_two_versions_the_later_counts() -> None:
    entries = read(
        "UID:old\nDTSTART:20261101T080000Z\nDTEND:20261101T100000Z",
        "UID:a\nSEQUENCE:1\nSUMMARY:later\nDTSTART:20261202T080000Z\nDTEND:20261202T100000Z",
        "UID:a\nSEQUENCE:0\nSUMMARY:first\nDTSTART:20261201T080000Z\nDTEND:20261201T100000Z",
    )

    assert [(each.uid, each.reason) for each in entries] == [("a", "later")]


def test_repeated_events_are_followed_with_exceptions_and_moved_occurrences() -> None:
    entries = read(
        "UID:a\nDTSTART;TZID=Europe/Zurich:20261201T080000\nDURATION:PT2H\n"
        "RRULE:FREQ=WEEKLY;COUNT=4\nEXDATE;TZID=Europe/Zurich:20261215T080000",
        "UID:a\nRECURRENCE-ID;TZID=Europe/Zurich:20261208T080000\n"
        "DTSTART;TZID=Europe/Zurich:20261209T100000\nDURATION:PT1H",
        "UID:a\nRECURRENCE-ID;TZID=Europe/Zurich:20261222T080000\nSTATUS:CANCELLED\n"
        "DTSTART;TZID=Europe/Zurich:20261222T080000\nDURATION:PT2H",
    )

    assert [(each.recurrence, each.start, each.is_cancelled) for each in entries] == [
        ("20261201T070000Z", at(2026, 12, 1, 7), False),
        ("20261208T070000Z", at(2026, 12, 9, 9), False),
        ("20261222T070000Z", at(2026, 12, 22, 7), True),
    ]


@pytest.mark.parametrize("until", ["", ";UNTIL=99991231T000000Z"])
@pytest.mark.parametrize("start", ["DTSTART:20261201T080000Z", "DTSTART;VALUE=DATE:20261201"])
def test_an_endless_event_is_followed_for_a_year(start: str, until: str) -> None:
    entries = read(f"UID:a\n{start}\nRRULE:FREQ=MONTHLY{until}")

    assert len(entries) == 12
    assert entries[-1].start.date() == at(2027, 11, 1).date()


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=SECONDLY",
        "FREQ=DAILY;BYHOUR=1,2,3",
        "FREQ=DAILY;BYYEARDAY=366",
        "FREQ=DAILY;INTERVAL=0",
        "FREQ=DAILY;COUNT=100000",
        "FREQ=DAILY;COUNT=5;UNTIL=20270101T000000Z",
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=DAILY;INTERVAL=7;BYDAY=WE",
        "FREQ=MONTHLY;INTERVAL=2;BYMONTH=1",
        "FREQ=MONTHLY;BYDAY=1MO;BYMONTHDAY=20",
        "FREQ=MONTHLY;BYDAY=5MO",
        "FREQ=WEEKLY;BYDAY=MO;BYSETPOS=2",
        "FREQ=MONTHLY;BYDAY=1MO;BYSETPOS=2",
    ],
)
def test_a_rule_that_may_have_no_date_or_no_end_is_refused(rule: str) -> None:
    assert "event a: repeats" in faults(f"UID:a\nDTSTART:20261201T080000Z\nRRULE:{rule}")


def _listed(name: str, values: st.SearchStrategy[object]) -> st.SearchStrategy[str]:
    some = st.lists(values, min_size=1, max_size=3).map(lambda each: ",".join(map(str, each)))
    return st.none() | some.map(lambda text: f"{name}={text}")


RULES = st.tuples(
    st.sampled_from(["DAILY", "WEEKLY", "MONTHLY", "YEARLY"]).map("FREQ={}".format),
    _listed("BYMONTH", st.integers(1, 12)),
    _listed("BYMONTHDAY", st.integers(-31, 31)),
    _listed("BYDAY", st.sampled_from(["MO", "2TU", "-1FR", "SU", "5SA"])),
    _listed("BYSETPOS", st.integers(-5, 5)),
    st.none() | st.sampled_from(["COUNT=20", "UNTIL=20280101T000000Z"]),
    st.none() | st.integers(0, 14).map("INTERVAL={}".format),
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(parts=RULES)
def test_what_is_not_refused_is_followed_in_no_time(parts: tuple[str | None, ...]) -> None:
    rule = ";".join(part for part in parts if part)
    text = calendar(f"UID:a\nDTSTART:20161201T080000Z\nDURATION:PT1H\nRRULE:{rule}")
    began = time.process_time()

    with contextlib.suppress(InvalidInput):
        read_calendar(text, zone="UTC", now=NOW)

    assert time.process_time() - began < 2, rule


@pytest.mark.parametrize(
    ("event", "fault"),
    [
        ("DTSTART:20261201T080000Z", "UID"),
        ("UID:a\nSUMMARY:x", "has no start"),
        ("UID:a\nDTSTART;TZID=Nowhere/At/All:20261201T080000", "no time zone Nowhere/At/All"),
        ("UID:a\nDTSTART:19000101T080000Z\nRRULE:FREQ=DAILY", "later start"),
        ("UID:a\nDTSTART:tomorrow", "event a"),
    ],
)
def test_every_event_that_cannot_be_understood_is_named(event: str, fault: str) -> None:
    assert fault in faults(event)


@pytest.mark.parametrize(
    "lines",
    [
        "DTSTART:20261201T080000Z\nDTEND:20261201T100000Z\nDTEND:20261201T110000Z",
        "DTSTART:20261201T080000Z\nRRULE:FREQ=DAILY;INTERVAL=1,2",
        "DTSTART:20261201T080000Z\nRRULE:FREQ=DAILY;UNTIL=120000",
        "DTSTART:20261201T080000Z\nRECURRENCE-ID:20261201T080000Z\n"
        "RECURRENCE-ID:20261202T080000Z",
        "DTSTART;TZID=Europe:20261201T080000",
        f"DTSTART;TZID={'x' * 300}:20261201T080000",
        # Each of several rules would be followed; exceptions by a rule would not be.
        "DTSTART:20261201T080000Z\nRRULE:FREQ=DAILY\nRRULE:FREQ=WEEKLY",
        "DTSTART:20261201T080000Z\nRRULE:FREQ=DAILY\nEXRULE:FREQ=WEEKLY",
        "DTSTART:20261201T080000Z\nRRULE;VALUE=TEXT:FREQ=DAILY",
        "DTSTART:20261201T080000Z\nDTEND;VALUE=TEXT:later",
        "DTSTART:20261201T080000Z\nRDATE;TZID=Nowhere:20261202T080000",
        "DTSTART:20261201T080000Z\nRRULE:FREQ=DAILY\nEXDATE;TZID=Nowhere:20261202T080000",
        "DTSTART:20261201T080000Z\nLOCATION:" + ",".join(map(str, range(MAX_PLACES + 1))),
        "DTSTART:20261201T080000Z\nLOCATION:" + "x" * 20_000,
    ],
    ids=[
        "two ends", "two intervals", "until a time of day", "two occurrences", "zone of a folder",
        "long zone", "two rules", "exceptions by rule", "rule of text", "end of text",
        "zone of more dates", "zone of exceptions", "places", "long place",
    ],
)  # fmt: skip
def test_an_event_that_makes_no_sense_is_refused(lines: str) -> None:
    assert faults(f"UID:a\n{lines}")


@pytest.mark.parametrize("zone", ["Europe", "x" * 300])
def test_a_refused_zone_tells_no_path_of_the_host(zone: str) -> None:
    assert "zoneinfo" not in faults(f"UID:a\nDTSTART;TZID={zone}:20261201T080000")


def test_of_many_faults_of_events_the_first_are_told() -> None:
    with pytest.raises(InvalidInput) as refused:
        read(*["SUMMARY:x"] * MAX_FINDINGS)

    assert len(refused.value.findings) == MAX_FINDINGS


def test_occurrences_whose_event_is_not_told_are_kept_apart() -> None:
    entries = read(
        *(
            f"UID:a\nRECURRENCE-ID:202612{day}T080000Z\nDTSTART:202612{day}T090000Z\nDURATION:PT1H"
            for day in (10, 11)
        )
    )

    assert [(each.recurrence, each.start) for each in entries] == [
        ("20261210T080000Z", at(2026, 12, 10, 9)),
        ("20261211T080000Z", at(2026, 12, 11, 9)),
    ]


def zone_of(name: str, offset: str, rule: str = "") -> str:
    return (
        f"BEGIN:VTIMEZONE\nTZID:{name}\nBEGIN:STANDARD\nDTSTART:19000101T000000\n"
        f"TZOFFSETFROM:{offset}\nTZOFFSETTO:{offset}\n{rule}END:STANDARD\nEND:VTIMEZONE\n"
    )


IN_ZONE = "UID:a\nDTSTART;TZID={}:20261201T080000\nDURATION:PT1H"


@pytest.mark.parametrize("name", ["Europe/Zurich", "W. Europe Standard Time"])
def test_zones_are_those_of_the_database_whatever_the_calendar_says(name: str) -> None:
    zone = zone_of(name, "-0500", "RRULE:FREQ=SECONDLY\n")
    text = calendar(IN_ZONE.format(name), zones=zone)

    [entry] = read_calendar(text, zone="UTC", now=NOW)

    assert entry.start == at(2026, 12, 1, 7)


def test_the_zone_of_one_calendar_is_none_of_another_and_its_rules_are_not_followed() -> None:
    zone = zone_of("Ours", "+0100", "RRULE:FREQ=SECONDLY\n")
    for zones in (zone, ""):
        text = calendar(IN_ZONE.format("Ours"), zones=zones)
        with pytest.raises(InvalidInput) as refused:
            read_calendar(text, zone="UTC", now=NOW)
        assert [finding.field for finding in refused.value.findings] == ["DTSTART"]
    # A zone that no event uses does no harm.
    utc = "UID:a\nDTSTART:20261201T080000Z\nDURATION:PT1H"
    assert len(read_calendar(calendar(utc, zones=zone), zone="UTC", now=NOW)) == 1


def test_too_many_downtimes_are_refused() -> None:
    many = [f"UID:{number}\nDTSTART:20261201T080000Z\nRRULE:FREQ=DAILY" for number in range(3)]

    assert "more than 1000 downtimes" in faults(*many)


@pytest.mark.parametrize("text", ["BEGIN:VCALENDAR", "BEGIN:VEVENT\nEND:VEVENT", "hello"])
def test_what_is_no_calendar_is_told(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_calendar(text, zone="UTC", now=NOW)


SERVICE = {
    "PRIMARY_KEY": "9001G0",
    "HOSTNAME": "ce1.cern.ch",
    "SERVICE_TYPE": "org.opensciencegrid.htcondorce",
    "ENDPOINT": "ce1.cern.chorg.opensciencegrid.htcondorce",
    "HOSTED_BY": "CERN-PROD",
}
DOWNTIME = {
    "GOCDB_PORTAL_URL": "https://goc.example.org/portal/index.php?Page_Type=Downtime&amp;id=1",
    "SEVERITY": "OUTAGE",
    "DESCRIPTION": "new disks",
    "INSERT_DATE": "1795000000",
    "START_DATE": str(int(at(2026, 12, 1, 8).timestamp())),
    "END_DATE": str(int(at(2026, 12, 1, 10).timestamp())),
    "FORMATED_START_DATE": "2026-12-01 08:00",
    "FORMATED_END_DATE": "2026-12-01 10:00",
}


def elements(values: dict[str, str]) -> str:
    return "".join(f"<{name}>{value}</{name}>" for name, value in values.items() if value)


def downtime(key: str = "101G0", **changes: str) -> str:
    """A downtime of one service, as GOCDB's `get_downtime` tells it."""
    inner = elements(SERVICE | DOWNTIME | {"PRIMARY_KEY": key} | changes)
    return f'<DOWNTIME ID="1" PRIMARY_KEY="{key}" CLASSIFICATION="SCHEDULED">{inner}</DOWNTIME>'


def nested_downtime(*services: dict[str, str]) -> str:
    """A downtime with its services in it, as GOCDB's `get_downtime_nested_services` tells it."""
    inner = "".join(f"<SERVICE>{elements(SERVICE | service)}</SERVICE>" for service in services)
    return (
        '<DOWNTIME ID="1" PRIMARY_KEY="101G0" CLASSIFICATION="SCHEDULED">'
        f"{elements(DOWNTIME)}<SERVICES>{inner}</SERVICES></DOWNTIME>"
    )


def gocdb(*downtimes: str) -> list[Entry]:
    return read_gocdb(f"<?xml version='1.0'?><results>{''.join(downtimes)}</results>", now=NOW)


def test_services_of_one_downtime_at_a_site_are_one_entry() -> None:
    later = str(int(at(2026, 12, 1, 12).timestamp()))

    [entry] = gocdb(downtime(SEVERITY="WARNING"), downtime(HOSTNAME="ce2.cern.ch", END_DATE=later))

    assert (entry.uid, entry.places, entry.skipped) == ("101G0", ("CERN-PROD",), "")
    assert (entry.start, entry.end) == (at(2026, 12, 1, 8), at(2026, 12, 1, 12))
    assert entry.reason == "new disks (scheduled, GOCDB 101G0)"


def test_a_warning_leaves_the_site_up_and_hosts_stand_for_a_site_that_is_not_told() -> None:
    warning, hosted = gocdb(downtime(SEVERITY="WARNING"), downtime("102G0", HOSTED_BY=""))

    assert "WARNING" in warning.skipped
    assert hosted.places == ("ce1.cern.ch",)


def test_a_nested_downtime_is_of_the_sites_of_its_services() -> None:
    [entry] = gocdb(
        nested_downtime(
            {"HOSTED_BY": "FNAL"}, {"HOSTNAME": "ce2.cern.ch"}, {"HOSTNAME": "ce3.cern.ch"}
        )
    )

    assert (entry.uid, entry.places) == ("101G0", ("CERN-PROD", "FNAL"))


def test_the_name_of_a_site_comes_before_who_hosts_the_service() -> None:
    [entry] = gocdb(downtime(SITENAME="CERN"))

    assert entry.places == ("CERN",)


@pytest.mark.parametrize("spelling", ["FORMATED", "FORMATTED"])
def test_written_times_of_gocdb_are_utc(spelling: str) -> None:
    unset = dict.fromkeys(
        ("START_DATE", "END_DATE", "FORMATED_START_DATE", "FORMATED_END_DATE"), ""
    )
    written = {
        f"{spelling}_START_DATE": "2026-12-01 08:00",
        f"{spelling}_END_DATE": "2026-12-01 10:00",
    }
    [entry] = gocdb(downtime(**(unset | written)))

    assert (entry.start, entry.end) == (at(2026, 12, 1, 8), at(2026, 12, 1, 10))


@pytest.mark.parametrize(
    ("attributes", "meta"),
    [
        ('page="1" next="2" last="2"', ""),
        ('page="2" last="2"', ""),
        ("", '<meta><link rel="self" href="/"/><link rel="next" href="/?next_cursor=9"/></meta>'),
    ],
    ids=["first page", "last page", "cursor"],
)
def test_a_page_of_several_is_not_all_that_the_source_has(attributes: str, meta: str) -> None:
    text = f"<results {attributes}>{meta}{downtime()}</results>"

    assert len(read_gocdb(text, now=NOW)) == 1
    with pytest.raises(InvalidInput):
        read_gocdb(text, now=NOW, is_complete=True)
    whole = f'<results page="1" last="1">{downtime()}</results>'
    assert len(read_gocdb(whole, now=NOW, is_complete=True)) == 1


def test_faults_of_gocdb_are_all_named() -> None:
    with pytest.raises(InvalidInput) as refused:
        gocdb(downtime(START_DATE="soon"), downtime(""))

    assert [finding.field for finding in refused.value.findings] == ["START_DATE", "PRIMARY_KEY"]


def test_of_many_faults_the_first_are_told() -> None:
    with pytest.raises(InvalidInput) as refused:
        gocdb(*[downtime("", START_DATE="soon")] * 60)

    assert len(refused.value.findings) == MAX_FINDINGS


def test_a_downtime_of_too_many_places_is_refused() -> None:
    many = [{"HOSTED_BY": f"SITE-{number}"} for number in range(MAX_PLACES + 1)]

    assert len(gocdb(nested_downtime(*many[1:]))[0].places) == MAX_PLACES
    with pytest.raises(InvalidInput) as refused:
        gocdb(nested_downtime(*many))
    assert [finding.field for finding in refused.value.findings] == ["HOSTED_BY"]


@pytest.mark.parametrize(
    "text",
    [
        "<results>",
        '<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><results>&b;</results>',
        '<!DOCTYPE r SYSTEM "file:///etc/passwd"><results/>',
    ],
    ids=["not closed", "entities", "external"],
)
def test_no_entity_of_xml_is_expanded_and_no_file_read(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_gocdb(text, now=NOW)


def test_options_and_names_of_sites_are_checked() -> None:
    for options in (
        ImportOptions(""),
        ImportOptions("a b"),
        ImportOptions("gocdb", zone="../etc/passwd"),
        ImportOptions("gocdb", lead_time_s=int(timedelta(days=31).total_seconds())),
    ):
        with pytest.raises(InvalidInput):
            options.check()
    assert site_names(["CERN-PROD = CERN", "", " a=b "]) == {"CERN-PROD": "CERN", "a": "b"}
    with pytest.raises(InvalidInput):
        site_names(["CERN-PROD"])
