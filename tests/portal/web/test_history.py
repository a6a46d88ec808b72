"""History page: panes, windows, addresses, summaries and tables."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from portal.history.captions import trend_of
from portal.history.panes import find_pane, panes
from portal.history.windows import MOST_POINTS, RANGES
from tests import factories
from tests.wms.history.test_counts import spread
from wms.history.counting import COUNTED_MINUTES
from wms.history.operations import MinuteCount, store_counts, store_samples
from wms.sites.services import ban_site

MINUTE = timedelta(minutes=1)
PAGE = reverse("web:history")


def data(client: Client, pane: str, query: str = "") -> dict[str, Any]:
    answer = client.get(f"/history/{pane}.json{query}")
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def meta(found: dict[str, Any]) -> dict[str, Any]:
    """What the figure tells of itself."""
    told: dict[str, Any] = found["figure"]["layout"]["meta"]
    return told


def lines(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The traces that are lines, and no bands, by name."""
    return {trace["legendgroup"]: trace for trace in found["figure"]["data"] if "name" in trace}


@pytest.fixture
def minute() -> datetime:
    """A whole minute some minutes ago."""
    return timezone.now().replace(second=0, microsecond=0) - 10 * MINUTE


def test_a_chart_has_the_same_figures_as_its_files_and_its_table(
    alice: Client, minute: datetime
) -> None:
    for second, value in ((0, 2), (20, 6)):
        store_samples({"jobs.running": value}, now=minute + timedelta(seconds=second))

    found = lines(data(alice, "jobs", "?range=1h"))["running"]
    export = alice.get("/api/v1/history/panes/jobs.json?range=1h").json()
    table = alice.get("/history/jobs/?range=1h").content.decode()

    assert [each for each in found["y"] if each is not None] == [4]
    assert [each for each in found["customdata"] if each is not None] == [6]
    (running,) = (line for line in export["lines"] if line["name"] == "running")
    at = export["start"].index(f"{minute:%Y-%m-%dT%H:%M:%SZ}")
    assert [running[name][at] for name in ("avg", "min", "max", "last")] == [4, 2, 6, 6]
    assert "2 to 6" in table


@pytest.mark.parametrize(("function", "figure"), [("last", 6), ("min", 2), ("max", 9)])
def test_a_table_has_the_figures_of_the_function_that_the_chart_draws(
    alice: Client, minute: datetime, function: str, figure: int
) -> None:
    for second, value in ((0, 2), (20, 9), (40, 6)):
        store_samples({"jobs.running": value}, now=minute + timedelta(seconds=second))

    query = f"?range=1h&function={function}"
    drawn = lines(data(alice, "jobs", query))["running"]["y"]
    ((_, cells),) = alice.get(f"/history/jobs/{query}").context["table"].rows

    assert [each for each in drawn if each is not None] == [figure]
    assert [cell.value for label, cell in cells if label == "running"] == [figure]


def test_a_value_before_a_gap_is_not_told_as_one_of_the_end(
    alice: Client, minute: datetime
) -> None:
    store_samples({"jobs.running": 5}, now=minute)

    summary = data(alice, "jobs", "?range=1h")["summary"]

    assert summary.startswith("Running: 5")
    assert "in the last" not in summary


def test_a_gap_stays_a_gap_and_a_counted_minute_without_anything_is_zero(
    alice: Client, minute: datetime
) -> None:
    store_counts(
        [
            MinuteCount.number(COUNTED_MINUTES, minute - 3 * MINUTE, 4),
            MinuteCount.number(COUNTED_MINUTES, minute - MINUTE, 0),
            MinuteCount.number("throughput.done", minute - 3 * MINUTE, 2),
        ]
    )

    found = data(alice, "throughput", "?range=1h")

    at = (minute - datetime.fromisoformat(meta(found)["first"])) // MINUTE
    assert lines(found)["submitted"]["y"][at - 3 : at] == [4, None, 0]
    assert lines(found)["done"]["y"][at - 3 : at] == [2, None, 0]
    assert meta(found)["function"] == "sum in 1 min"


def test_counts_of_a_bin_that_is_not_over_are_not_drawn(alice: Client) -> None:
    now = timezone.now()
    store_counts([MinuteCount.number(COUNTED_MINUTES, now.replace(second=0, microsecond=0), 4)])

    assert lines(data(alice, "throughput")) == {}


def test_waiting_times_are_percentiles_of_the_jobs_that_started(
    alice: Client, minute: datetime
) -> None:
    counted = spread(minute, [10.0] * 98 + [500.0] * 2)
    store_counts([MinuteCount("waiting.seconds", minute, 100, 1980, 10, 500, counted.classes)])

    found = lines(data(alice, "waiting", "?range=1h"))

    values = {name: max(v for v in line["y"] if v is not None) for name, line in found.items()}
    assert values["median"] == pytest.approx(10, rel=0.1)
    assert values["p90"] == pytest.approx(10, rel=0.1)
    assert values["p99"] == pytest.approx(500, rel=0.1)


@pytest.mark.parametrize("name", RANGES)
def test_no_range_has_more_points_than_can_be_read(alice: Client, name: str) -> None:
    found = meta(data(alice, "jobs", f"?range={name}"))

    assert 0 < found["bins"] <= MOST_POINTS


def test_a_narrow_window_is_told_in_finer_bins_than_a_wide_one(alice: Client) -> None:
    now = datetime.now(UTC)
    since, until = now - timedelta(hours=5), now - timedelta(hours=3)

    def told(query: str) -> dict[str, Any]:
        return meta(data(alice, "jobs", query))

    narrow = told(f"?from={since:%Y-%m-%dT%H:%M}&to={until:%Y-%m-%dT%H:%M}")

    assert (narrow["step_s"], narrow["bins"]) in {(60, 120), (60, 121)}
    assert told("?range=1w")["step_s"] == 600
    assert told("?range=1m")["step_s"] == 3600
    assert told("?range=1w&resolution=1h")["step_s"] == 3600


def test_a_function_can_be_chosen_and_the_legend_names_it_with_the_bin(
    alice: Client, minute: datetime
) -> None:
    for second, value in ((0, 3), (20, 9), (40, 6)):
        store_samples({"jobs.running": value}, now=minute + timedelta(seconds=second))

    def told(function: str) -> tuple[str, float]:
        found = data(alice, "jobs", f"?range=1h&function={function}")
        return meta(found)["function"].removesuffix(" of 1 min"), max(
            v for v in lines(found)["running"]["y"] if v is not None
        )

    assert told("avg") == ("mean and max", 6)
    assert told("min") == ("minimum", 3)
    assert told("max") == ("maximum", 9)
    assert told("last") == ("last value", 6)


def test_requested_granted_and_running_pilots_of_a_site_are_three_lines(
    alice: Client, minute: datetime
) -> None:
    names = ("requested", "granted", "running")
    at_uw = {f"pilots.{name}@UW": value for name, value in zip(names, (40, 3, 0), strict=True)}
    store_samples({**at_uw, "pilots.running@FNAL": 7}, now=minute)

    found = data(alice, "pressure", "?range=1h&site=UW")

    tops = {
        name: max(v for v in line["customdata"] if v is not None)
        for name, line in lines(found).items()
    }
    assert tops == {"requested": 40, "granted": 3, "running": 0}
    assert meta(found)["site"] == "UW"


def test_a_pane_asks_two_queries(alice: Client, minute: datetime) -> None:
    store_samples({"jobs.running": 1}, now=minute)
    for number in range(3):
        factories.downtime(factories.site(f"Site{number}"))
    alice.get("/history/jobs.json")

    for name in panes():
        with CaptureQueriesContext(connection) as asked:
            data(alice, name, "?range=1w")
        own = [each["sql"] for each in asked if "session" not in each["sql"]]
        assert len([sql for sql in own if '"core_user"."id" =' not in sql]) == 2, own


def test_marks_of_the_window_are_told_to_the_script_and_listed_on_the_page(
    alice: Client, people: SimpleNamespace
) -> None:
    factories.site("UW")
    ban_site("UW", actor=factories.SYSTEM, reason="disk <full>")

    layout = data(alice, "jobs")["figure"]["layout"]
    page = alice.get(PAGE).content.decode()

    (flag,) = layout["annotations"]
    assert flag["hovertext"].endswith("disk &lt;full>")
    assert flag["text"] == f"1\N{EN DASH}{len(layout['shapes'])}"
    assert "disk &lt;full&gt;" in page


def test_the_sentence_tells_where_lines_are_and_where_they_go(
    alice: Client, minute: datetime
) -> None:
    # Up to the minute that passes: the next may begin before the page is asked for.
    for number in range(10):
        store_samples({"jobs.running": number}, now=minute + (number + 1) * MINUTE)

    sentence = data(alice, "jobs", "?range=1h")["summary"]

    assert re.findall(r"\d+", sentence) == ["9", "1", "0", "9"]
    assert "rising" in sentence


@pytest.mark.parametrize(
    ("values", "trend"),
    [([1, 1, 1], ""), ([1] * 9, "steady"), ([1, 1, 1, 5, 9, 9], "rising"), ([0] * 6, "steady"),
     ([9, 9, 5, 4, 1, 0], "falling"), ([0, 0, 3, 5, 9, 0], ""), ([9, 9, 5, 4, 1, 9], "")],
)  # fmt: skip
def test_a_trend_is_told_of_enough_values(values: list[float], trend: str) -> None:
    assert trend_of(values) == trend


def test_a_chart_without_samples_says_so(alice: Client) -> None:
    found = data(alice, "jobs")

    assert found["figure"]["data"] == []
    assert not re.search(r"\d", found["summary"])


def test_the_page_shows_the_chosen_panes_and_keeps_the_choice_in_every_address(
    alice: Client, people: SimpleNamespace
) -> None:
    factories.site("UW")

    page = alice.get(f"{PAGE}?range=1w&site=UW&pane=pilots&function=max").content.decode()

    assert 'data-chart="/history/pilots.json?range=1w&amp;site=UW&amp;function=max"' in page
    assert "/history/jobs.json" not in page
    assert "?range=1m&amp;site=UW&amp;function=max&amp;pane=pilots" in page
    assert 'aria-current="true">1 w' in page
    assert "/api/v1/history/panes/pilots.csv?range=1w&amp;site=UW&amp;function=max" in page


def test_of_a_site_those_panes_are_drawn_that_have_it(alice: Client) -> None:
    factories.site("UW")

    shown = alice.get(f"{PAGE}?site=UW").context["timeline"].drawn

    assert "dags" not in shown
    assert {"pilots", "pressure", "throughput", "failures"} <= shown


def test_the_windows_beside_are_half_a_window_away_and_end_now_at_the_latest(
    alice: Client,
) -> None:
    timeline = alice.get(f"{PAGE}?from=2026-11-20T12:00&to=2026-11-20T14:00").context["timeline"]

    assert timeline.earlier == "?from=2026-11-20T11%3A00%3A00Z&to=2026-11-20T13%3A00%3A00Z"
    assert timeline.later == "?from=2026-11-20T13%3A00%3A00Z&to=2026-11-20T15%3A00%3A00Z"
    assert timeline.wider == "?from=2026-11-20T11%3A00%3A00Z&to=2026-11-20T15%3A00%3A00Z"
    now = alice.get(PAGE).context["timeline"]
    assert now.later == ""
    assert alice.get(f"{PAGE}?range=5y").context["timeline"].wider == ""


def test_there_is_no_earlier_window_than_those_of_which_something_is_kept(alice: Client) -> None:
    address, steps = f"{PAGE}?range=5y", 0
    while (query := alice.get(address).context["timeline"].earlier) and steps < 5:
        address, steps = f"{PAGE}{query}", steps + 1

    assert steps == 2
    assert alice.get(address).context["faults"] == {}


@pytest.mark.parametrize(
    ("query", "field", "words"),
    [
        ("from=yesterday", "from", "Write a time as"),
        ("from=2026-11-20T12:00&to=2026-11-20T11:00", "to", "after the beginning"),
        ("from=2999-01-01", "from", "in the future"),
        ("from=1990-01-01", "from", "five years"),
        ("from=0001-01-01&to=0001-01-02", "from", "five years"),
        ("from=0001-01-01T00:00%2B14:00", "from", "Write a time as"),
        ("to=2026-11-20", "from", "the beginning as well"),
        ("site=no/site", "site", "no name of a site"),
        ("site=Nowhere", "site", "There is no site Nowhere"),
        ("function=mode", "function", "Choose one of avg"),
        ("resolution=2min", "resolution", "Choose one of auto"),
    ],
)
def test_a_fault_is_shown_at_its_field_and_nothing_is_drawn(
    alice: Client, query: str, field: str, words: str
) -> None:
    answer = alice.get(f"{PAGE}?{query}")
    page = answer.content.decode()

    assert words in answer.context["faults"][field]
    assert f'id="fault-{field}"' in page
    assert f'aria-describedby="fault-{field}"' in page
    assert "data-chart=" not in page


@pytest.mark.parametrize("query", ["range=2d", "pane=cats"])
def test_a_range_or_pane_that_is_none_is_told(alice: Client, query: str) -> None:
    page = alice.get(f"{PAGE}?{query}").content.decode()

    assert 'class="fault" role="alert"' in page
    assert "data-chart=" not in page


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/history/cats.json", 404),
        ("/history/cats/", 404),
        ("/history/jobs.json?range=2d", 400),
        ("/history/jobs/?from=never", 400),
    ],
)
def test_data_of_what_is_not_there_is_refused(alice: Client, address: str, status: int) -> None:
    assert alice.get(address).status_code == status


def test_a_table_unfolds_as_a_part_and_opens_as_a_page(alice: Client, minute: datetime) -> None:
    for number in range(70):
        store_samples({"jobs.running": number}, now=minute - number * MINUTE)

    part = alice.get("/history/jobs/", headers={"HX-Request": "true"})
    page = alice.get("/history/jobs/")

    assert "<html" not in part.content.decode()
    assert "60 of 70" in part.content.decode()
    assert "<html" in page.content.decode()
    assert "HX-Request" in page.headers["Vary"]


def test_pages_without_charts_do_not_load_the_chart_library(alice: Client) -> None:
    for name, has_charts in (("history", True), ("negotiation", True), ("submit", False)):
        page = alice.get(reverse(f"web:{name}")).content.decode()
        assert ("plotly" in page) is has_charts, name
        assert ("js/chart.js" in page) is has_charts, name


def test_every_loop_has_a_line_and_the_lesser_ones_are_folded() -> None:
    loops = find_pane("loops").lines

    assert [line.name for line in loops[:2]] == ["dag-engine", "director"]
    assert {line.name for line in loops if not line.is_folded} == {
        "dag-engine", "director", "negotiator", "pilot-monitor", "sampler",
    }  # fmt: skip


def test_what_the_script_is_told_is_small(alice: Client, minute: datetime) -> None:
    states = {f"jobs.{line.name}": 3.333 for line in find_pane("jobs").lines}
    for number in range(0, 100, 10):
        store_samples(states, now=minute - number * MINUTE)

    found = data(alice, "jobs", "?range=1d")

    # Three values of a line, and twice a time and a value of its band.
    assert len(json.dumps(found["figure"])) < 100 * MOST_POINTS * len(lines(found))


def test_the_page_groups_those_panes_that_can_be(alice: Client, minute: datetime) -> None:
    store_samples({"pilots.running@UW": 3.0}, now=minute)

    page = alice.get("/history/?group_by=site&top=3").content.decode()
    owners = alice.get("/history/?group_by=owner").content.decode()
    table = alice.get("/history/pilots/?range=1h&group_by=site").content.decode()

    assert 'id="panel-pilots"' in page
    assert 'id="panel-dags"' not in page
    assert "group_by=site&amp;top=3" in page
    assert 'id="panel-use"' in owners
    assert 'id="panel-pilots"' not in owners
    assert 'data-label="UW"' in table
