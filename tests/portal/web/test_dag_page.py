from __future__ import annotations

import gzip
import struct
from functools import partial
from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from portal.web.dags.page import TABS
from portal.web.nodes import table
from tests import factories
from tests.query_counts import statements_of
from wms.dags.models import Dag, Edge, Node
from wms.dags.reading.drawing_states import DRAWN

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def people(module_rows: None) -> SimpleNamespace:
    return factories.people()


@pytest.fixture(scope="module")
def chain_of_all(people: SimpleNamespace) -> Dag:
    """Three nodes, one after another, of which the second failed."""
    dag = factories.running_dag(people.alice, node_count=3, is_chain=True)
    pilot = factories.pilot(dag.site.queues.get())
    factories.run_job(pilot)
    factories.turn()
    factories.run_job(pilot, exit_code=1)
    factories.turn()
    return dag


@pytest.fixture
def chain(chain_of_all: Dag, db: None) -> Dag:
    return Dag.objects.get(pk=chain_of_all.pk)


def _page(client: Client, dag: Dag, **query: str):
    return client.get(reverse("web:dag", args=[dag.pk]), query)


def _names(answer) -> list[str]:
    return [node.name for node in answer.context["nodes"].rows]


@pytest.mark.slow
@pytest.mark.parametrize("tab", TABS)
def test_every_tab_is_a_page_with_an_address(alice: Client, chain: Dag, tab: str) -> None:
    answer = _page(alice, chain, tab=tab)

    assert answer.status_code == 200
    assert f'id="tab-{tab}"' in answer.content.decode()
    assert answer.context["tab"].name == tab


def test_a_tab_that_there_is_not_is_a_page_that_says_so(alice: Client, chain: Dag) -> None:
    assert _page(alice, chain, tab="gantt").status_code == 404


@pytest.mark.slow
def test_each_tab_asks_as_often_for_many_nodes_as_for_few(
    alice: Client, people: SimpleNamespace
) -> None:
    few = factories.running_dag(people.alice, node_count=3, is_chain=True)
    many = factories.running_dag(people.alice, node_count=70, is_chain=True)
    counts: dict[str, list[int]] = {tab: [] for tab in TABS}
    for tab, found in counts.items():
        for dag in (few, many):
            _page(alice, dag, tab=tab)
            found.append(len(statements_of(partial(_page, alice, dag, tab=tab))))

    assert {tab: many for tab, (_, many) in counts.items()} == {
        tab: few for tab, (few, _) in counts.items()
    }


def test_the_page_says_where_the_dag_is_why_and_where_it_was(alice: Client, chain: Dag) -> None:
    page = _page(alice, factories.running_dag(chain.owner)).content.decode()

    assert f'id="dag-site" href="{reverse("web:site", args=["UW"])}"' in page
    assert 'id="dag-why-here"' in page


def test_a_dag_that_does_not_move_leads_to_its_jobs_that_wait_and_they_to_why(
    alice: Client, people: SimpleNamespace
) -> None:
    dag = factories.running_dag(people.alice, node_count=2)

    page = _page(alice, dag)
    jobs = alice.get(reverse("web:jobs"), {"dag": dag.pk, "state": "waiting"})

    assert f'href="/jobs/?dag={dag.pk}&amp;state=waiting"' in page.content.decode()
    assert len(jobs.context["listing"].page.rows) == 2
    assert "Does nothing move?" not in _page(alice, factories.dag(people.alice)).content.decode()


def test_the_graph_is_not_drawn_anew_when_the_page_refreshes(alice: Client, chain: Dag) -> None:
    address = reverse("web:dag", args=[chain.pk]) + "?tab=graph"

    part = alice.get(address, headers={"HX-Request": "true", "HX-Target": "live"})

    assert "scene" not in part.context
    assert 'id="tab-graph"' in part.content.decode()


def test_a_small_dag_is_drawn_whole_with_links_to_its_nodes(alice: Client, chain: Dag) -> None:
    answer = _page(alice, chain, tab="graph")

    scene = answer.context["scene"]
    assert [(box.name, box.words) for box in scene.boxes] == [
        ("A1", "done"), ("A2", "failed"), ("A3", "futile"),
    ]  # fmt: skip
    assert len(scene.wires) == 2
    node = chain.nodes.get(name="A2")
    assert reverse("web:node", args=[chain.pk, node.pk]) in answer.content.decode()


@pytest.mark.slow
def test_conditions_joins_and_gates_are_drawn_apart(alice: Client, people: SimpleNamespace) -> None:
    dag = factories.deciding_dag(people.alice)

    answer = _page(alice, dag, tab="graph")

    scene, text = answer.context["scene"], answer.content.decode()
    boxes = {box.name: box for box in scene.boxes}
    drawn = {(wire.parent, wire.child): wire for wire in scene.wires}
    held = drawn[boxes["A1"].number, boxes["B"].number]
    ruled_out = drawn[boxes["A1"].number, boxes["C"].number]
    assert (held.label, held.outcome, ruled_out.outcome) == (
        "(ExitCode == 0)",
        "holds",
        "ruled-out",
    )
    assert ruled_out.condition == "(ExitCode > 0) is false, with ExitCode = 0"
    assert drawn[boxes["g"].number, boxes["M"].number].condition == ""
    assert boxes["C"].words == "skipped"
    assert (boxes["M"].join, boxes["M"].more) == ("any", ", needs any of its 3 arcs")
    assert boxes["g"].more == " (gate)"
    assert f'<path class="frame" d="{boxes["g"].corners}">' in text
    assert "Six corners: a gate" in text


def test_a_node_is_found_in_the_graph(alice: Client, chain: Dag) -> None:
    scene = _page(alice, chain, tab="graph", q="A2").context["scene"]

    assert [box.name for box in scene.boxes if box.is_found] == ["A2"]


def test_the_neighbourhood_of_a_node_is_drawn_to_a_depth(alice: Client, chain: Dag) -> None:
    node = chain.nodes.get(name="A1")

    near = _page(alice, chain, tab="graph", node=str(node.pk), depth="1").context["scene"]

    assert [box.name for box in near.boxes] == ["A1", "A2"]
    assert _page(alice, chain, tab="graph", node="1" * 12).status_code == 404


def _wide(people: SimpleNamespace, count: int) -> Dag:
    """A node before many others of some kinds; rows by hand, for it is many."""
    dag = factories.dag(people.alice, node_count=1)
    first = dag.nodes.get()
    names = [f"{'sim' if number % 2 else 'fit'}_{number}" for number in range(2, count + 1)]
    Node.objects.bulk_create(
        Node(dag=dag, name=name, ordinal=number) for number, name in enumerate(names, start=2)
    )
    others = dag.nodes.exclude(pk=first.pk).values_list("pk", flat=True)
    Edge.objects.bulk_create(Edge(parent=first, child_id=pk) for pk in others)
    Dag.objects.filter(pk=dag.pk).update(node_count=count)
    dag.refresh_from_db()
    return dag


def test_a_larger_dag_is_folded_and_a_group_opens_by_its_address(
    alice: Client, people: SimpleNamespace
) -> None:
    dag = _wide(people, 401)

    folded = _page(alice, dag, tab="graph").context
    opened = _page(alice, dag, tab="graph", fold="prefix", open="sim").context["scene"]

    assert folded["size"] == "folded"
    assert [(box.name, box.count) for box in folded["scene"].boxes] == [
        ("A1", 1), ("fit", 200), ("sim", 200),
    ]  # fmt: skip
    assert len([box for box in opened.boxes if not box.is_group]) == 101
    assert "100 more of sim" in [box.name for box in opened.boxes]


def test_many_arcs_make_a_dag_large(alice: Client, people: SimpleNamespace) -> None:
    dag = factories.dag(people.alice, node_count=70)
    nodes = list(dag.nodes.order_by("pk").values_list("pk", flat=True))
    Edge.objects.bulk_create(Edge(parent_id=a, child_id=b) for a in nodes[:35] for b in nodes[35:])

    assert _page(alice, dag, tab="graph").context["size"] == "folded"


@pytest.mark.slow
def test_a_very_large_dag_is_a_map_of_levels_and_cells(
    alice: Client, people: SimpleNamespace
) -> None:
    dag = _wide(people, 5001)

    answer = _page(alice, dag, tab="graph")

    columns = answer.context["map"].columns
    assert len(_page(alice, dag).context["map"].columns) == 2
    assert [(column.total, column.words) for column in columns] == [
        (1, "0 of 1 done, 1 waiting"), (5000, "0 of 5000 done, 5000 waiting"),
    ]  # fmt: skip
    assert 'id="graph-canvas"' in answer.content.decode()


def test_the_places_of_all_nodes_are_twelve_bytes_each(alice: Client, chain: Dag) -> None:
    answer = alice.get(
        reverse("web:graph-places", args=[chain.pk]), headers={"Accept-Encoding": "gzip"}
    )

    content = gzip.decompress(answer.content)
    first, _, nodes, arcs = struct.unpack_from("<QIII", content)
    columns = struct.unpack_from("<9I", content, 20)
    assert (first, nodes, arcs) == (chain.nodes.order_by("pk")[0].pk, 3, 2)
    assert columns == (0, 1, 2, 0, 1, 2, 0, 0, 0)
    again = alice.get(
        reverse("web:graph-places", args=[chain.pk]), headers={"If-None-Match": answer["ETag"]}
    )
    assert again.status_code == 304


def test_the_states_are_a_byte_each_and_then_only_what_changed(
    alice: Client, people: SimpleNamespace
) -> None:
    dag = factories.running_dag(people.alice, node_count=2, is_chain=True)
    states = alice.get(reverse("web:graph-states", args=[dag.pk]))
    since = {"since": states["X-Graph-Version"]}
    factories.run_job(factories.pilot(dag.site.queues.get()))
    factories.turn()

    changes = alice.get(reverse("web:graph-changes", args=[dag.pk]), since).json()

    assert [DRAWN[code] for code in states.content] == ["submitted", "waiting"]
    told = {int(node): DRAWN[int(c)] for c, nodes in changes["nodes"].items() for node in nodes}
    assert told == {0: "done", 1: "submitted"}


def test_one_cell_tells_its_node_and_its_neighbours(alice: Client, chain: Dag) -> None:
    told = alice.get(reverse("web:graph-node", args=[chain.pk, 1])).json()
    names = alice.get(reverse("web:graph-names", args=[chain.pk]), {"at": "0,2,99,x"}).json()

    assert (told["name"], told["parents"], told["children"]) == ("A2", [0], [2])
    assert "exit code 1" in told["reason"]
    assert names == {"names": {"0": "A1", "2": "A3"}}
    assert alice.get(reverse("web:graph-node", args=[chain.pk, 3])).status_code == 404


def test_the_table_answers_what_fails_and_what_will_never_run(alice: Client, chain: Dag) -> None:
    chain.nodes.filter(name="A1").update(state="submitted", retry_number=1)

    assert _names(_page(alice, chain, tab="nodes", show="failing")) == ["A1"]
    assert _names(_page(alice, chain, tab="nodes", show="never")) == ["A3"]
    assert _page(alice, chain, tab="nodes", show="lost").status_code == 404


def test_the_table_answers_what_holds_up_most_others(alice: Client, chain: Dag) -> None:
    answer = _page(alice, chain, tab="nodes", show="blocking")

    assert [(node.name, note) for node, note in answer.context["lines"]] == [("A2", "1 wait")]


def test_the_table_answers_what_is_on_the_longest_path(
    alice: Client, people: SimpleNamespace
) -> None:
    dag = factories.running_dag(people.alice, node_count=3, is_chain=True)

    assert _names(_page(alice, dag, tab="nodes", show="critical")) == ["A1", "A2", "A3"]


def test_the_table_is_narrowed_by_level_state_and_name(alice: Client, chain: Dag) -> None:
    assert _names(_page(alice, chain, tab="nodes", level="2")) == ["A2"]
    assert _names(_page(alice, chain, tab="nodes", level="2", nodes="done")) == []
    assert _names(_page(alice, chain, tab="nodes", q="a3")) == ["A3"]
    assert _page(alice, chain, tab="nodes", level="0").status_code == 404


def test_nodes_in_an_order_of_their_own_come_page_by_page(
    alice: Client, people: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "_SHOWN", 2)
    dag = factories.running_dag(people.alice, node_count=3)

    first = _page(alice, dag, tab="nodes", level="1")
    second = alice.get(reverse("web:dag", args=[dag.pk]) + first.context["nodes"].following)

    assert (_names(first), _names(second)) == (["A1", "A2"], ["A3"])
    assert second.context["nodes"].following == ""


def test_the_timeline_shows_what_each_of_few_nodes_did(alice: Client, chain: Dag) -> None:
    rows = _page(alice, chain, tab="timeline").context["rows"]

    did = {row.node.name: [span.state_word for _, _, span in spans] for row, spans in rows}
    assert did["A1"][0] == "ready"
    assert "submitted" in did["A1"]
    assert did["A3"] == []


def test_the_timeline_of_many_nodes_shows_levels(alice: Client, people: SimpleNamespace) -> None:
    dag = _wide(people, 202)
    Dag.objects.filter(pk=dag.pk).update(matched_at=timezone.now())

    context = _page(alice, dag, tab="timeline").context
    chosen = _page(alice, dag, tab="timeline", q="sim_3").context

    assert [(row.label, row.ended, row.total) for row in context["level_rows"]] == [
        ("Level 1", 0, 1), ("Level 2", 0, 201),
    ]  # fmt: skip
    assert {row.node.name for row, _ in chosen["rows"]} == set(
        dag.nodes.filter(name__contains="sim_3").values_list("name", flat=True)
    )


def test_events_come_page_by_page_and_none_is_shown_twice(
    alice: Client, people: SimpleNamespace
) -> None:
    dag = factories.running_dag(people.alice, node_count=70)
    first = _page(alice, dag, tab="events")
    second = alice.get(reverse("web:dag", args=[dag.pk]) + first.context["older"])

    shown = [
        (bool(event.subject), event.pk)
        for answer in (first, second)
        for event in answer.context["events"]
    ]
    assert len(shown) == len(set(shown))
    assert len(shown) == dag.events.count() + dag.node_events.count()
    assert second.context["older"] == ""


def test_a_file_is_found_by_a_part_of_its_name(alice: Client, chain: Dag) -> None:
    found = _page(alice, chain, tab="files", q="out.A1").context["files"]

    assert [file.path for file in found] == ["out.A1.txt"]


def test_the_page_of_a_rescue_shows_what_would_run(alice: Client, chain: Dag) -> None:
    address = reverse("web:rescue", args=[chain.pk])

    newest = alice.get(address).context["preview"]
    afresh = alice.get(address, {"start": "afresh"}).context["preview"]
    missing = alice.get(address, {"start": "8"})

    assert [node.name for node in newest.nodes] == ["A2", "A3"]
    assert (afresh.total, afresh.done_total) == (3, 1)
    assert "analysis.dag.rescue008" in missing.content.decode()


@pytest.mark.slow
def test_who_may_not_steer_sees_no_buttons_on_any_tab(
    people: SimpleNamespace, browser_of, chain: Dag
) -> None:
    vera = browser_of(people.vera)

    for tab in TABS:
        page = _page(vera, chain, tab=tab).content.decode()
        assert 'class="steer"' not in page
        assert 'id="pick-' not in page
