from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.staticfiles import finders

from portal.shared.state_badges import BADGES, MEANINGS
from portal.web.templatetags import pilotage
from wms.core.selectors import LoopHealth
from wms.dags.states import DagState, NodeState, ScriptState
from wms.jobs.models import Attempt
from wms.jobs.states import JobState
from wms.pilots.states import PilotState
from wms.placement.states import RequestState
from wms.sites.states import SiteState

KINDS = {
    "dag": DagState.values,
    "node": NodeState.values,
    "job": JobState.values,
    "pilot": PilotState.values,
    "placement": RequestState.values,
    "script": [*ScriptState.values, "failed"],
    "attempt": [*Attempt.Outcome.values, "open"],
    "loop": [health.value for health in LoopHealth],
    "site": [
        *SiteState.values,
        "enabled",
        "disabled",
        "no queue",
        "downtime",
        "expired",
        "throttled",
    ],
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_state_has_a_look_and_a_meaning(kind: str) -> None:
    assert set(KINDS[kind]) <= set(BADGES)
    assert set(MEANINGS[kind]) == set(KINDS[kind])


def test_states_of_one_kind_are_told_apart_by_shape_or_word_not_by_colour_alone() -> None:
    tones_of_shape: dict[str, set[str]] = {}
    for look in BADGES.values():
        tones_of_shape.setdefault(look.shape, set()).add(look.tone)

    assert all(len(tones) == 1 for tones in tones_of_shape.values())


def test_every_shape_is_in_the_sprite() -> None:
    path = finders.find("img/shapes.svg")
    assert path is not None
    with open(path, encoding="utf-8") as file:
        sprite = file.read()

    assert [look.shape for look in BADGES.values() if f'id="{look.shape}"' not in sprite] == []


def test_a_state_carries_its_word_its_shape_and_its_meaning() -> None:
    badge = pilotage.state("held", "dag")

    assert "held</span>" in badge
    assert "#pause" in badge
    assert MEANINGS["dag"]["held"] in badge


def test_a_site_that_is_open_is_well_and_an_attempt_that_is_open_goes_on() -> None:
    assert "#check" in pilotage.state("open", "site")
    assert "#play" in pilotage.state("open", "attempt")


def test_what_a_user_wrote_is_escaped_in_a_badge() -> None:
    assert "<b>" not in pilotage.state("done", label="<b>x</b>")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        (0, "0 s"),
        (0.04, "< 0.1 s"),
        (1.5, "1.5 s"),
        (59.6, "1 min"),
        (60, "1 min"),
        (4320, "1 h 12 min"),
        (timedelta(days=2), "2 d"),
        (90_061, "1 d 1 h"),
    ],
)
def test_a_length_of_time_is_told_in_its_two_largest_units(seconds, text: str) -> None:
    assert pilotage.span(seconds) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (5 * 2**30, "5 GiB")],
)
def test_a_size_has_a_binary_unit(size_bytes: int, text: str) -> None:
    assert pilotage.size(size_bytes) == text


def test_times_are_told_in_utc_with_their_zone() -> None:
    moment = datetime.fromisoformat("2026-11-20T17:30:00+01:00")

    assert "2026-11-20 16:30:00" in pilotage.at(moment)
    assert "UTC" in pilotage.at(moment)
    assert 'title="2026-11-20 16:30:00 UTC"' in pilotage.since(moment)


def test_a_time_lately_is_told_by_its_age() -> None:
    assert "3 min ago" in pilotage.since(datetime.now(UTC) - timedelta(seconds=200))
    assert pilotage.since(None) == ""
