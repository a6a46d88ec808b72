from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone
from django.views.defaults import server_error

from tests import factories
from wms.core.models import ControlLoop
from wms.history.services import store_samples

LIVE = {"HX-Request": "true", "HX-Target": "live"}


def test_without_a_login_every_page_leads_to_it(client: Client, db: None) -> None:
    answer = client.get(reverse("web:jobs") + "?state=held")

    assert answer.headers["Location"] == "/login/?next=/jobs/%3Fstate%3Dheld"


def test_a_live_part_of_an_ended_session_loads_the_whole_page(client: Client, db: None) -> None:
    answer = client.get(reverse("web:dashboard"), headers=LIVE)

    assert answer.headers["HX-Refresh"] == "true"


def test_a_live_part_comes_alone_and_is_not_sent_twice(
    alice: Client, people: SimpleNamespace
) -> None:
    address = reverse("web:sites")
    factories.site()

    part = alice.get(address, headers=LIVE)
    again = alice.get(address, headers={**LIVE, "If-None-Match": part.headers["ETag"]})

    assert b"<html" not in part.content
    assert "no-store" in part.headers["Cache-Control"]
    assert again.status_code == 304


def test_the_error_page_needs_neither_user_nor_database() -> None:
    answer = server_error(RequestFactory().get("/"))

    assert answer.status_code == 500
    assert b"Something went wrong on our side" in answer.content


def test_pages_hold_no_script_and_no_style_of_their_own(
    alice: Client, people: SimpleNamespace
) -> None:
    dag = factories.running_dag(people.alice)
    for address in (reverse("web:dashboard"), reverse("web:dag", args=[dag.pk])):
        page = alice.get(address).content.decode()

        assert "<script>" not in page
        assert "<style" not in page
        assert " style=" not in page
        assert " onclick=" not in page


@pytest.mark.parametrize(
    ("facts", "health"),
    [
        ({"started_at": timedelta(seconds=3)}, "ok"),
        ({"started_at": timedelta(minutes=5)}, "late"),
        ({"started_at": timedelta(seconds=3), "error": "Unreachable: no answer"}, "failing"),
        ({"started_at": None}, "never"),
    ],
)
def test_a_control_loop_is_judged_by_its_last_run(alice: Client, facts: dict, health: str) -> None:
    ago = facts.pop("started_at")
    started_at = ago and timezone.now() - ago
    ControlLoop.objects.create(name="negotiator", period_s=5, started_at=started_at, **facts)

    board = alice.get(reverse("web:dashboard")).context["board"]

    assert [loop.health for loop in board.loops if loop.name == "negotiator"] == [health]
    assert board.is_calm is (health in ("ok", "never"))


def test_a_chart_has_the_same_figures_as_json_csv_and_table(alice: Client) -> None:
    now = timezone.now()
    for value in (2, 6):
        store_samples({"jobs.running": value, "jobs.held": 0}, now=now)

    place = {"panel": "jobs", "archive": "1min"}
    data = alice.get(reverse("web:history-data", kwargs=place | {"form": "json"})).json()
    text = alice.get(reverse("web:history-data", kwargs=place | {"form": "csv"}))
    page = alice.get(reverse("web:history") + "?archive=1min").content.decode()

    [series] = data["series"]
    assert (series["state"], series["min"], series["avg"], series["max"]) == (
        "running",
        [2.0],
        [4.0],
        [6.0],
    )
    header, line = text.content.decode().splitlines()
    cells = dict(zip(header.split(","), line.split(","), strict=True))
    assert (cells["running_min"], cells["running_avg"], cells["running_max"]) == (
        "2.0",
        "4.0",
        "6.0",
    )
    assert cells["waiting_avg"] == ""
    assert "attachment" in text.headers["Content-Disposition"]
    assert "2 to 6" in page


@pytest.mark.parametrize(
    "address", ["/history/?archive=2min", "/history/cats-1min.json", "/history/jobs-2min.csv"]
)
def test_an_unknown_chart_or_archive_is_not_found(alice: Client, address: str) -> None:
    assert alice.get(address).status_code == 404
