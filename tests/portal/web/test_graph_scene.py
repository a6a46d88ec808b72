"""Lines of the drawing of a DAG: what is told of the conditions of the arcs that they stand for."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.test import Client

from portal.web.graph.folding import Element, NodeFact
from portal.web.graph.scene import BoxAddresses, Wire, scene_of
from tests import factories
from wms.dags.joins.selectors import DrawnCondition

_ADDRESSES = BoxAddresses(node=str, group=lambda element: element.key)
_FACTS = {at: NodeFact(at, f"n{at}", "job", join=(2, 3) if at == 5 else None) for at in range(6)}


def _wires(
    elements: list[Element], conditions: dict[tuple[int, int], DrawnCondition]
) -> list[Wire]:
    """Lines from the nodes 0 to 2 to 3 to 5, of which the first three arcs may have conditions."""
    arcs = [(0, 3), (1, 4), (2, 5)]
    scene = scene_of(elements, arcs, _FACTS, bytes(6), _ADDRESSES, conditions=conditions)
    return list(scene.wires)


def test_one_arc_has_its_expression_cut_beside_it_and_whole_in_its_title() -> None:
    long = "(Yield > 0.8 && ExitCode == 0 && Attempts < 3)"
    nodes = [Element([at]) for at in range(6)]

    first, second, third = _wires(
        nodes,
        {
            (0, 3): DrawnCondition(long),
            (1, 4): DrawnCondition("(true)", holds=False, reason="why not"),
        },
    )

    assert first.label.count("…") == 1
    assert long in first.condition
    assert (first.is_thick, first.outcome) == (False, "")
    assert (second.condition, second.outcome) == ("why not", "ruled-out")
    assert (third.label, third.condition) == ("", "")


def test_a_line_between_groups_tells_how_many_arcs_have_conditions() -> None:
    groups = [Element([0, 1, 2], "first", "first"), Element([3, 4, 5], "second", "second")]
    holds, open_yet = DrawnCondition("(a)", holds=True, reason="a is 1"), DrawnCondition("(b)")

    [mixed] = _wires(groups, {(0, 3): holds, (1, 4): open_yet})
    [settled] = _wires(groups, {(0, 3): holds})

    assert mixed.is_thick
    assert mixed.condition == "2 of 3 arcs have conditions: a is 1; when (b)"
    assert (mixed.label, mixed.outcome, settled.outcome) == ("", "", "holds")


def test_a_join_of_some_arcs_has_its_sign_and_its_words() -> None:
    scene = scene_of([Element([5])], [], _FACTS, bytes(6), _ADDRESSES)

    [box] = scene.boxes
    assert (box.join, box.more) == ("2/3", ", needs 2 of its 3 arcs")
    assert scene.has_joins


@pytest.mark.slow
def test_the_map_tells_the_join_and_the_conditions_of_a_node(people: SimpleNamespace) -> None:
    dag = factories.deciding_dag(people.alice)
    client = Client()
    client.force_login(people.alice)
    names = list(dag.nodes.order_by("pk").values_list("name", flat=True))

    def told(name: str) -> dict:
        return client.get(f"/dags/{dag.pk}/graph/nodes/{names.index(name)}").json()

    first, join, plain = told("A1"), told("M"), told("g")
    assert first["conditional"] == [names.index("B"), names.index("C")]
    assert [each.partition(":")[0] for each in first["conditions"]] == ["B", "C"]
    assert (join["join"], join["conditional"]) == ("needs any of its 3 arcs", [])
    assert (plain["join"], plain["conditions"]) == ("", [])
