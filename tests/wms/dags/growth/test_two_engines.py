"""Growth with several engines at once: by pass, by fragment and by hand, each exactly once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from django.db import connections, transaction

from tests.wms.dags.driving import (
    NOW,
    advance,
    assert_log_agrees,
    claim_one,
    end,
    match,
    run_all,
    states,
)
from wms.core.actors import Actor
from wms.core.models import User
from wms.dags.engine import cycle as engine
from wms.dags.models import Dag, Edge, Growth, Node
from wms.dags.services.growth import GrowthRequest, grow_dag

GROWING = """\
JOB A step.sub
JOB B step.sub
JOB R step.sub
PARENT A R CHILD B
EXPAND A more.dag
REPEAT R WHILE (Pass < 3) MAX 9
"""
MORE = {"more.dag": "JOB X step.sub\nJOB Y step.sub\nPARENT X CHILD Y\n"}
pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def _site(make_site: Callable[..., object]) -> None:
    make_site("site-a", max_matches=9)


@contextmanager
def at_once(*works: Callable[[], object]) -> Iterator[None]:
    """Each in a thread with a connection of its own; all have ended behind the block."""
    start = threading.Barrier(len(works))
    failed: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        start.wait()
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - told by the test
            failed.append(error)
        finally:
            connections["default"].close()

    threads = [threading.Thread(target=run, args=[work]) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.join()
    assert failed == []


def cycle() -> None:
    engine.run_cycle(NOW)


def arcs(dag: Dag) -> list[tuple[str, str]]:
    found = Edge.objects.filter(parent__dag=dag).values_list("parent__name", "child__name")
    return sorted(found)


def test_each_growth_happens_once_whichever_engine_and_person_come_first(
    submit: Callable[..., Dag], alice: User
) -> None:
    dags = [submit(GROWING, files=MORE) for _ in range(4)]
    match(dags[0])
    while (attempt := claim_one()) is not None:
        end(attempt)

    def grow_by_hand() -> None:
        for dag in dags:
            asked = GrowthRequest("JOB H step.sub\n", before=["B"])
            grow_dag(dag.pk, asked, actor=Actor.person(alice), reason="more data came")

    with at_once(cycle, cycle, grow_by_hand):
        pass
    for dag in dags:
        run_all(advance(dag))

    for dag in dags:
        names = ["A", "B", "H", "R", "R#2", "R#3", "X", "Y"]
        assert states(dag) == dict.fromkeys(names, "done"), dag.pk
        assert sorted(Node.objects.filter(dag=dag).values_list("name", flat=True)) == names
        # Two passes, a fragment, and what was added by hand.
        assert Growth.objects.filter(dag=dag).count() == 4
        dag.refresh_from_db()
        assert (dag.state, dag.node_count, dag.done_count) == ("completed", 8, 8)
        assert Node.objects.get(dag=dag, name="B").unfinished_parents == 0
        assert arcs(dag) == [
            ("A", "X"), ("H", "B"), ("R", "R#2"), ("R#2", "R#3"), ("R#3", "B"), ("X", "Y"),
            ("Y", "B"),
        ]  # fmt: skip
        assert_log_agrees(dag)


def test_an_engine_leaves_a_dag_alone_that_another_one_is_letting_grow(
    submit: Callable[..., Dag],
) -> None:
    dag = submit(GROWING, files=MORE)
    match(dag)
    while (attempt := claim_one()) is not None:
        end(attempt)
    has_grown, may_commit = threading.Event(), threading.Event()

    def grow_and_wait() -> None:
        with transaction.atomic():
            engine.run_cycle(NOW)
            has_grown.set()
            may_commit.wait(30)

    with at_once(grow_and_wait):
        assert has_grown.wait(30)
        seen = engine.run_cycle(NOW)
        untouched = states(dag)
        may_commit.set()

    assert seen == {"dags": 1, "busy": 1}
    assert sorted(untouched) == ["A", "B", "R"]
    assert sorted(states(dag)) == ["A", "B", "R", "R#2", "X", "Y"]
    assert run_all(dag).state == "completed"
    assert Growth.objects.filter(dag=dag).count() == 3
    assert_log_agrees(dag)
