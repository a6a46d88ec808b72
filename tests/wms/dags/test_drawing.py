from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from tests import factories
from wms.core.actors import Actor
from wms.dags.reading.drawing import assign_positions, draw, unpack_drawing
from wms.dags.submission.submit import DagSubmission, submit_dag

_ARCS = st.integers(1, 12).flatmap(
    lambda count: st.tuples(
        st.just(count),
        st.sets(
            st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(
                lambda arc: arc[0] < arc[1]
            )
        ),
    )
)


def _submitted(text: str):
    owner = factories.person("alice")
    files = {"job.sub": factories.SUBMIT_FILE.encode(), "run.sh": b"#!/bin/sh\n"}
    submission = DagSubmission(
        dag_name="drawn.dag",
        dag_text=text,
        files={path: io.BytesIO(data) for path, data in files.items()},
    )
    return submit_dag(submission, owner=owner, actor=Actor.person(owner))


@given(_ARCS)
def test_every_node_stands_below_its_parents_and_has_a_place_of_its_own(
    case: tuple[int, set[tuple[int, int]]],
) -> None:
    count, arcs = case

    levels, orders = assign_positions(count, [a for a, _ in arcs], [b for _, b in arcs])

    assert all(levels[parent] < levels[child] for parent, child in arcs)
    for level in set(levels):
        places = sorted(orders[node] for node in range(count) if levels[node] == level)
        assert places == list(range(len(places)))


def test_a_node_stands_right_below_the_lowest_of_its_parents() -> None:
    levels, _ = assign_positions(4, [0, 1, 0, 3], [1, 2, 3, 2])

    assert list(levels) == [0, 1, 2, 1]


def test_the_arcs_of_two_chains_do_not_cross() -> None:
    parents, children = [0, 1], [3, 2]

    _, orders = assign_positions(4, parents, children)

    assert (orders[0] < orders[1]) == (orders[3] < orders[2])


def test_the_nodes_that_come_last_stand_behind_all_others() -> None:
    levels, _ = assign_positions(3, [0], [1], last=[2])

    assert list(levels) == [0, 1, 2]


def test_the_drawing_of_a_dag_has_its_nodes_in_the_order_of_the_file(db: None) -> None:
    _submitted("JOB X job.sub\n")
    text = "".join(f"JOB {name} job.sub\n" for name in "ABCD") + "FINAL end job.sub\n"
    dag = _submitted(text + "PARENT A CHILD B C\nPARENT B C CHILD D\n")

    drawing = draw(dag)

    nodes = list(dag.nodes.order_by("pk"))
    assert [drawing.id_of(place) for place in range(5)] == [node.pk for node in nodes]
    assert [drawing.index_of(node.pk) for node in nodes] == [0, 1, 2, 3, 4]
    assert list(drawing.levels) == [0, 1, 1, 2, 3]
    assert list(zip(drawing.parents, drawing.children, strict=True)) == [
        (0, 1), (0, 2), (1, 3), (2, 3),
    ]  # fmt: skip


def test_nodes_of_other_dags_are_not_in_a_drawing(db: None) -> None:
    first, second = _submitted("JOB A job.sub\n"), _submitted("JOB A job.sub\n")

    drawing = draw(first)

    assert drawing.index_of(second.nodes.get().pk) is None
    assert drawing.index_of(0) is None


def test_a_packed_drawing_is_the_same_again(db: None) -> None:
    drawing = draw(_submitted("JOB A job.sub\nJOB B job.sub\nPARENT A CHILD B\n"))

    assert unpack_drawing(drawing.packed()) == drawing
    assert len(drawing.columns()) == 20 + 2 * 12


def test_a_dag_without_nodes_has_an_empty_drawing(db: None) -> None:
    dag = _submitted("JOB A job.sub\n")
    dag.nodes.all().delete()

    drawing = draw(dag)

    assert (drawing.node_count, drawing.arc_count, drawing.level_count) == (0, 0, 0)
