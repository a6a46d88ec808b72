"""The efficiency page: comparison with the days before, and the CSV file."""

from __future__ import annotations

import csv
import io
from datetime import date

import pytest
from django.test import Client

from tests import factories
from wms.accounting.core_seconds import CoreSeconds, Use, add_uses

pytestmark = pytest.mark.django_db
NOVEMBER = "since=2026-11-01&until=2026-11-30"


def logged_in(name: str) -> Client:
    client = Client()
    client.force_login(factories.person(name))
    return client


@pytest.fixture(autouse=True)
def used() -> None:
    days = ((date(2026, 11, 3), 7200.0), (date(2026, 10, 31), 3600.0))
    add_uses(
        Use(day, "UW", "alice", CoreSeconds(useful_s=useful_s), "=higgs", ("v2",), attempts=1)
        for day, useful_s in days
    )


def test_the_days_are_compared_with_as_many_before() -> None:
    address = f"/efficiency/?by=group&compare=before&{NOVEMBER}"

    answer = logged_in("bob").get(address)

    [line] = answer.context["lines"]
    assert (line.total_h, line.before_h, line.change_percent) == (2.0, 1.0, 100.0)
    assert str(answer.context["before"].since) == "2026-10-02"
    told = logged_in("bob").get(f"/api/v1{address}").json()
    assert [each["before"]["spent"]["useful_s"] for each in told] == [3600.0]


def test_a_csv_file_has_all_lines_and_no_formula() -> None:
    answer = logged_in("bob").get(f"/efficiency/accounts.csv?by=group&compare=before&{NOVEMBER}")

    [line] = csv.DictReader(io.StringIO(answer.content.decode()))
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert line["group"] == "'=higgs"
    assert (line["since"], line["useful_s"], line["useful_s_before"]) == (
        "2026-11-01", "7200.0", "3600.0"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("since=2026-11-02&until=2026-11-01", "since"),
        ("since=1999-01-01", "since"),
        ("since=2010-01-01", "since"),
        ("since=2026-11-01&days=3", "days"),
        ("by=month&compare=before", "compare"),
        ("label=a%0Ab", "label"),
    ],
)
def test_a_question_about_days_that_makes_no_sense_is_refused(query: str, field: str) -> None:
    answer = logged_in("bob").get(f"/api/v1/efficiency/?{query}")

    assert answer.status_code == 400
    assert answer.json()["findings"][0]["field"] == field
