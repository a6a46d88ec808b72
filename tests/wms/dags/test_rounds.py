"""A round's counters: in memory with each move, in the DAG's row when the round is left."""

from __future__ import annotations

import pytest

from tests.wms.dags.driving import NOW, assert_log_agrees, match
from wms.dags.engine.round import ENGINE, Round, move_in_each
from wms.dags.models import Dag, Node

pytestmark = pytest.mark.django_db


@pytest.fixture
def dag(submit, make_site) -> Dag:
    """One node is submitted, its child waits."""
    make_site("site-a", max_matches=5)
    return match(submit("JOB A step.sub\nJOB B step.sub\nPARENT A CHILD B\nCATEGORY A heavy"))


def _ids(dag: Dag, name: str) -> list[int]:
    return [Node.objects.get(dag=dag, name=name).pk]


def test_counters_follow_in_memory_at_once_and_in_the_row_at_the_end(dag: Dag) -> None:
    row = Dag.objects.filter(pk=dag.pk).values_list("submitted_count", "done_count", "ready_count")
    with Round(dag, NOW) as round_:
        round_.move("succeed", _ids(dag, "A"))
        round_.release(_ids(dag, "A"), rank=round_.number)

        assert (dag.submitted_count, dag.done_count, dag.ready_count) == (0, 1, 1)
        assert row.get() == (1, 0, 0)

    assert row.get() == (0, 1, 1)
    assert Dag.objects.get(pk=dag.pk).category_counts == {"heavy": 0}
    assert_log_agrees(dag)


def test_what_is_written_before_a_row_is_handed_over_is_not_counted_twice(dag: Dag) -> None:
    with Round(dag, NOW) as round_:
        round_.move("succeed", _ids(dag, "A"))
        with round_.handed_over():
            Dag.objects.filter(pk=dag.pk).update(state_reason="somebody else")
        assert (dag.state_reason, dag.done_count) == ("somebody else", 1)
        round_.move("make ready", _ids(dag, "B"), ready_rank=round_.number)

    dag.refresh_from_db()
    assert (dag.submitted_count, dag.done_count, dag.ready_count) == (0, 1, 1)


def test_a_round_that_fails_writes_no_counters(dag: Dag) -> None:
    number = dag.round_number

    with pytest.raises(ZeroDivisionError), Round(dag, NOW):
        raise ZeroDivisionError

    assert Dag.objects.get(pk=dag.pk).round_number == number


def test_nodes_of_several_dags_are_moved_with_the_counters_of_each(dag: Dag, submit) -> None:
    other = match(submit("JOB A step.sub\nJOB Z step.sub"))
    ids = [*_ids(dag, "A"), *_ids(other, "A")]

    moved = move_in_each([dag, other], "recall", ids, actor=ENGINE, reason="test", ready_rank=0)

    assert sorted(moved) == sorted(ids)
    for each in Dag.objects.all():
        assert each.ready_count == 1
        assert_log_agrees(each)
