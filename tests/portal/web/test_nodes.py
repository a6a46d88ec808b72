"""Node page, and actions on nodes from there and from the list."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse

from tests import factories
from wms.core.models import User
from wms.dags.models import Dag, Node, NodeEvent, ScriptRun
from wms.jobs.content.blobs import store_bytes


@pytest.fixture(scope="module")
def people(module_rows: None) -> SimpleNamespace:
    return factories.people()


@pytest.fixture(scope="module")
def dag_of_all(people: SimpleNamespace) -> Dag:
    """A running DAG, A1 before A2 before A3."""
    return factories.running_dag(people.alice, node_count=3, is_chain=True)


@pytest.fixture
def dag(dag_of_all: Dag, db: None) -> Dag:
    return Dag.objects.get(pk=dag_of_all.pk)


def _node(dag: Dag, name: str) -> Node:
    return dag.nodes.get(name=name)


def _page(client: Client, dag: Dag, name: str) -> str:
    answer = client.get(reverse("web:node", args=[dag.pk, _node(dag, name).pk]))
    assert answer.status_code == 200
    return str(answer.content.decode())


def _steer(client: Client, dag: Dag, event: str, nodes: str, **data: str):
    address = reverse("web:steer-nodes", args=[dag.pk, event])
    return client.post(address, {"nodes": nodes, "reason": "because", **data})


def _fail(dag: Dag) -> None:
    factories.run_job(factories.pilot(dag.site.queues.get()), exit_code=1)
    factories.turn()


@pytest.mark.slow
def test_conditions_are_on_the_pages_of_their_nodes_and_in_the_graph(
    alice: Client, people: SimpleNamespace
) -> None:
    commands = "PARENT A1 CHILD A2 WHEN (ExitCode == 0)\n"
    dag = factories.running_dag(people.alice, node_count=2, commands=commands)

    for name in ("A1", "A2"):
        assert "<code>(ExitCode == 0)</code>" in _page(alice, dag, name)
    graph = alice.get(reverse("web:dag", args=[dag.pk]), {"tab": "graph"})
    [wire] = graph.context["scene"].wires
    assert (wire.condition, wire.label) == ("when (ExitCode == 0)", "(ExitCode == 0)")


def test_a_page_tells_what_the_node_waits_for_and_what_is_around_it(
    alice: Client, dag: Dag
) -> None:
    page = _page(alice, dag, "A2")

    assert "1 parent " in page
    for other in ("A1", "A3"):
        assert reverse("web:node", args=[dag.pk, _node(dag, other).pk]) in page


def test_a_page_has_the_jobs_and_the_runs_of_scripts_with_their_output(
    alice: Client, dag: Dag
) -> None:
    node = _node(dag, "A1")
    run = ScriptRun.objects.create(
        dag=dag, node=node, kind="post", retry_number=0, executable="judge.sh",
        arguments=["<b>"], state="ended", exit_code=2, output=store_bytes(b"no <good>\n"),
    )  # fmt: skip

    page = _page(alice, dag, "A1")
    output = alice.get(reverse("web:script-output", args=[dag.pk, run.pk]))

    assert reverse("web:job", args=[node.job_id]) in page
    assert "no &lt;good&gt;" in page
    assert "judge.sh &lt;b&gt;" in page
    assert b"".join(output.streaming_content) == b"no <good>\n"


def test_a_node_of_another_dag_is_a_page_that_says_so(alice: Client, dag: Dag) -> None:
    other = factories.dag(dag.owner, name="other.dag")

    answer = alice.get(reverse("web:node", args=[other.pk, _node(dag, "A1").pk]))

    assert answer.status_code == 404


def test_only_what_can_be_done_with_the_node_is_offered(
    alice: Client, dag: Dag, people: SimpleNamespace, browser_of: Callable[[User], Client]
) -> None:
    _fail(dag)
    address = reverse("web:node", args=[dag.pk, _node(dag, "A1").pk])

    offered = [each.action.name for each in alice.get(address).context["steerings"]]
    to_bob = browser_of(people.bob).get(address).context["steerings"]

    # The DAG has ended: nothing can be marked any more.
    assert offered == ["rerun", "retry"]
    assert to_bob == []


def test_a_node_is_retried_and_what_it_made_futile_waits_again(alice: Client, dag: Dag) -> None:
    _fail(dag)

    answer = _steer(alice, dag, "retry", "A1")

    assert answer.status_code == 302
    factories.turn()
    assert list(dag.nodes.order_by("ordinal").values_list("state", flat=True)) == [
        "submitted",
        "waiting",
        "waiting",
    ]
    event = NodeEvent.objects.filter(node__name="A1", event="rerun").get()
    assert (event.actor, event.reason) == ("alice", "because")


def test_before_a_rerun_one_sees_what_runs_again(alice: Client, dag: Dag) -> None:
    factories.finish(dag)
    address = reverse("web:steer-nodes", args=[dag.pk, "rerun"])

    answer = alice.get(f"{address}?node={_node(dag, 'A2').pk}")

    assert answer.context["below_ended"] == 1
    assert answer.context["reopens"] is True
    assert answer.context["names"] == "A2"


def test_nodes_in_another_state_are_left_out_with_the_reason(alice: Client, dag: Dag) -> None:
    address = reverse("web:steer-nodes", args=[dag.pk, "mark-done"])

    answer = alice.get(f"{address}?node={_node(dag, 'A1').pk}&node={_node(dag, 'A2').pk}")

    assert [node.name for node in answer.context["nodes"]] == ["A2"]
    assert [(node.name, why) for node, why in answer.context["left"]] == [("A1", "it is submitted")]


def test_all_nodes_of_a_state_are_chosen_at_once(alice: Client, people: SimpleNamespace) -> None:
    dag = factories.running_dag(people.alice, node_count=3)
    dag.nodes.exclude(name="A2").update(state="failed")
    address = reverse("web:steer-nodes", args=[dag.pk, "retry"])

    answer = alice.get(f"{address}?state=failed")

    assert answer.context["names"].split() == ["A1", "A3"]


@pytest.mark.parametrize("query", ["?state=nowhere", "?node=x", "?node=1e5"])
def test_a_selection_that_is_none_is_not_found(alice: Client, dag: Dag, query: str) -> None:
    address = reverse("web:steer-nodes", args=[dag.pk, "rerun"])

    assert alice.get(f"{address}{query}").status_code == 404


def test_a_state_that_no_node_is_in_any_more_is_told(alice: Client, dag: Dag) -> None:
    address = reverse("web:steer-nodes", args=[dag.pk, "rerun"])

    page = alice.get(address, {"state": "failed"}).content.decode()

    assert 'id="nothing"' in page
    assert "tick some" not in page


def test_an_unknown_change_is_not_found(alice: Client, dag: Dag) -> None:
    assert alice.get(reverse("web:steer-nodes", args=[dag.pk, "explode"])).status_code == 404


def test_nodes_are_changed_by_lines_of_vars(alice: Client, dag: Dag) -> None:
    _steer(
        alice,
        dag,
        "change",
        "A2\nA3",
        variables="x = 1\n\nname=a = b",
        priority="5",
        max_retries="",
    )

    for name in ("A2", "A3"):
        node = _node(dag, name)
        assert node.variables == {"number": name[1:], "x": "1", "name": "a = b"}
        assert (node.priority, node.max_retries) == (5, 0)


@pytest.mark.parametrize(
    ("event", "nodes", "data", "words"),
    [
        ("mark-done", "A2", {"reason": " "}, "Give a reason"),
        ("mark-failed", "A1", {}, "it is submitted"),
        ("rerun", "Z", {}, "the DAG has no node Z"),
        ("rerun", "", {}, "name 1 to"),
        ("change", "A2", {}, "Nothing is to be changed"),
        ("change", "A2", {"variables": "no sign"}, "VARS, line 1: must be name = value"),
        ("change", "A2", {"priority": "high"}, "Enter a whole number"),
        ("change", "A2", {"variables": "queue_x = 1"}, "queue_x"),
    ],
)
def test_a_refused_change_comes_back_with_why(
    alice: Client, dag: Dag, event: str, nodes: str, data: dict[str, str], words: str
) -> None:
    answer = _steer(alice, dag, event, nodes, **data)

    assert answer.status_code == 400
    assert words in answer.content.decode().replace("&#x27;", "'")


def test_a_marked_node_lets_its_child_go_on(alice: Client, dag: Dag) -> None:
    _steer(alice, dag, "mark-done", "A2")
    factories.run_job(factories.pilot(dag.site.queues.get()))
    factories.turn()

    assert _node(dag, "A2").state == "done"
    assert _node(dag, "A3").state == "submitted"


def test_the_list_offers_the_changes_to_who_may_make_them(
    alice: Client, dag: Dag, people: SimpleNamespace, browser_of: Callable[[User], Client]
) -> None:
    address = reverse("web:dag", args=[dag.pk]) + "?tab=nodes"

    mine = alice.get(address).content.decode()
    theirs = browser_of(people.bob).get(address).content.decode()

    assert f'id="pick-{_node(dag, "A1").pk}"' in mine
    assert 'id="pick-' not in theirs


@pytest.mark.slow
def test_a_gate_is_opened_on_its_page_by_those_whom_it_names_and_not_by_an_old_form(
    alice: Client, people: SimpleNamespace, browser_of: Callable[[User], Client]
) -> None:
    bob, charlie = browser_of(people.bob), browser_of(people.charlie)
    commands = "GATE g BY user:bob DEADLINE 2d\nPARENT g CHILD A1\n"
    dag = factories.running_dag(people.alice, node_count=1, commands=commands)
    gate = _node(dag, "g")
    address = reverse("web:steer-nodes", args=[dag.pk, "open-gate"])

    assert "user:bob" in _page(alice, dag, "g")
    assert address not in _page(alice, dag, "g")
    of_dag = alice.get(reverse("web:dag", args=[dag.pk])).content.decode()
    assert f'id="gate-{gate.pk}"' in of_dag
    assert address in _page(bob, dag, "g")
    assert charlie.get(f"{address}?node={gate.pk}").status_code == 403
    seen = re.search(r'name="seen" value="(\w+)"', _page(bob, dag, "g"))
    assert seen is not None

    assert _steer(charlie, dag, "open-gate", "g").status_code == 403
    assert _steer(bob, dag, "open-gate", "g", seen="v0").status_code == 409
    assert _steer(bob, dag, "open-gate", "g", seen=seen[1]).status_code == 302

    assert _node(dag, "g").state == "done"
    assert _steer(bob, dag, "open-gate", "g").status_code == 409
    api = reverse("api:dag-nodes-open-gate", args=[dag.pk])
    again = bob.post(api, {"nodes": ["g"], "reason": "yes"}, content_type="application/json")
    assert (again.status_code, again.json()["skipped"]) == (200, 1)
