from __future__ import annotations

import re
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone

from portal.middleware.errors import server_error
from tests import factories
from wms.core.models import ControlLoop

LIVE = {"HX-Request": "true", "HX-Target": "live"}


def test_without_a_login_every_page_leads_to_it(client: Client, db: None) -> None:
    answer = client.get(reverse("web:jobs") + "?state=held")

    assert answer.headers["Location"] == "/login/?next=/jobs/%3Fstate%3Dheld"


def test_a_form_of_an_ended_session_is_told_to_be_lost_and_leads_back_to_its_page(
    client: Client, people: SimpleNamespace
) -> None:
    page = reverse("web:dags") + "?owner=alice"
    lost = {"name": "mine", "list": "dags"}

    answer = client.post(
        reverse("web:save-filter"), lost, headers={"Referer": f"http://testserver{page}"}
    )
    login = client.get(answer.headers["Location"])

    assert answer.headers["Location"] == "/login/?next=/dags/%3Fowner%3Dalice"
    assert b"what you sent was not carried out" in login.content


@pytest.mark.parametrize("referer", ["", "https://elsewhere.example/dags/", "//elsewhere.example"])
def test_a_form_that_came_from_elsewhere_leads_to_the_overview(
    client: Client, db: None, referer: str
) -> None:
    answer = client.post(reverse("web:save-filter"), headers={"Referer": referer})

    assert answer.headers["Location"] == "/login/?next=/"


def test_who_chooses_another_zone_on_a_refused_form_is_not_led_to_an_address_that_cannot_be_read(
    alice: Client,
) -> None:
    refused = alice.post(reverse("web:add-token"), {"name": ""})
    assert refused.status_code == 400

    told = re.search(r'name="next" value="([^"]*)"', refused.content.decode())
    assert told is not None
    answer = alice.post(reverse("web:preferences"), {"time_zone": "UTC", "next": told[1]})

    assert alice.get(answer.headers["Location"]).status_code == 200


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
        ({"started_at": None, "known_since": timedelta(minutes=5)}, "late"),
        ({"started_at": None, "known_since": timedelta(minutes=5), "period_s": 3600}, "never"),
    ],
)
def test_a_control_loop_is_judged_by_its_last_run(alice: Client, facts: dict, health: str) -> None:
    now = timezone.now()
    row = {key: now - each if isinstance(each, timedelta) else each for key, each in facts.items()}
    ControlLoop.objects.create(**{"name": "negotiator", "period_s": 5, **row})

    board = alice.get(reverse("web:dashboard"), {"show": "all"}).context["board"]

    assert [loop.health for loop in board.loops if loop.name == "negotiator"] == [health]
    is_well = health in ("ok", "never")
    assert board.is_calm is is_well
    assert [loop.name for loop in board.sick_loops] == ([] if is_well else ["negotiator"])
