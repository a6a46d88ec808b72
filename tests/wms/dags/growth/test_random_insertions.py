"""Random fragments added to random places: counts equal a recount, and no cycle comes to be."""

from __future__ import annotations

import io
from typing import Any

import pytest
import rustworkx
from django.db import transaction
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from tests import factories
from wms.core.actors import Actor
from wms.core.errors import InvalidInput
from wms.dags.engine.rebuild import rebuild_dag
from wms.dags.models import Dag, Edge, Node
from wms.dags.services.growth import GrowthRequest, grow_dag
from wms.dags.services.nodes import mark_nodes, rerun_nodes
from wms.dags.submission.submit import DagSubmission, submit_dag

SUBMIT_FILE = b"executable = /bin/true\nqueue\n"


@st.composite
def texts(draw: st.DrawFn, prefix: str) -> str:
    """A fragment of up to four nodes, with conditions and joins now and then."""
    names = [f"{prefix}{number}" for number in range(draw(st.integers(1, 4)))]
    lines = [f"JOB {name} x.sub" for name in names]
    for at, child in enumerate(names):
        parents = draw(st.lists(st.sampled_from(names[:at]), unique=True)) if at else []
        for parent in parents:
            when = draw(st.sampled_from(["", "", "", " WHEN (ExitCode == 0)"]))
            weak = draw(st.sampled_from(["", "", "WEAK "])) if not when else ""
            lines.append(f"{weak}PARENT {parent} CHILD {child}{when}")
        if parents and draw(st.integers(0, 4)) == 0:
            lines.append(f"JOIN {child} ANY")
    return "\n".join([*lines, ""])


def is_acyclic(dag: Dag) -> bool:
    arcs = list(Edge.objects.filter(parent__dag=dag).values_list("parent_id", "child_id"))
    places = {pk: at for at, pk in enumerate({end for arc in arcs for end in arc})}
    graph: rustworkx.PyDiGraph[None, None] = rustworkx.PyDiGraph()
    graph.add_nodes_from([None] * len(places))
    graph.add_edges_from_no_data([(places[a], places[b]) for a, b in arcs])
    return rustworkx.is_directed_acyclic_graph(graph)


class RandomInsertions(TestCase):
    """Of a DAG that waits, some nodes of which are marked, and run again, by hand."""

    @pytest.mark.slow
    @settings(max_examples=15, deadline=None)
    @given(first=texts("n"), data=st.data())
    def test_what_nodes_wait_for_equals_a_recount(self, first: str, data: st.DataObject) -> None:
        owner = factories.person("alice")
        why: dict[str, Any] = {"actor": Actor.person(owner), "reason": "test"}
        files = {"x.sub": io.BytesIO(SUBMIT_FILE)}
        dag = submit_dag(DagSubmission("a.dag", first, files), owner=owner, actor=why["actor"])
        for number in range(data.draw(st.integers(1, 4), label="growths")):
            names = list(Node.objects.filter(dag=dag).values_list("name", flat=True))
            some = st.lists(st.sampled_from(names), unique=True, max_size=3)
            self._mark(dag, data, names, why)
            before = Node.objects.filter(dag=dag).count()
            asked = GrowthRequest(
                data.draw(texts(f"g{number}x"), label="text"),
                after=data.draw(some, label="after"),
                before=data.draw(some, label="before"),
            )
            try:
                grow_dag(dag.pk, asked, **why)
            except InvalidInput:
                assert Node.objects.filter(dag=dag).count() == before

            assert rebuild_dag(dag.pk).differences == ()
            assert is_acyclic(dag)

    def _mark(self, dag: Dag, data: st.DataObject, names: list[str], why: dict[str, Any]) -> None:
        name = data.draw(st.sampled_from(names), label="marked")
        how = data.draw(st.sampled_from(["no", "done", "failed", "rerun"]), label="how")
        try:
            with transaction.atomic():
                if how == "rerun":
                    rerun_nodes(dag.pk, [name], **why)
                elif how != "no":
                    mark_nodes(dag.pk, [name], as_done=how == "done", **why)
        except InvalidInput:
            # It is in another state.
            pass
