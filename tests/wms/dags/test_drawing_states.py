from __future__ import annotations

from datetime import timedelta

import pytest

from tests import factories
from wms.core.actors import Actor
from wms.dags.models import Dag, Node
from wms.dags.reading import drawing_states
from wms.dags.reading.drawing import Drawing, draw
from wms.dags.reading.drawing_states import (
    DRAWN,
    StateChanges,
    States,
    Version,
    changes_since,
    read_version,
    states_of_nodes,
)
from wms.dags.reading.selectors import counts_by_state, levels_of
from wms.dags.services.nodes import rerun_nodes
from wms.dags.states import NodeKind


@pytest.fixture
def dag(db: None) -> Dag:
    """A running chain of three nodes; a job waits for the first."""
    return factories.running_dag(factories.person("alice"), node_count=3, is_chain=True)


def _words(codes: bytes) -> list[str]:
    return [DRAWN[code] for code in codes]


def _applied(known: States, changes: StateChanges) -> list[str]:
    assert changes.codes is not None
    codes = bytearray(known.codes)
    for node, code in changes.codes.items():
        codes[node] = code
    return _words(codes)


def _now(dag: Dag, drawing: Drawing) -> list[str]:
    return _words(states_of_nodes(dag, drawing).codes)


def test_a_submitted_node_is_drawn_as_its_job_is(dag: Dag) -> None:
    drawing = draw(dag)
    before = _now(dag, drawing)
    claimed = factories.claim(factories.pilot(dag.site.queues.get()))
    claimed.start()

    assert before == ["submitted", "waiting", "waiting"]
    assert _now(dag, drawing) == ["running", "waiting", "waiting"]


def test_the_states_tell_how_many_nodes_are_in_each_and_which_stand_beside_the_others(
    db: None,
) -> None:
    dag = factories.running_dag(factories.person("alice"), node_count=3)
    Node.objects.filter(pk=dag.nodes.latest("ordinal").pk).update(
        kind=NodeKind.FINAL, state="waiting"
    )

    counts = states_of_nodes(dag, draw(dag)).counts

    assert counts == counts_by_state(dag) == levels_of(dag).counts
    assert counts.counted == {"submitted": 2}
    assert counts.every == {"submitted": 2, "waiting": 1}


def test_the_changes_since_a_version_lead_to_the_states_of_now(dag: Dag) -> None:
    drawing = draw(dag)
    pilot = factories.pilot(dag.site.queues.get())
    steps = [states_of_nodes(dag, drawing)]
    claimed = factories.claim(pilot)
    claimed.start()
    steps.append(states_of_nodes(dag, drawing))
    claimed.end()
    factories.turn()
    steps.append(states_of_nodes(dag, drawing))
    factories.run_job(pilot, exit_code=1)
    factories.turn()

    now = _now(dag, drawing)

    assert now == ["done", "failed", "futile"]
    for known in steps:
        assert _applied(known, changes_since(dag, drawing, known.version)) == now


def test_a_job_that_goes_back_to_its_queue_is_told(dag: Dag) -> None:
    drawing = draw(dag)
    claimed = factories.claim(factories.pilot(dag.site.queues.get()))
    claimed.start()
    known = states_of_nodes(dag, drawing)
    claimed.give_back("the node was full")

    assert _applied(known, changes_since(dag, drawing, known.version))[0] == "submitted"


def test_changes_are_told_though_they_were_begun_before_the_version(dag: Dag) -> None:
    """As by a transaction that has changed a job and commits only after others were told."""
    drawing = draw(dag)
    known = states_of_nodes(dag, drawing)
    factories.claim(factories.pilot(dag.site.queues.get())).start()
    dag_job = dag.nodes.get(name="A1").job
    type(dag_job).objects.filter(pk=dag_job.pk).update(
        state_since=known.version.seen_at - timedelta(seconds=30)
    )

    assert _applied(known, changes_since(dag, drawing, known.version))[0] == "running"


def test_nodes_of_other_dags_do_not_appear_in_the_changes(dag: Dag) -> None:
    drawing = draw(dag)
    known = states_of_nodes(dag, drawing)
    factories.running_dag(factories.person("bob"), node_count=2)

    assert _applied(known, changes_since(dag, drawing, known.version)) == _now(dag, drawing)


def test_too_many_changes_are_not_told_one_by_one(
    dag: Dag, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawing = draw(dag)
    monkeypatch.setattr(drawing_states, "MAX_CHANGES", 1)
    pilot = factories.pilot(dag.site.queues.get())
    factories.run_job(pilot, exit_code=1)
    factories.turn()

    assert changes_since(dag, drawing, Version(0, dag.created_at)).codes is None


def test_nodes_that_run_again_are_told(dag: Dag) -> None:
    drawing = draw(dag)
    factories.run_job(factories.pilot(dag.site.queues.get()), exit_code=1)
    factories.turn()
    known = states_of_nodes(dag, drawing)
    rerun_nodes(
        dag.pk, ["A1"], actor=Actor.person(dag.owner), reason="mended", with_descendants=True
    )

    assert _words(known.codes) == ["failed", "futile", "futile"]
    assert _applied(known, changes_since(dag, drawing, known.version)) == _now(dag, drawing)
    assert "failed" not in _now(dag, drawing)


@pytest.mark.parametrize("text", ["", "12", "a-b", "1-", "-1", "1-2-3", "9" * 20 + "-1"])
def test_what_names_no_version_is_none(text: str) -> None:
    assert read_version(text) is None


def test_a_version_is_read_as_it_was_written(dag: Dag) -> None:
    version = states_of_nodes(dag, draw(dag)).version

    again = read_version(str(version))

    assert again is not None
    assert again.event_id == version.event_id
    assert timedelta() <= version.seen_at - again.seen_at < timedelta(seconds=1)
