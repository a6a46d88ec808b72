from __future__ import annotations

import pytest

from matching.negotiation.explanation import MatchVerdict
from matching.negotiation.unmatched_reasons import SiteStanding
from portal.shared.state_badges import BADGES
from portal.web.explain.answers import cut
from portal.web.explain.verdicts import DAGS, JOB_VERDICTS, SITES, VERDICTS


@pytest.mark.parametrize(
    ("known", "shown"),
    [
        (MatchVerdict, VERDICTS),
        (MatchVerdict, JOB_VERDICTS),
        (SiteStanding, SITES),
        (SiteStanding, DAGS),
    ],
)
def test_every_answer_has_a_look_and_a_meaning(known: type, shown: dict) -> None:
    assert set(shown) == set(known)


def test_a_shape_has_the_same_tone_as_in_the_states() -> None:
    tones = {look.shape: look.tone for look in BADGES.values()}
    tables = (VERDICTS, JOB_VERDICTS, SITES, DAGS)
    badges = [meaning.badge for table in tables for meaning in table.values()]

    assert {look.shape: look.tone for look in badges}.items() <= tones.items()


@pytest.mark.parametrize(("length", "shown"), [(0, 0), (3, 3), (4, 4), (5, 3), (500, 3)])
def test_a_long_list_is_cut_but_never_for_a_single_one_more(length: int, shown: int) -> None:
    found = cut(range(length), 3)

    assert len(found.shown) == shown
    assert found.total == length
