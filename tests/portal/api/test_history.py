"""Series out of the round-robin archives."""

from __future__ import annotations

import csv
import io as streams
import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from django.utils import timezone
from plotly import io
from rest_framework.test import APIClient

from portal.history.palettes import PALETTES, Scheme
from portal.history.panes import find_pane, panes
from tests import factories
from tests.e2e import history_data
from wms.accounting.core_seconds import CoreSeconds, Use, add_uses
from wms.history.operations import store_samples
from wms.sites.services import ban_site

URL = "/api/v1/history/"


def test_a_series_is_read_with_its_bins(alice: APIClient) -> None:
    now = timezone.now().replace(second=0, microsecond=0)
    for seconds, value in ((0, 1.0), (10, 4.0)):
        store_samples({"jobs.running": value}, now=now - timedelta(minutes=5, seconds=-seconds))

    answer = alice.get(f"{URL}?series=jobs.running&series=jobs.waiting&archive=1min").json()

    assert answer["archive"] == "1min"
    running, waiting = answer["series"]
    assert (waiting["name"], waiting["bins"]) == ("jobs.waiting", [])
    [bin_] = running["bins"]
    assert (bin_["min"], bin_["avg"], bin_["max"], bin_["count"]) == (1.0, 2.5, 4.0, 2)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("", "series"),
        ("?series=" + "&series=".join(f"s{n}" for n in range(60)), "series"),
        ("?series=a%00b", "series"),
        ("?series=a&archive=2min", "archive"),
        ("?series=a&from=yesterday", "from"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(
    alice: APIClient, query: str, field: str
) -> None:
    answer = alice.get(URL + query)

    assert answer.status_code == 400
    assert [finding["field"] for finding in answer.json()["findings"]] == [field]


@pytest.fixture
def minute(db: None) -> datetime:
    """A whole minute some minutes ago, of which there are figures of a site."""
    minute = timezone.now().replace(second=0, microsecond=0) - timedelta(minutes=5)
    for second, value in ((0, 2.0), (30, 5.0)):
        at = minute + timedelta(seconds=second)
        store_samples({"pilots.running@UW": value, "pilots.queued@UW": 0.5}, now=at)
    return minute


def test_a_script_takes_a_pane_away_as_csv_with_a_token(
    minute: datetime, people: SimpleNamespace
) -> None:
    client = APIClient(headers={"Authorization": f"Token {factories.token_for(people.alice)}"})
    answer = client.get("/api/v1/history/panes/pilots.csv?range=1h&site=UW&resolution=1min")

    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    name = answer.headers["Content-Disposition"]
    assert re.search(r'filename="pilotage-pilots-UW-\d{8}T\d{4}Z-\d{8}T\d{4}Z-1min\.csv"', name)
    rows = list(csv.DictReader(streams.StringIO(answer.content.decode())))
    assert 59 <= len(rows) <= 61
    (row,) = (row for row in rows if row["start"] == f"{minute:%Y-%m-%dT%H:%M:%SZ}")
    assert row == {
        "start": f"{minute:%Y-%m-%dT%H:%M:%SZ}", "bin_s": "60",
        "queued_avg_pilots": "0.5", "queued_min_pilots": "0.5", "queued_max_pilots": "0.5",
        "queued_last_pilots": "0.5", "running_avg_pilots": "3.5", "running_min_pilots": "2",
        "running_max_pilots": "5", "running_last_pilots": "5",
    }  # fmt: skip
    assert {row["running_avg_pilots"] for row in rows} == {"", "3.5"}


def test_an_export_has_all_bins_of_the_chosen_archive(alice: APIClient, minute: datetime) -> None:
    found = alice.get("/api/v1/history/panes/pilots.json?range=1w&resolution=5min").json()

    assert (found["archive"], found["bin_s"]) == ("5min", 300)
    assert len(found["start"]) in (2016, 2017)
    assert all(len(line["avg"]) == len(found["start"]) for line in found["lines"])


def test_the_panes_are_listed_with_their_units(alice: APIClient) -> None:
    found = {pane["name"]: pane for pane in alice.get("/api/v1/history/panes/").json()}

    assert found["waiting"] == {
        "name": "waiting", "title": find_pane("waiting").title, "unit": "s",
        "kind": "spread", "has_sites": False, "has_frontends": False,
        "groupings": [], "series": ["waiting.seconds"],
    }  # fmt: skip
    assert found["pressure"]["has_sites"]
    assert found["pressure"]["has_frontends"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("?range=2d", "range"), ("?from=never", "from"), ("?until=2026-11-20", "until"),
        ("?template=pink", "template"), ("?zone=Europe/Nowhere", "zone"), ("?points=3", "points"),
    ],
)  # fmt: skip
def test_a_window_that_is_none_is_refused_with_its_field(
    alice: APIClient, query: str, field: str
) -> None:
    answer = alice.get(f"/api/v1/history/panes/jobs.json{query}")

    assert answer.status_code == 400
    assert [finding["field"] for finding in answer.json()["findings"]] == [field]


def test_a_figure_opens_in_a_notebook(alice: APIClient, minute: datetime) -> None:
    query = "?range=1h&site=UW&template=dark&zone=Europe/Zurich&function=max"

    answer = alice.get(f"/api/v1/history/panes/pilots.figure.json{query}")

    assert answer.headers["Content-Type"] == "application/json"
    assert re.search(
        r'filename="pilotage-pilots-UW-[\dTZ-]+-1min\.figure\.json"',
        answer.headers["Content-Disposition"],
    )
    figure = io.from_json(answer.content.decode())
    values = {trace.name: {each for each in trace.y if each is not None} for trace in figure.data}
    assert values == {"waiting": {0.5}, "running": {5}}
    assert figure.layout.template.layout.paper_bgcolor == PALETTES[Scheme.DARK].surface
    assert figure.layout.title.text.endswith(" at UW")
    assert figure.layout.meta["zone"] in {"UTC+1", "UTC+2"}


@pytest.mark.slow
def test_the_figure_of_every_pane_is_valid(alice: APIClient) -> None:
    history_data.fill(timezone.now(), ["UW"], back=timedelta(days=2))
    yesterday = timezone.now().astimezone(UTC).date() - timedelta(days=1)
    add_uses([Use(yesterday, "UW", "alice", CoreSeconds(useful_s=60))])

    for pane in panes():
        answer = alice.get(f"/api/v1/history/panes/{pane}.figure.json")
        figure = io.from_json(answer.content.decode())

        assert any(value is not None for trace in figure.data for value in trace.y), pane


def test_a_report_is_one_file_that_cannot_be_broken_out_of(
    alice: APIClient, minute: datetime, people: SimpleNamespace
) -> None:
    factories.site("UW")
    ban_site("UW", actor=factories.SYSTEM, reason="</script><img src=x onerror=alert(1)>")

    answer = alice.get("/api/v1/history/panes/pilots.html?range=1h&site=UW")

    text = answer.content.decode()
    assert answer.headers["Content-Type"].startswith("text/html")
    assert answer.headers["Content-Disposition"].startswith("attachment; ")
    assert not re.search(r"<(?:script|link|img)\b[^>]*(?:src|href)=", text)
    assert "onerror=alert(1)>" not in text
    assert "onerror=alert(1)&gt;" in text
    assert text.count("</script>") == 2


def test_an_unknown_pane_is_not_found(alice: APIClient) -> None:
    assert alice.get("/api/v1/history/panes/cats.csv").status_code == 404
