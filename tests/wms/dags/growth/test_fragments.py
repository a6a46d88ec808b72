"""Fragments that nodes return: many at once, rescues that were changed by hand, what they need."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.wms.dags.driving import (
    advance,
    assert_log_agrees,
    claim_of,
    end,
    match,
    run_all,
    run_one,
    states,
)
from wms.core.actors import Actor
from wms.core.errors import InvalidInput
from wms.core.models import User
from wms.dags.engine import cycle
from wms.dags.models import Dag, DagEvent, Growth, Node, NodeEvent
from wms.dags.services.dags import remove_dags, rescue_dag
from wms.dags.submission.workspaces import put_file, read_file
from wms.failures.failure_reports import read_events
from wms.failures.models import Category, Kind

pytestmark = pytest.mark.django_db
CHAIN = "JOB A step.sub\nJOB B step.sub\nPARENT A CHILD B\nEXPAND A more.dag\n"
BIG = "JOB X {\nexecutable = /bin/true\nrequest_memory = 9000\n}\n"


@pytest.fixture(autouse=True)
def _site(make_site: Callable[..., object]) -> None:
    make_site("site-a", max_matches=9)


@pytest.fixture
def why(alice: User) -> dict[str, Any]:
    return {"actor": Actor.person(alice), "reason": "seen by eye"}


@pytest.mark.slow
def test_fragments_that_take_long_are_read_in_as_many_rounds_as_they_need(
    submit: Callable[..., Dag], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"N{at}" for at in range(5)]
    text = "".join(f"JOB {name} step.sub\nEXPAND {name} {name}.dag\n" for name in names)
    files = {f"{name}.dag": f"JOB {name}x step.sub\n" for name in names}
    dag = match(submit(text, files=files))
    monkeypatch.setattr(cycle, "_READING_S", -1.0)
    for name in names:
        end(claim_of(name))

    advance(dag)

    assert {states(dag)[name] for name in names} == {"done"}
    assert Growth.objects.filter(dag=dag).count() == 5
    assert_log_agrees(dag)


@pytest.mark.slow
def test_a_fragment_tells_what_it_needs_and_of_what_it_warns(
    submit: Callable[..., Dag],
) -> None:
    dag = match(submit(CHAIN, files={"more.dag": f"{BIG}DOT x.dot\n"}))
    assert [each.get("memory_mb") for each in dag.node_needs] == [None]
    run_one("A")
    advance(dag)

    assert 9000 in [each.get("memory_mb") for each in dag.node_needs]
    assert "X" in dag.need_nodes
    [event] = DagEvent.objects.filter(dag=dag, event="grow")
    assert event.facts["path"] == "more.dag.grown001"
    assert "more.dag" in event.facts["warnings"][0]
    assert read_file(dag.workspace_id, "more.dag.grown001") == f"{BIG}DOT x.dot\n".encode()
    assert_log_agrees(dag)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "told"),
    [
        ({"kind": "pass", "node": "A"}, "node A has no REPEAT line"),
        ({"kind": "fragment", "node": "B", "file": "more.dag"}, "node B has no EXPAND line"),
        ({"kind": "fragment", "node": "Q", "file": "more.dag"}, "the DAG has no node Q"),
        ({"kind": "fragment", "node": "A", "file": "none.dag"}, "none.dag is not there"),
        ({"kind": "fragment", "node": "A", "file": "taken.dag"}, "has a node B already"),
        ({"kind": "fragment", "node": "A", "file": "../../x"}, "leads outside"),
        ({"kind": "hand", "file": "more.dag", "after": ["Q"]}, "the DAG has no node Q"),
        ({"kind": "hand", "file": "more.dag", "after": ["B"], "before": ["A"]}, "makes a cycle"),
    ],
)
def test_a_rescue_that_was_changed_by_hand_is_refused_with_its_line(
    submit: Callable[..., Dag], why: dict[str, Any], line: dict[str, Any], told: str
) -> None:
    files = {"more.dag": "JOB X step.sub\n", "taken.dag": "JOB B step.sub\n"}
    dag = submit(CHAIN, files=files)
    remove_dags([dag.pk], **why)
    put_file(dag.workspace, "test.dag.rescue001", f"GROW {json.dumps(line)}\n".encode())

    with pytest.raises(InvalidInput) as raised:
        rescue_dag(dag.pk, **why)

    assert told in str(raised.value)
    assert Dag.objects.count() == 1


@pytest.mark.slow
def test_a_rescue_that_is_submitted_anew_brings_what_the_dag_grew_by(
    submit: Callable[..., Dag], why: dict[str, Any]
) -> None:
    dag = run_all(match(submit(CHAIN, files={"more.dag": "JOB X step.sub\n"})), {"B": 1})
    assert dag.state == "failed"
    rescue = (read_file(dag.workspace_id, "test.dag.rescue001") or b"").decode()
    files = {"test.dag.rescue001": rescue, "more.dag.grown001": "JOB X step.sub\n"}

    new = submit(CHAIN, files=files)

    assert states(new) == {"A": "done", "B": "waiting", "X": "done"}
    assert [each.number for each in Growth.objects.filter(dag=new)] == [1]
    assert run_all(match(new)).state == "completed"
    assert_log_agrees(new)
    with pytest.raises(InvalidInput):
        submit(CHAIN, files={"test.dag.rescue001": rescue})


def test_a_fragment_of_bytes_that_are_no_text_fails_the_node(submit: Callable[..., Dag]) -> None:
    dag = match(submit(CHAIN))
    put_file(dag.workspace, "more.dag", b"JOB X step.sub\nJOB \xff\xfe step.sub\n")
    run_one("A")
    advance(dag)

    node = Node.objects.get(dag=dag, name="A")
    assert node.state == "failed"
    assert "more.dag:2: the line is not UTF-8 text" in node.state_reason
    assert states(dag) == {"A": "failed", "B": "futile"}
    assert read_file(dag.workspace_id, "more.dag.grown001") is None
    assert_log_agrees(dag)


@pytest.mark.slow
def test_a_fault_in_a_fragment_is_reported_as_a_failure_of_the_payload(
    submit: Callable[..., Dag],
) -> None:
    dag = match(submit(CHAIN, files={"more.dag": "FROG\n"}))
    run_one("A")
    advance(dag)
    event = NodeEvent.objects.get(dag=dag, event="fail")

    [report] = read_events(Kind.NODE, [event.pk])

    assert "more.dag:1" in report.message
    assert report.likely_category == Category.PAYLOAD
