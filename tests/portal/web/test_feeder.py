"""Feeder of placements on the page of these and in the metrics."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from portal.metrics.installation import Installation
from tests import factories
from wms.placement.conf import feeder_conf
from wms.placement.feeding.operations import FeederEnd, begin_run, end_run

pytestmark = pytest.mark.django_db

NOW = timezone.now()


@pytest.fixture
def fed(settings: Any) -> Any:
    values = {"FEED_BELOW": 30, "FEED_PROGRAM": "/bin/true", "FEED_PAUSE_S": 3600}
    placement = settings.PILOTAGE["PLACEMENT"] | values
    settings.PILOTAGE = settings.PILOTAGE | {"PLACEMENT": placement}
    conf = feeder_conf()
    assert conf is not None
    return conf


def _page(name: str, *, is_live: bool = False) -> Any:
    browser = Client()
    browser.force_login(getattr(factories.people(), name))
    headers = {"HX-Request": "true", "HX-Target": "live"} if is_live else {}
    return browser.get(reverse("web:placements"), headers=headers)


def test_operators_see_how_the_feeder_ended_and_when_it_runs_next(fed: Any) -> None:
    run = begin_run(fed, NOW)
    assert run is not None
    end_run(run.lease, FeederEnd(9, "", "no <catalogue>"), fed, NOW)

    for is_live in (False, True):
        answer = _page("olga", is_live=is_live)
        status, text = answer.context["feeder"], answer.content.decode()
        assert (status.row.exit_code, status.row.failures) == (9, 1)
        assert status.next_at == NOW + timedelta(hours=1)
        assert 'id="feeder-fails"' in text
        assert "no &lt;catalogue&gt;" in text


def test_before_its_first_run_and_during_one_the_page_has_it_too(fed: Any) -> None:
    first = _page("olga")
    begin_run(fed, NOW)
    second = _page("olga")

    assert (first.status_code, second.status_code) == (200, 200)
    assert (first.context["feeder"].is_running, first.context["feeder"].row.runs) == (False, 0)
    assert (second.context["feeder"].is_running, second.context["feeder"].next_at) == (True, None)


def _told(name: str) -> Any:
    client = Client()
    client.force_login(getattr(factories.people(), name))
    return client.get(reverse("api:placement-feeder"))


def test_the_api_tells_operators_of_it_and_that_there_is_none(fed: Any, settings: Any) -> None:
    run = begin_run(fed, NOW)
    assert run is not None
    end_run(run.lease, FeederEnd(9, "", "no catalogue"), fed, NOW)

    told = _told("olga").json()
    settings.PILOTAGE = settings.PILOTAGE | {
        "PLACEMENT": settings.PILOTAGE["PLACEMENT"] | {"FEED_BELOW": None, "FEED_PROGRAM": ""}
    }
    none = _told("olga")

    assert (told["program"], told["below"], told["runs"]) == ("/bin/true", 30, 1)
    assert (told["exit_code"], told["output"], told["failures"]) == (9, "no catalogue", 1)
    assert told["next_at"].startswith((NOW + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M"))
    assert (none.status_code, none.json()["program"], none.json()["next_at"]) == (200, None, None)
    assert _told("sam").status_code == 403


@pytest.mark.parametrize("name", ["alice", "sam"])
def test_others_do_not_see_what_it_says(fed: Any, name: str) -> None:
    assert 'id="feeder"' not in _page(name).content.decode()


def test_without_a_feeder_there_is_nothing_of_it() -> None:
    assert 'id="feeder"' not in _page("olga").content.decode()
    assert not [each for each in _names() if "feeder" in each]


def test_failures_in_a_row_are_a_metric(fed: Any) -> None:
    for n in range(2):
        run = begin_run(fed, NOW + n * fed.pause)
        assert run is not None
        end_run(run.lease, FeederEnd(9), fed, NOW + n * fed.pause)

    assert _names()["pilotage_placement_feeder_failures"] == 2


def _names() -> dict[str, float]:
    """Values of the installation's figures by name; of those with labels one."""
    return {each.name: each.value for metric in Installation().collect() for each in metric.samples}
