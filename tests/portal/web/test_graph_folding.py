from __future__ import annotations

from array import array

from portal.web.graph.folding import NodeFact, folded, folds_of
from wms.dags.reading.drawing import Drawing, assign_positions


def _drawing(names: list[str], arcs: list[tuple[int, int]]) -> Drawing:
    parents, children = [a for a, _ in arcs], [b for _, b in arcs]
    levels, orders = assign_positions(len(names), parents, children)
    return Drawing(
        1, array("I", range(len(names))), levels, orders, array("I", parents), array("I", children)
    )


def _facts(names: list[str], kinds: dict[str, str] | None = None) -> list[NodeFact]:
    return [
        NodeFact(place, name, (kinds or {}).get(name, "job")) for place, name in enumerate(names)
    ]


def _groups(names: list[str], arcs: list[tuple[int, int]], fold: str, *opened: str) -> list[str]:
    drawing = _drawing(names, arcs)
    folds = folds_of(drawing, _facts(names))
    return [element.label or names[element.members[0]] for element in folded(
        drawing, folds[fold], opened=opened
    )]  # fmt: skip


def test_names_that_differ_in_a_number_are_one_group() -> None:
    names = ["prepare", "sim_001", "sim_002", "fit.1", "fit.2"]

    assert _groups(names, [(0, 1), (0, 2), (1, 3), (2, 4)], "prefix") == ["prepare", "sim", "fit"]


def test_an_open_group_shows_its_nodes() -> None:
    names = ["sim_1", "sim_2", "fit_1", "fit_2"]

    assert _groups(names, [(0, 2), (1, 3)], "prefix", "sim") == ["sim_1", "sim_2", "fit"]


def test_the_nodes_of_a_splice_are_one_group() -> None:
    names = ["begin", "left+a", "left+b", "right+a", "right+b"]
    arcs = [(0, 1), (1, 2), (0, 3), (3, 4)]

    assert _groups(names, arcs, "splice") == ["begin", "left", "right"]


def test_groups_that_would_wait_for_each_other_are_cut_by_levels() -> None:
    names = ["a1", "b1", "a2", "b2"]

    groups = _groups(names, [(0, 1), (1, 2), (2, 3)], "prefix")

    assert groups == ["a1", "b1", "a2", "b2"]


def test_sub_dags_stand_alone_between_the_levels() -> None:
    names = ["a", "b", "inner", "c", "d"]
    drawing = _drawing(names, [(0, 2), (1, 2), (2, 3), (2, 4)])

    folds = folds_of(drawing, _facts(names, {"inner": "subdag"}))
    elements = folded(drawing, folds["inner"], opened=())

    labels = {element.label or names[element.members[0]] for element in elements}
    assert labels == {"level 1", "inner", "level 3"}


def test_names_that_all_differ_are_no_way_to_fold() -> None:
    names = [f"{'x' * (number % 200 + 1)}" for number in range(200)]

    assert list(folds_of(_drawing(names, []), _facts(names))) == ["level"]
