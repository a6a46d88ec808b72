"""Sentences about unmatched DAGs that users read: the only tests of `matching` that compare them.

Other tests compare kinds, names and numbers.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from matching.negotiation.concurrency_limits import Limit
from matching.negotiation.cycle_sites import Offer
from matching.negotiation.decision import Request
from tests.matching.matchmaking import NOW, match, offer, request

_AVOIDED = {1: NOW + timedelta(hours=1)}


@pytest.mark.parametrize(
    ("dag", "site", "part"),
    [
        (request(), offer(1, "a", 2), "1 of 1 full, CurMatches has reached MaxMatches (a)"),
        (
            request(),
            offer(1, "a", Requirements="false"),
            "1 of 1 refusing the DAG by their own Requirements (a)",
        ),
        (
            request(Requirements="false"),
            offer(1, "a"),
            "1 of 1 ruled out by the Requirements of the DAG (a)",
        ),
        (
            request(),
            replace(offer(1, "a"), closed="banned by olga: disk full"),
            "1 of 1 closed (a: banned by olga: disk full)",
        ),
        (
            replace(request(), avoided=_AVOIDED, left_because={1: "by hand"}),
            offer(1, "a"),
            "avoided, as the DAG was taken back from there (a)",
        ),
        (
            replace(request(), avoided=_AVOIDED, left_because={1: "by hand"}),
            offer(1, "a"),
            "It left a: by hand.",
        ),
    ],
)
def test_the_sentence_of_an_unmatched_dag_names_the_standing_of_its_sites(
    dag: Request, site: Offer, part: str
) -> None:
    (leftover,) = match([dag], [site]).unmatched.values()

    assert part in leftover.text


@pytest.mark.parametrize(
    ("limit", "part"),
    [
        (Limit(6.0, used=6.0), "db is used up: 6 of 6 in use, the DAG takes 2"),
        (Limit(1.0), "takes 2 of the concurrency limit db, more than there is (1)"),
    ],
)
def test_the_sentence_of_a_dag_that_a_concurrency_limit_keeps_back(limit: Limit, part: str) -> None:
    dag = replace(request(), limits={"db": 2.0})

    (leftover,) = match([dag], [offer(1, "a")], limits={"db": limit}).unmatched.values()

    assert part in leftover.text
