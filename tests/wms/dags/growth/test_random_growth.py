"""Random DAGs that grow: engine, log, rescue and a plain model agree."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from tests.wms.dags.growth.reference_growth import (
    GrowingNode,
    dags_that_grow,
    fragments_in,
    states_of,
    text_of,
)
from wms.dags.simulation.behaviour import read_behaviour
from wms.dags.simulation.conformance.cases import Case, Submission
from wms.dags.simulation.conformance.runner import run_case
from wms.dags.simulation.options import read_options
from wms.dags.simulation.testbed import create_testbed


class RandomGrowth(TestCase):
    """What each node waits for is recounted from the log by `checks_log`."""

    @pytest.mark.slow
    @settings(max_examples=8, deadline=None)
    @given(nodes=dags_that_grow(), data=st.data())
    def test_engine_and_log_and_rescue_and_model_agree(
        self, nodes: list[GrowingNode], data: st.DataObject
    ) -> None:
        states = states_of(nodes)
        failing = {name: [1] for name, state in states.items() if state == "error"}
        durations = {name: data.draw(st.integers(1, 9), label=name) for name in states}
        is_success = not failing
        first = Submission(
            behaviour=read_behaviour(failing, durations),
            options=read_options({}),
            expect={
                "dag_state": "success" if is_success else "failed",
                "nodes": states,
                "rescue_done": None
                if is_success
                else [name for name, state in states.items() if state == "done"],
            },
            dag=text_of(nodes),
            files=dict(fragments_in(nodes)),
        )
        again = Submission(
            behaviour=read_behaviour({}, durations),
            options=read_options({}),
            expect={
                "dag_state": "success",
                "attempts": {name: 0 for name, state in states.items() if state == "done"},
            },
        )

        result = run_case(
            Case("random", [first] if is_success else [first, again]),
            create_testbed(),
            checks_log=True,
        )

        assert result.differences == []


def test_the_model_puts_a_fragment_between_a_node_and_its_children() -> None:
    nodes = [
        GrowingNode("a", fragment=[GrowingNode("x"), GrowingNode("y", ["x"], code=1)]),
        GrowingNode("b", ["a"], passes=2),
    ]

    assert states_of(nodes) == {"a": "done", "x": "done", "y": "error", "b": "futile"}
    nodes[0].fragment = []
    assert states_of(nodes) == {"a": "done", "b": "done", "b#2": "done"}
