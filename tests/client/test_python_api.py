"""The Python API of the client, synchronous and asynchronous, against the portal itself."""

from __future__ import annotations

from collections.abc import Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from pilotage_client import (
    AsyncClient,
    Client,
    Conflict,
    InvalidInput,
    NotAuthenticated,
    NotFound,
    NotPermitted,
    TimedOut,
)
from pilotage_client.errors import Busy, NoAnswer
from pilotage_client.flows.submitting import PerhapsSubmitted

from tests import factories
from tests.client.conftest import URL, AwaitedPortal, Portal
from wms.dags.models import Dag

SUBMIT = "executable = run.sh\narguments = $(JOB)\noutput = $(JOB).out\nerror = $(JOB).err\nqueue\n"


@pytest.fixture
def dag_file(own_place: Path) -> Path:
    (own_place / "x.dag").write_text("JOB A a.sub\nJOB B a.sub\nPARENT A CHILD B\n")
    (own_place / "a.sub").write_text(SUBMIT)
    (own_place / "run.sh").write_text("#!/bin/sh\n")
    return own_place / "x.dag"


def finish_when_idle(portal: Portal) -> None:
    """The DAG that was submitted runs to its end as soon as somebody looks at it."""

    def work(request: httpx.Request) -> None:
        dag = Dag.objects.filter(state="idle").first()
        if request.method == "GET" and dag is not None:
            factories.site()
            factories.turn()
            dag.refresh_from_db()
            factories.finish(dag)

    portal.before = work


def driven(work: Coroutine[Any, Any, Any]) -> Any:
    """Result of a coroutine that waits for nothing; in a loop it would have its own connection."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits for something")


@pytest.mark.slow
def test_a_submitted_dag_is_waited_for(client: Client, dag_file: Path, portal: Portal) -> None:
    finish_when_idle(portal)

    run = client.submit_dag(dag_file, labels=["t"], priority=2)
    ended = run.wait()

    assert (run.submitted.state, run.submitted.nodes.total) == ("idle", 2)
    assert (ended.state, ended.is_well, ended.nodes.done) == ("completed", True, 2)
    assert (ended.labels, ended.priority, ended.owner) == (("t",), 2, "alice")
    assert ended.ended_at is not None


@pytest.mark.slow
def test_the_asynchronous_client_does_the_same(
    people: SimpleNamespace, dag_file: Path, portal: Portal
) -> None:
    finish_when_idle(portal)

    async def submit() -> Any:
        token = factories.token_for(people.alice)
        async with AsyncClient(URL, token, transport=AwaitedPortal(portal)) as client:
            run = await client.submit_dag(dag_file)
            return await run.wait(), await client.dags(owner="alice")

    ended, found = driven(submit())

    assert (ended.state, ended.nodes.done) == ("completed", 2)
    assert [dag.id for dag in found] == [ended.id]


def test_a_lost_answer_neither_loses_nor_doubles_a_submission(
    client: Client, dag_file: Path, portal: Portal, pauses: list[float]
) -> None:
    lost = []

    def lose(request: httpx.Request) -> None:
        if request.method == "POST" and len(lost) < 2:
            lost.append(request)
            raise httpx.ReadError("the line is cut")

    portal.after = lose

    run = client.submit_dag(dag_file)

    assert (len(lost), len(pauses)) == (2, 2)
    assert [dag.pk for dag in Dag.objects.all()] == [run.id]


def test_who_gives_up_is_told_the_key_by_which_it_is_submitted_once(
    client: Client, dag_file: Path, portal: Portal
) -> None:
    def cut(request: httpx.Request) -> None:
        raise httpx.ReadError("the line is cut")

    portal.after = cut
    with pytest.raises(PerhapsSubmitted) as told:
        client.submit_dag(dag_file)
    portal.after = lambda request: None

    run = client.submit_dag(dag_file, key=told.value.key)

    assert told.value.key in str(told.value)
    assert [dag.pk for dag in Dag.objects.all()] == [run.id]
    (dag_file.parent / "run.sh").write_text("#!/bin/sh\ntrue\n")
    with pytest.raises(Conflict):
        client.submit_dag(dag_file, key=told.value.key)


@pytest.mark.parametrize(
    ("errors", "is_sent"),
    [
        ([httpx.ConnectError("refused")] * 6, False),
        ([httpx.ReadError("cut"), *[httpx.ConnectError("refused")] * 5], True),
    ],
)
def test_a_submission_may_have_arrived_only_if_some_request_was_sent(
    client: Client, dag_file: Path, portal: Portal, errors: list[Exception], is_sent: bool
) -> None:
    left = iter(errors)

    def fail(request: httpx.Request) -> None:
        raise next(left)

    portal.before = fail

    with pytest.raises(NoAnswer) as told:
        client.submit_dag(dag_file)

    assert isinstance(told.value, PerhapsSubmitted) is told.value.is_sent is is_sent


def test_a_change_is_not_sent_again_after_a_lost_answer(
    client: Client, people: SimpleNamespace, portal: Portal
) -> None:
    dag = factories.dag(people.alice)

    def cut(request: httpx.Request) -> None:
        raise httpx.ReadError("the line is cut")

    portal.after = cut
    with pytest.raises(Exception, match="does not answer"):
        client.hold_dag(dag.pk, "look")

    assert portal.sent() == [f"POST /api/v1/dags/{dag.pk}/hold/"]


def test_refusals_are_classes_with_code_place_and_reason(
    client: Client, people: SimpleNamespace, dag_file: Path, portal: Portal
) -> None:
    dag_file.write_text("JOB A none.sub\nJOB B\n")
    with pytest.raises(InvalidInput) as faulty:
        client.submit_dag(dag_file)
    with pytest.raises(NotFound) as missing:
        client.dag(10**9)
    with pytest.raises(NotPermitted) as refused:
        client.remove_pilot(str(factories.pilot(factories.site().queues.get()).uuid), "x")
    with (
        Client(URL, "plt_wrong", transport=portal) as stranger,
        pytest.raises(NotAuthenticated) as unknown,
    ):
        stranger.dags()

    assert (faulty.value.code, faulty.value.place) == ("invalid-input", "x.dag:1")
    assert [finding.line for finding in faulty.value.findings] == [1, 2]
    assert faulty.value.request_id
    assert [e.value.exit_code for e in (faulty, missing, refused, unknown)] == [1, 5, 4, 3]
    assert not Dag.objects.exists()


def test_lists_are_read_page_by_page_up_to_a_limit(
    client: Client, people: SimpleNamespace, portal: Portal, monkeypatch: Any
) -> None:
    made = [factories.dag(people.alice, node_count=1).pk for _ in range(3)]
    monkeypatch.setattr("pilotage_client.flows.asking._PAGE", 2)
    monkeypatch.setattr("pilotage_client.flows.asking._LARGEST_PAGE", 2)

    everything = [dag.id for dag in client.dags(limit=None, state=("idle", "held"))]

    assert everything == made[::-1]
    assert len(portal.requests) == 2
    assert [dag.id for dag in client.dags(limit=1)] == made[-1:]


def test_waiting_has_an_end(client: Client, people: SimpleNamespace) -> None:
    dag = factories.dag(people.alice, node_count=1)
    seen: list[str] = []

    with pytest.raises(TimedOut):
        client.wait_for_dag(dag.pk, timeout_s=5, on_change=lambda now: seen.append(now.state))

    assert seen == ["idle"]


def test_a_busy_portal_is_asked_again_when_it_says(
    client: Client, people: SimpleNamespace, portal: Portal, pauses: list[float]
) -> None:
    dag = factories.dag(people.alice, node_count=1)
    problem = b'{"type": "urn:pilotage:busy", "status": 429, "detail": "no place is free"}'
    kind = {"Content-Type": "application/problem+json", "Retry-After": "7"}
    answers = [httpx.Response(429, headers=kind, content=problem)]
    portal.before = lambda request: answers.pop() if answers else None

    held = client.hold_dag(dag.pk, "look")

    assert (held.state, pauses) == ("held", [7.0])


def test_a_portal_that_asks_to_wait_for_long_is_not_waited_for(
    client: Client, people: SimpleNamespace, portal: Portal, pauses: list[float]
) -> None:
    problem = b'{"type": "/problems/rate-exceeded/", "status": 429, "detail": "in 600 s"}'
    kind = {"Content-Type": "application/problem+json", "Retry-After": "600"}
    portal.before = lambda request: httpx.Response(429, headers=kind, content=problem)

    with pytest.raises(Busy) as raised:
        client.hold_dag(1, "look")

    assert (raised.value.code, raised.value.retry_after_s, pauses) == ("rate-exceeded", 600.0, [])
