"""Attributes that sites require and a request does not set, told with the reason it waits."""

from __future__ import annotations

import pytest

from matching.negotiation import wanted_attributes
from matching.negotiation.acceptance import accept
from matching.negotiation.cycle_sites import Offer
from matching.negotiation.decision import Usage
from matching.negotiation.explanation import explain
from matching.negotiation.unmatched_reasons import Leftover
from tests.matching.matchmaking import NOW, match, offer, request

ROOM = "CurMatches < MaxMatches"


def requiring(condition: str, *, count: int = 3, **attributes: str) -> list[Offer]:
    return [
        offer(n, f"s{n}", Requirements=f"{ROOM} && ({condition})", **attributes)
        for n in range(1, count + 1)
    ]


def left(sites: list[Offer], **attributes: str) -> Leftover:
    return match([request(**attributes)], sites).unmatched[1]


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("TARGET.WANT_X =?= true", "WANT_X = true"),
        ("TARGET.WANT_X", "WANT_X = true"),
        ('stringListMember("cms", TARGET.VOs)', 'VOs = "cms"'),
        ("TARGET.Level >= MY.Floor", "Level = 7"),
        ("TARGET.VO isnt undefined", "VO with TARGET.VO isnt undefined"),
        ("TARGET.Level > 5 && TARGET.Level < 6", "Level with"),
        ("TARGET.A =?= 1 || TARGET.B > 99999", "A = 1"),
    ],
)
def test_the_reason_names_what_all_sites_require_with_a_value(condition: str, told: str) -> None:
    reason = left(requiring(condition, Floor="7"))

    assert reason.names_attributes
    assert f"All 3 sites require {told}" in reason.text


def test_sites_that_want_different_things_are_told_apart() -> None:
    sites = [*requiring("TARGET.WANT_X", count=2), offer(9, "z", Requirements="TARGET.WANT_Y")]

    text = left(sites).text

    assert "2 of 3 sites (s1, s2) require WANT_X = true" in text
    assert "1 of 3 sites (z) requires WANT_Y = true" in text


def test_two_conditions_of_a_site_are_told_together() -> None:
    text = left(requiring("TARGET.WANT_X && TARGET.WANT_Y", count=1)).text

    assert "The only site requires WANT_X = true and WANT_Y = true" in text


@pytest.mark.parametrize(
    ("sites", "attributes"),
    [
        (requiring("TARGET.WANT_X =?= true"), {"WANT_X": "false"}),
        (requiring("true"), {"Requirements": "TARGET.Missing > 1"}),
        (requiring("false"), {}),
        ([*requiring("TARGET.WANT_X"), offer(9, "full", current=2)], {}),
    ],
    ids=["it is set", "the DAG refuses", "nobody is let in", "another site only is full"],
)
def test_else_no_attribute_is_named(sites: list[Offer], attributes: dict[str, str]) -> None:
    assert not left(sites, **attributes).names_attributes


def test_jobs_bound_at_the_claim_and_explanations_are_told_the_same() -> None:
    sites = requiring("TARGET.WANT_X")
    told = "All 3 sites require WANT_X = true"

    leftover = accept([request()], sites, NOW)[1].leftover

    assert leftover is not None
    assert told in leftover.text
    assert told in explain(request(), sites, Usage(), {}, NOW).summary


def test_after_so_many_sites_were_asked_the_reasons_come_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wanted_attributes, "_MOST_ASKED", 3)
    sites = requiring("TARGET.WANT_X && TARGET.Size < 9")
    several = [request(n, Size=str(n)) for n in (1, 2)]

    unmatched = match(several, sites).unmatched

    assert [unmatched[n].names_attributes for n in (1, 2)] == [True, False]
