"""Series out of the round-robin archives."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from wms.history.services import store_samples

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
