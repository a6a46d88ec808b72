"""History charts that are grouped by site, owner or label: the largest, and the rest together."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from plotly import graph_objects
from rest_framework.test import APIClient

from portal.history.groupings import MOST_BINS, REST
from portal.history.windows import WindowForm, window_of
from tests import factories
from wms.accounting.core_seconds import CoreSeconds, Use, add_uses
from wms.accounting.models import AccountingGroup, DailyUse, Frontend
from wms.core.models import User
from wms.history.counting import COUNTED_MINUTES
from wms.history.operations import MinuteCount, store_counts, store_samples

API = "/api/v1/history/panes"


def bodies(client: APIClient, pane: str, query: str) -> dict[str, list[float]]:
    """Known values of each line, by its name."""
    answer = client.get(f"{API}/{pane}.json{query}")
    assert answer.status_code == 200, answer.content
    values = {}
    for line in answer.json()["lines"]:
        column = line.get("avg", line.get("sum"))
        values[line["name"]] = [each for each in column if each is not None]
    return values


@pytest.fixture
def running(db: None) -> datetime:
    """Running pilots at five sites, ten minutes ago."""
    now = timezone.now().replace(second=0, microsecond=0) - timedelta(minutes=10)
    for second in (0, 30):
        values = {f"pilots.running@S{many}": float(many) for many in range(5)}
        store_samples(values, now=now + timedelta(seconds=second))
    return now


def test_the_largest_have_a_line_each_and_the_others_one_together(
    alice: APIClient, running: datetime
) -> None:
    found = bodies(alice, "pilots", "?range=1h&group_by=site&top=2")

    assert found == {"S4": [4], "S3": [3], REST: [3]}


def test_counts_of_sites_are_summed_and_zero_where_minutes_were_counted(
    alice: APIClient, db: None
) -> None:
    minute = timezone.now().replace(second=0, microsecond=0) - timedelta(minutes=10)
    counted = [
        MinuteCount.number(COUNTED_MINUTES, minute + timedelta(minutes=at), 0) for at in (0, 1)
    ]
    store_counts([*counted, MinuteCount.number("throughput.done@S1", minute, 7)])

    assert bodies(alice, "throughput", "?range=1h&group_by=site") == {"S1": [7, 0]}


def test_a_grouped_figure_is_a_stack_that_plotly_takes(alice: APIClient, running: datetime) -> None:
    answer = alice.get(f"{API}/pilots.figure.json?range=1h&group_by=site&top=2")
    report = alice.get(f"{API}/pilots.html?range=1h&group_by=site&top=2")

    figure = graph_objects.Figure(answer.json())
    assert [trace.name for trace in figure.data] == ["S4", "S3", "others (2)"]
    assert {trace.stackgroup for trace in figure.data} == {"stretch-0"}
    assert len({(trace.line.dash, trace.marker.symbol) for trace in figure.data}) == 3
    assert figure.layout.meta["group_by"] == "site"
    assert b"Running pilots by site" in report.content


def test_a_site_looks_alike_in_every_pane_whichever_is_largest(
    alice: APIClient, running: datetime
) -> None:
    for name in ("S4", "S1"):
        factories.site(name)
    store_samples({"jobs.running@S1": 9.0, "jobs.running@S4": 2.0}, now=running)

    looks: dict[str, list[tuple[str, ...]]] = {}
    for pane in ("pilots", "jobs"):
        query = "?range=1h&group_by=site&top=4"
        figure = alice.get(f"{API}/{pane}.figure.json{query}").json()
        styles = figure["layout"]["template"]["data"]["scatter"]
        for trace, style in zip(figure["data"], styles, strict=True):
            look = (style["line"]["color"], trace["line"]["dash"], trace["marker"]["symbol"])
            looks.setdefault(trace["name"], []).append(look)

    assert {name for name, found in looks.items() if len(found) == 2} == {"S1", "S4"}
    assert all(len(set(found)) == 1 for found in looks.values())
    assert len({found[0] for found in looks.values()}) == len(looks)


def test_the_sentence_of_a_stack_tells_its_top_line(alice: APIClient, running: datetime) -> None:
    page = Client()
    page.force_login(User.objects.get(username="alice"))

    summary = page.get("/history/pilots.json?range=1h&group_by=site&top=2").json()["summary"]

    # Of ten pilots in all, 4 at S4 and 3 at S3.
    assert re.findall(r"\b\d+\b", summary.replace("S4", "").replace("S3", ""))[:1] == ["10"]


def test_a_gap_stays_a_gap_between_two_stacks(alice: APIClient, running: datetime) -> None:
    store_samples({"pilots.running@S4": 9.0}, now=running + timedelta(minutes=4))

    traces = alice.get(f"{API}/pilots.figure.json?range=1h&group_by=site&top=1").json()["data"]

    told = [(trace["name"], trace["stackgroup"], trace["y"]) for trace in traces]
    assert told == [
        ("S4", "stretch-0", [4]), ("others (3)", "stretch-0", [6]),
        ("S4", "stretch-1", [9]), ("others (3)", "stretch-1", [None]),
    ]  # fmt: skip
    assert [trace["showlegend"] for trace in traces] == [True, True, False, False]


def test_a_file_has_a_column_for_each_group(alice: APIClient, running: datetime) -> None:
    answer = alice.get(f"{API}/pilots.csv?range=1h&group_by=site&top=1")

    heads, *rows = csv.reader(io.StringIO(answer.content.decode()))
    assert heads == ["start", "bin_s", "S4_pilots", f"{REST}_pilots"]
    assert [row[2:] for row in rows if row[2]] == [["4", "6"]]


@pytest.fixture
def used(people: SimpleNamespace) -> None:
    """Core-hours of yesterday by two users, one with a label."""
    day = timezone.now().astimezone(UTC).date() - timedelta(days=1)
    for owner, hours, labels in ((people.alice, 2, ("run-7",)), (people.bob, 5, ())):
        spent = CoreSeconds(useful_s=3600 * hours, failed_s=1800)
        add_uses([Use(day=day, site_name="S1", owner_name=owner.username, spent=spent,
                      labels=labels)])  # fmt: skip


def test_owners_and_labels_come_from_the_accounts(alice: APIClient, used: None) -> None:
    by_owner = bodies(alice, "use", "?range=1w&group_by=owner&top=1")
    by_label = bodies(alice, "use", "?range=1w&group_by=label")
    plain = bodies(alice, "use", "?range=1w")

    assert sum(by_owner["bob"]) == 5.5
    assert sum(by_owner[REST]) == 2.5
    assert sum(by_label["run-7"]) == 2.5
    assert (sum(plain["useful"]), sum(plain["failed"])) == (7, 1)


def test_nobody_sees_owners_behind_a_wall(
    used: None, people: SimpleNamespace, as_user: Callable[[User], APIClient]
) -> None:
    for person in (people.alice, people.bob):
        name = person.username
        frontend = Frontend.objects.create(name=f"front-{name}")
        AccountingGroup.objects.create(name=f"of-{name}", frontend=frontend).members.set([person])
    DailyUse.objects.filter(owner_name="alice").update(group_name="of-alice")

    found = bodies(as_user(people.bob), "use", "?range=1w&group_by=owner")

    assert set(found) == {"bob"}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("group_by=colour", "group_by"),
        ("group_by=site&top=21", "top"),
        ("group_by=site&site=S1", "group_by"),
        ("group_by=owner", "group_by"),
        ("group_by=site&function=max", "function"),
    ],
)
def test_a_grouping_that_cannot_be_is_refused_at_its_field(
    alice: APIClient, query: str, field: str
) -> None:
    answer = alice.get(f"{API}/pilots.json?{query}")

    assert answer.status_code == 400
    assert [each["field"] for each in answer.json()["findings"]] == [field]


def test_few_bins_are_read_of_each_site(people: SimpleNamespace) -> None:
    for length in ("1h", "1d", "1w", "1m", "1y"):
        asked: dict[str, Any] = {"range": length, "group_by": "site"}
        window = window_of(WindowForm(asked, now=timezone.now(), user=people.alice))
        width_s = window.resolution(is_whole=True).step_s
        assert window.length.total_seconds() / width_s <= MOST_BINS
