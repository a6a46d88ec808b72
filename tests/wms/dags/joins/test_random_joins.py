"""Random DAGs with conditions and joins: engine, log and a simple evaluator agree."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from tests.wms.dags.joins.reference_joins import JoinNode, dags_with_joins, states_of
from wms.dags.simulation.behaviour import read_behaviour
from wms.dags.simulation.conformance.cases import Case, Submission
from wms.dags.simulation.conformance.runner import run_case
from wms.dags.simulation.options import read_options
from wms.dags.simulation.testbed import create_testbed


class RandomJoins(TestCase):
    """The states do not depend on the order in which nodes end."""

    @pytest.mark.slow
    @settings(max_examples=8, deadline=None)
    @given(nodes=dags_with_joins(), data=st.data())
    def test_engine_and_log_and_evaluator_agree(
        self, nodes: list[JoinNode], data: st.DataObject
    ) -> None:
        states, is_success = states_of(nodes)
        durations = {node.name: data.draw(st.integers(1, 9), label=node.name) for node in nodes}
        case = Case(
            "random",
            [
                Submission(
                    behaviour=read_behaviour({node.name: [node.code] for node in nodes}, durations),
                    options=read_options({}),
                    expect={
                        "dag_state": "success" if is_success else "failed",
                        "nodes": {
                            name: "error" if state == "failed" else state
                            for name, state in states.items()
                        },
                    },
                    dag="\n".join(line for node in nodes for line in node.lines()),
                    files={
                        f"{node.name}.outcome": f"Yield = {node.value}\n"
                        for node in nodes
                        if node.value is not None
                    },
                )
            ],
        )

        assert run_case(case, create_testbed(), checks_log=True).differences == []
