"""Shared rounds: DAGs move on together as each would by itself, in as few statements as one."""

from __future__ import annotations

import io
import random
from collections.abc import Callable

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from tests import factories
from tests.wms.conftest import SUBMIT_FILE
from tests.wms.dags.driving import NOW, assert_log_agrees, claim_one, end, match, states
from wms.core.models import InboxEntry, User
from wms.dags.engine import cycle as engine
from wms.dags.engine import shared_rounds
from wms.dags.engine.shared_rounds import Together, advance_together
from wms.dags.lifecycle import TOPICS
from wms.dags.models import Dag, DagEvent, MatchRecord, Node, SharedLimit
from wms.dags.negotiation import cycle as negotiation
from wms.dags.submission.submit import DagSubmission, submit_dag
from wms.jobs.models import Job

PAIR = "JOB A step.sub\nJOB B step.sub\nPARENT A CHILD B\n"


@pytest.fixture
def pairs(db: None, submit: Callable[..., Dag], make_site: Callable[..., object]) -> list[Dag]:
    """Four DAGs whose first nodes are submitted."""
    make_site("site-a", max_matches=9)
    dags = [submit(PAIR) for _ in range(4)]
    match(dags[-1])
    return dags


def end_waiting() -> None:
    """Every job that waits is run, and ends well."""
    while (attempt := claim_one()) is not None:
        end(attempt)


def ids(dags: list[Dag]) -> frozenset[int]:
    return frozenset(dag.pk for dag in dags)


def test_children_of_many_dags_are_submitted_in_as_few_statements_as_those_of_two(
    pairs: list[Dag],
) -> None:
    end_waiting()
    counts = []
    for some in (pairs, pairs[:2]):
        with transaction.atomic(), CaptureQueriesContext(connection) as captured:
            assert advance_together(ids(some), now=NOW).advanced == ids(some)
            assert [states(dag) for dag in some] == [{"A": "done", "B": "submitted"}] * len(some)
            transaction.set_rollback(some is pairs)
        counts.append(len(captured) - len(some))
    assert counts[0] == counts[1]
    for dag in pairs[:2]:
        assert_log_agrees(dag)


def test_small_dags_begin_in_as_few_statements_as_two_do(
    submit: Callable[..., Dag], make_site: Callable[..., object]
) -> None:
    make_site("site-a", max_matches=9)
    dags = [submit("JOB A step.sub\nJOB B step.sub NOOP\nPARENT B CHILD A\n")]
    dags += [submit(PAIR) for _ in range(3)]
    with_service = submit(PAIR + "SERVICE S step.sub\n")
    negotiation.run_cycle(NOW)
    counts = []
    fresh = dags[1:]
    for some in (fresh, fresh[:2]):
        with transaction.atomic(), CaptureQueriesContext(connection) as captured:
            assert advance_together(ids(some), now=NOW).advanced == ids(some)
            assert [states(dag) for dag in some] == [{"A": "submitted", "B": "waiting"}] * len(some)
            transaction.set_rollback(some is fresh)
        counts.append(len(captured) - len(some))
    together = advance_together(ids([dags[0], with_service]), now=NOW)

    assert counts[0] == counts[1]
    assert together == Together(ids(dags[:1]), ids([with_service]))
    assert states(dags[0]) == {"A": "submitted", "B": "done"}
    for dag in dags[:2]:
        assert_log_agrees(dag)


@pytest.mark.slow
def test_dags_whose_nodes_are_all_done_end_in_as_few_statements_as_two_do(
    pairs: list[Dag], submit: Callable[..., Dag]
) -> None:
    with_final = submit(PAIR + "FINAL F step.sub\n")
    match(with_final)
    for _ in range(2):
        engine.run_cycle(NOW)
        end_waiting()
    counts = []
    for some in (pairs, pairs[:2]):
        with transaction.atomic(), CaptureQueriesContext(connection) as captured:
            assert advance_together(ids(some), now=NOW).advanced == ids(some)
            ends = DagEvent.objects.filter(dag__in=some, event="complete")
            assert [end.facts for end in ends] == [{"status": 0, "exit_code": 0}] * len(some)
            transaction.set_rollback(some is pairs)
        counts.append(len(captured))
    assert counts[0] == counts[1]
    assert not InboxEntry.objects.filter(topic__in=TOPICS, key__in=ids(pairs[:2])).exists()
    for dag in pairs[:2]:
        assert MatchRecord.objects.get(dag=dag).ended_at is not None
        assert_log_agrees(dag)

    engine.run_cycle(NOW)
    assert states(with_final)["F"] == "submitted"
    assert Dag.objects.filter(state="completed", ended_at=NOW, exit_code=0).count() == 4


@pytest.mark.slow
def test_jobs_belong_to_the_owner_and_the_workspace_of_their_dag(
    pairs: list[Dag], submit: Callable[..., Dag], charlie: User
) -> None:
    other = submit(PAIR, owner=charlie)
    match(other)
    end_waiting()

    engine.run_cycle(NOW)

    for dag in (*pairs, other):
        job = Job.objects.get(topic_key=dag.pk, name="B")
        assert (job.owner_id, job.workspace_id) == (dag.owner_id, dag.workspace_id)
        assert Node.objects.get(dag=dag, name="B").job_id == job.pk


def test_a_dag_with_other_news_has_a_round_of_its_own(pairs: list[Dag]) -> None:
    failed = claim_one()
    assert failed is not None
    end(failed, exit_code=1)
    end_waiting()

    together = advance_together(ids(pairs), now=NOW)

    assert together == Together(
        ids(pairs) - {failed.job.topic_key}, frozenset({failed.job.topic_key})
    )
    engine.run_cycle(NOW)
    assert Dag.objects.get(pk=failed.job.topic_key).state == "failed"
    assert Dag.objects.filter(submitted_count=1).count() == 3


def test_a_limit_of_several_dags_holds_for_their_nodes_together(pairs: list[Dag]) -> None:
    SharedLimit.objects.create(max_jobs=3)
    end_waiting()

    engine.run_cycle(NOW)

    assert Node.objects.filter(name="B", state="submitted").count() == 3
    assert Node.objects.filter(name="B", state="ready").count() == 1


def test_an_error_of_one_dag_holds_it_and_no_other(
    pairs: list[Dag], monkeypatch: pytest.MonkeyPatch
) -> None:
    really = engine.submit_ready
    end_waiting()

    def fail(*_: object) -> set[int]:
        raise ZeroDivisionError

    def fail_for_the_first(round_: engine.Round) -> tuple[list[object], bool]:
        if round_.dag.pk == pairs[0].pk:
            raise ZeroDivisionError
        return really(round_)

    monkeypatch.setattr(shared_rounds, "_submit_ready", fail)
    monkeypatch.setattr(engine, "submit_ready", fail_for_the_first)
    engine.run_cycle(NOW)

    assert [Dag.objects.get(pk=dag.pk).state for dag in pairs] == ["held", *["running"] * 3]
    assert InboxEntry.objects.filter(topic__in=TOPICS, key=pairs[0].pk).exists()


class TestAsByThemselves(TestCase):
    """Random DAGs end alike, whether they move on together or each by itself."""

    @pytest.mark.slow
    @settings(max_examples=8)
    @given(seed=st.integers(0, 2**32))
    def test_dags_end_alike_together_and_each_by_itself(self, seed: int) -> None:
        ends = []
        for is_together in (True, False):
            with transaction.atomic(), pytest.MonkeyPatch.context() as patched:
                if not is_together:
                    patched.setattr(
                        engine, "advance_together", lambda pks, now: Together(left=frozenset(pks))
                    )
                ends.append(_run_to_the_end(random.Random(seed)))
                transaction.set_rollback(True)
        assert ends[0] == ends[1]


def _run_to_the_end(draw: random.Random) -> list[object]:
    """Some random DAGs, some of whose jobs fail; how each node and DAG has ended."""
    factories.site("site-a", max_matches=9)
    owner = factories.person("somebody")
    dags = [_random_dag(draw, owner) for _ in range(3)]
    match(dags[0])
    for _ in range(40):
        attempts = [attempt for attempt in iter(claim_one, None) if attempt is not None]
        for attempt in attempts:
            job = attempt.job
            # By what it is, and not by when it came: jobs come in another order.
            fate = random.Random(f"{dags[0].pk - job.topic_key}{job.name}{attempt.number}")
            end(attempt, exit_code=int(fate.random() < 0.15))
        while InboxEntry.objects.filter(topic__in=TOPICS).exists():
            engine.run_cycle(NOW)
        if not attempts:
            break
    for dag in dags:
        dag.refresh_from_db()
        assert_log_agrees(dag)
    return [(states(dag), dag.state, dag.status, dag.done_count, dag.ready_count) for dag in dags]


def _random_dag(draw: random.Random, owner: User) -> Dag:
    names = [f"N{number}" for number in range(draw.randint(2, 7))]
    lines = [f"JOB {name} step.sub{draw.choice(['', '', '', ' NOOP'])}" for name in names]
    lines += [f"RETRY {name} 1" for name in names if draw.random() < 0.5]
    lines += [f"CATEGORY {name} heavy" for name in names if draw.random() < 0.3]
    lines += ["MAXJOBS heavy 1"] if draw.random() < 0.5 else []
    for number, name in enumerate(names[1:], start=1):
        parents = draw.sample(names[:number], draw.randint(1, min(2, number)))
        lines.append(f"PARENT {' '.join(parents)} CHILD {name}")
    files = {"step.sub": io.BytesIO(SUBMIT_FILE.encode()), "step.sh": io.BytesIO(b"#!/bin/sh\n")}
    submission = DagSubmission(dag_name="test.dag", dag_text="\n".join(lines), files=files)
    return submit_dag(submission, owner=owner, actor=factories.SYSTEM)
