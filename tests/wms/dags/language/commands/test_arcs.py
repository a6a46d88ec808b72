from __future__ import annotations

from array import array
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wms.dags.language.parsing import arcs_of, faults, read, well_read
from wms.dags.language.graph_shape import find_cycle, graph_of
from wms.dags.language.size_limits import SizeLimits
from wms.dags.language.spec import Arcs

NODES = "\n".join(f"JOB N{n} s" for n in range(6)) + "\n"
names = st.lists(st.integers(0, 5), min_size=1, max_size=3)


def test_every_parent_is_before_every_child() -> None:
    dag = well_read("JOB A a\nJOB B b\nJOB C c\nJOB D d\nparent A B child C D")

    assert arcs_of(dag) == {("A", "C"), ("A", "D"), ("B", "C"), ("B", "D")}


def test_repeated_arcs_collapse() -> None:
    dag = well_read("JOB A a\nJOB B b\nPARENT A CHILD B\nPARENT A A CHILD B B\nPARENT A CHILD B")

    assert len(dag.arcs) == 1
    assert dag.statistics.arcs == 1


@given(st.lists(st.tuples(names, names, st.booleans()), max_size=12))
def test_each_pair_is_there_once_and_the_strong_arc_wins(statements) -> None:
    lines, expected = [], {}
    for above, below, is_weak in statements:
        parents, children = (" ".join(f"N{n}" for n in each) for each in (above, below))
        lines.append(f"{'WEAK ' if is_weak else ''}PARENT {parents} CHILD {children}")
        for pair in ((p, c) for p in above for c in below):
            expected[pair] = expected.get(pair, True) and is_weak

    arcs = list(read(NODES + "\n".join(lines)).arcs)

    assert {(arc.parent, arc.child): arc.is_weak for arc in arcs} == expected
    assert len(arcs) == len(expected)


@pytest.mark.slow
def test_a_product_within_the_bound_is_made_whole() -> None:
    above, below = ([f"{side}{n}" for n in range(1000)] for side in "PC")
    text = "\n".join(f"JOB {name} s" for name in above + below)

    dag = well_read(f"{text}\nPARENT {' '.join(above)} CHILD {' '.join(below)}")

    assert len(dag.arcs) == 1_000_000
    assert dag.statistics.widths == [1000, 1000]


def test_a_product_beyond_the_bound_is_refused_at_its_line() -> None:
    limits = SizeLimits(max_arcs=25)
    text = f"{NODES}PARENT N0 N1 CHILD N2 N3\nPARENT N0 N1 N2 N3 CHILD N4 N5\n"

    assert len(well_read(text, limits=limits).arcs) == 12
    more = f"PARENT N0 N1 N2 CHILD N3 N4 N5\n{text[len(NODES) :]}"
    ((_, line, message),) = faults(text + more, limits=limits)
    assert line == 11
    assert "25 arcs" in message
    arc = "PARENT N0 CHILD N1\n"
    assert len(faults(NODES + arc * 26, limits=limits)) == 1


def test_the_shape_counts_the_nodes_that_have_a_place() -> None:
    dag = well_read(
        "JOB A a\nJOB B b\nJOB C c\nJOB D d\nFINAL F f\nSERVICE S s\nPROVISIONER P p\n"
        "PARENT A CHILD B C\nPARENT B CHILD D\nWEAK PARENT C CHILD D"
    )

    shape = dag.statistics
    assert (shape.nodes, shape.arcs, shape.height, shape.width) == (4, 4, 3, 2)
    assert shape.widths == [1, 2, 1]
    assert shape.cycle == []


@pytest.mark.parametrize(("text", "widths"), [("", []), ("FINAL F f", []), ("JOB A a", [1])])
def test_a_dag_may_be_small(text: str, widths: list[int]) -> None:
    shape = well_read(text).statistics

    assert shape.widths == widths
    assert shape.height == len(widths)


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=30))
def test_a_cycle_is_found_if_there_is_one(edges: list[tuple[int, int]]) -> None:
    arcs = Arcs(array("I", [a for a, _ in edges]), array("I", [b for _, b in edges]))
    arcs.weak = bytearray(len(edges))
    reached = {n: {b for a, b in edges if a == n} for n in range(9)}
    for _ in range(9):
        for n in range(9):
            reached[n] |= {far for near in reached[n] for far in reached[near]}
    on_cycles = [n for n in range(9) if n in reached[n]]

    path = find_cycle(graph_of(9, arcs))

    assert bool(path) == bool(on_cycles)
    if path:
        assert path[0] == path[-1] == on_cycles[0]
        assert set(pairwise(path)) <= set(edges)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=20))
def test_the_height_is_the_longest_way(edges: list[tuple[int, int]]) -> None:
    edges = [(min(edge), max(edge)) for edge in edges if edge[0] != edge[1]]
    depth = dict.fromkeys(range(6), 0)
    for parent, child in sorted(edges):
        depth[child] = max(depth[child], depth[parent] + 1)

    dag = well_read(NODES + "\n".join(f"PARENT N{a} CHILD N{b}" for a, b in edges))

    levels = list(depth.values())
    assert dag.statistics.widths == [levels.count(level) for level in range(max(levels) + 1)]


@pytest.mark.parametrize("line", ["PARENT S CHILD E", "PARENT E CHILD S", "PARENT S S S CHILD E"])
def test_the_nodes_of_splices_are_counted_where_no_arc_is_made_of_them(line: str) -> None:
    files = {"s.dag": NODES, "e.dag": "# nothing"}
    text = "SPLICE S s.dag\nSPLICE E e.dag\n"
    size = NODES.count("JOB")
    limits = SizeLimits(max_arcs=3 * size)

    assert len(well_read(f"{text}{line}\n{line}\n", files, limits=limits).arcs) == 0
    ((_, _, message),) = faults(text + f"{line}\n" * 1000, files, limits=limits)
    assert f"{6 * size} nodes" in message


def test_a_further_child_among_the_children_says_nothing() -> None:
    dag = well_read("JOB A a\nJOB B b\nJOB C c\nPARENT A CHILD B child C\n")

    assert arcs_of(dag) == {("A", "B"), ("A", "C")}
