"""Followers of the stream of events, and their waits at the server."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from rest_framework.test import APIClient

from portal.api.events.waiting import AGAIN_S, WaitingRoom
from tests import factories

URL = "/api/v1/events/"


@pytest.mark.django_db(transaction=True)
def test_a_follower_hears_of_what_happens_to_a_dag(as_user: Any) -> None:
    people = factories.people()
    dag = factories.dag(people.alice)
    alice: APIClient = as_user(people.alice)
    begun = alice.get(URL, {"dag": dag.pk}).json()

    alice.post(f"/api/v1/dags/{dag.pk}/hold/", {"reason": "look"}, format="json")
    told = alice.get(URL, {"dag": dag.pk, "after": begun["cursor"], "wait": 30}).json()
    later = alice.get(URL, {"dag": dag.pk, "after": told["cursor"]}).json()

    assert (begun["events"], begun["again_s"]) == ([], 0)
    [event] = told["events"]
    assert (event["kind"], event["object"]) == ("dag", str(dag.pk))
    assert (event["event"], event["to_state"], event["reason"]) == ("hold", "held", "look")
    assert later["events"] == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"after": "x"}, "after"),
        ({"wait": 31}, "wait"),
        ({"wait": "x"}, "wait"),
        ({"limit": 0}, "limit"),
        ({"kind": "planet"}, "kind"),
        ({"since": "x"}, "since"),
        ({"dag": 0}, "dag"),
        ({"kind": "node"}, "dag"),
        ({"node": 1}, "dag"),
        ({"job": "7,x"}, "job"),
        ({"pilot": "7"}, "pilot"),
    ],
)
def test_a_wrong_question_is_refused_by_its_field(
    alice: APIClient, query: dict[str, Any], field: str
) -> None:
    answer = alice.get(URL, query)

    assert answer.status_code == 400
    assert field in {each["field"].partition(".")[0] for each in answer.json()["findings"]}


def test_what_nobody_may_see_is_not_found(alice: APIClient, people: Any) -> None:
    cursor, dag = alice.get(URL).json()["cursor"], factories.dag(people.alice)

    for asked in (
        {"dag": f"{dag.pk},999"}, {"cluster": 999}, {"dag": dag.pk, "node": 999}, {"job": [1, 999]},
        {"pilot": UUID(int=1)}, {"site": "Mars"}, {"placement": 999}, {"schedule": 999},
    ):  # fmt: skip
        assert alice.get(URL, {"after": cursor, **asked}).status_code == 404


def test_a_wait_ends_with_what_is_found() -> None:
    pauses: list[float] = []
    room = WaitingRoom(1, pause=pauses.append)

    found = room.wait_for(lambda: len(pauses), lambda count: count == 3, wait_s=60)

    assert found == (3, True)


def test_who_finds_no_place_is_not_kept_waiting() -> None:
    room = WaitingRoom(1, pause=lambda _: pytest.fail("it waits"))

    with room.place() as has_place:
        found = room.wait_for(lambda: 0, bool, wait_s=60)

    assert (has_place, found) == (True, (0, False))
    assert AGAIN_S > 0


def test_a_place_is_free_again_when_its_wait_ends() -> None:
    room = WaitingRoom(1, pause=lambda _: None)

    for _ in range(2):
        assert room.wait_for(iter([0, 0, 1]).__next__, bool, wait_s=60) == (1, True)
