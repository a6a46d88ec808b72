"""Claims of pilots that have no free account for some users and groups."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.portal.pilot_api.pilot_client import PilotClient

pytestmark = pytest.mark.django_db


def test_a_pilot_draws_no_jobs_of_users_and_groups_that_it_has_no_account_for(
    registered: PilotClient, make_job: Callable[..., int]
) -> None:
    job = make_job(owner_group="cms")

    for refused in (
        {"refused_owners": ["alice", "bob"]},
        {"refused_owners": ["bob"], "refused_groups": ["cms"]},
    ):
        assert registered.ask(**refused).json()["job"] is None
    wrong = registered.ask(refused_owners="alice")
    assert wrong.json()["errors"][0]["field"] == "refused_owners"
    given = registered.ask(refused_owners=["bob"], refused_groups=["atlas"]).json()["job"]
    assert (given["job"], given["owner"], given["owner_group"]) == (job, "alice", "cms")
