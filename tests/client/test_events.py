"""Events of the portal at the client: read, followed, and waited for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from pilotage_client import Client
from pilotage_client.flows.events import News
from pilotage_client.wire import Answer, Flow, Pause, Request

from tests import factories
from tests.client.conftest import URL, Portal
from wms.dags.models import Dag

_HOLD = {
    "id": 1, "kind": "dag", "object": "7", "name": "", "event": "hold", "from_state": "idle",
    "to_state": "held", "actor": "alice", "reason": "look", "created_at": "2026-01-01T00:00:00Z",
}  # fmt: skip


@pytest.fixture
def followed(
    transactional_db: None, people: SimpleNamespace, portal: Portal
) -> Iterator[SimpleNamespace]:
    """A DAG of Alice in a database in which changes are seen by all, and her client."""
    with Client(URL, factories.token_for(people.alice), transport=portal) as client:
        yield SimpleNamespace(client=client, dag=factories.dag(people.alice))


def test_events_are_followed_as_they_happen(followed: SimpleNamespace) -> None:
    client, dag = followed.client, followed.dag
    cursor = client.events().cursor

    client.hold_dag(dag.pk, "look")
    heard = next(client.follow_events(cursor, dag=[dag.pk], kind="dag"))

    assert (heard.kind, heard.object, heard.event) == ("dag", str(dag.pk), "hold")
    assert (heard.to_state, heard.reason, heard.actor) == ("held", "look", "alice")
    assert heard.created_at is not None


def test_an_end_is_heard_of_not_looked_for(followed: SimpleNamespace, portal: Portal) -> None:
    client, dag = followed.client, followed.dag

    def remove(request: Any) -> None:
        """Remove the DAG once it is waited for."""
        if "after" in request.url.params and Dag.objects.filter(pk=dag.pk, state="idle").exists():
            with Client(URL, client.profile.token, transport=Portal()) as other:
                other.remove_dag(dag.pk, "not needed")

    portal.before = remove

    ended = client.wait_for_dag(dag.pk)

    assert ended.state == "removed"
    look = f"GET /api/v1/dags/{dag.pk}/"
    events = "GET /api/v1/events/"
    assert portal.sent() == [events, look, events, look]


def _step(flow: Flow[Any], outcome: Any = None) -> Any:
    """Next step of a flow; its result when it is over."""
    try:
        return flow.send(outcome)
    except StopIteration as end:
        return end.value


def _batch(*events: Any, again_s: int = 0, took_s: float = 0.0) -> Answer:
    told = {"events": list(events), "cursor": "next", "again_s": again_s}
    headers = {"content-type": "application/json"}
    return Answer(URL, 200, headers, json.dumps(told).encode(), took_s)


def _problem(status: int) -> Answer:
    headers = {"content-type": "application/problem+json"}
    told = {"type": "/problems/x/", "status": status, "detail": "no"}
    return Answer(URL, status, headers, json.dumps(told).encode())


@pytest.fixture
def news() -> News:
    """News of a DAG, which have begun."""
    news = News({"dag": 7})
    begin = news.begin()
    assert isinstance(_step(begin), Request)
    assert _step(begin, _batch()) is None
    return news


def test_who_hears_of_much_rests_before_the_next_question(news: News) -> None:
    first = news.wait(None)
    asked = _step(first)
    took_s = _step(first, _batch(_HOLD, took_s=3.0))
    second = news.wait(None)

    assert dict(asked.query) == {"after": "next", "wait": "25", "dag": "7"}
    assert took_s == 3.0
    assert _step(second) == Pause(1.0)
    assert dict(_step(second).query)["wait"] == "24"


def test_who_finds_no_place_to_wait_pauses_longer_each_time(news: News) -> None:
    pauses = []
    for _ in range(3):
        flow = news.wait(None)
        _step(flow)
        pauses.append(_step(flow, _batch(again_s=5)).seconds)
        assert _step(flow) == pauses[-1]

    assert pauses == [5.0, 7.5, 10.0]


def test_what_is_left_of_a_second_is_not_asked_about(news: News) -> None:
    assert _step(news.wait(0.4)) == Pause(0.4)


def test_a_cursor_that_is_too_old_is_begun_anew(news: News) -> None:
    flow = news.wait(None)
    _step(flow)

    again = _step(flow, _problem(400))

    assert again.query == ()
    assert isinstance(_step(flow, _batch()), Pause)


def test_a_portal_without_events_is_looked_at_by_time() -> None:
    news = News({"dag": 7})
    begin = news.begin()
    _step(begin)

    assert _step(begin, _problem(404)) is None
    assert _step(news.wait(None)) == Pause(0.5)
