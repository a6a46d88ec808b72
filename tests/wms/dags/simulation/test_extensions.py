"""Cases of what plain DAGMan does not know: with an engine that is killed, in any order of ends.

`test_cases` runs them as they are, and compares the log of each DAG with its rows. Here some are
killed and some are drawn, with `--every-extension` each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.db import transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wms.dags.simulation.test_cases import FOLDER
from wms.dags.language.parser import parse_dag
from wms.dags.language.spec import DagSpec
from wms.dags.simulation.conformance.cases import Case, Submission, read_cases
from wms.dags.simulation.conformance.runner import run_case
from wms.dags.simulation.options import Trigger
from wms.dags.simulation.testbed import SimulationTestbed, create_testbed
from wms.dags.states import NodeKind

_WITH_JOBS = (NodeKind.JOB, NodeKind.FINAL)
#: What is expected of a case whatever the order in which its nodes end.
_STATES = ("dag_state", "dag_status", "exit_code", "nodes")


def _specs(submission: Submission) -> Iterator[DagSpec]:
    """The DAG of a submission, and those inside of it."""
    texts: dict[str, str | None] = {**submission.files, "case.dag": submission.dag}
    left, known = ["case.dag"], set[str]()
    while left:
        name = left.pop()
        known.add(name)
        spec = parse_dag([name], texts.get)
        yield spec
        inner = [node for node in spec.nodes.values() if node.kind is NodeKind.SUBDAG]
        left += [node.source for node in inner if node.source in texts.keys() - known]


def _additions(case: Case) -> set[str]:
    specs = _specs(case.submissions[0])
    return {each.command for spec in specs for each in spec.additions}


def _extensions() -> list[Case]:
    files = sorted(FOLDER.glob("*.json"))
    every = [case for path in files for case in read_cases(path.read_text("utf-8"), file=path.name)]
    return [case for case in every if _additions(case)]


EXTENSIONS = _extensions()


def _jobs(case: Case) -> list[str]:
    """Nodes with jobs, inner DAGs included, each once."""
    nodes = (node for spec in _specs(case.submissions[0]) for node in spec.nodes.values())
    return list(dict.fromkeys(node.name for node in nodes if node.kind in _WITH_JOBS))


def _killed_ones() -> list[Case]:
    """Two cases of each combination of commands, those with the most jobs.

    A kill takes a whole round back, whatever was in it; a draw below kills in any of the cases.
    """
    alike: dict[frozenset[str], list[Case]] = {}
    for case in sorted(EXTENSIONS, key=lambda case: -len(_jobs(case))):
        alike.setdefault(frozenset(_additions(case)), []).append(case)
    return [case for cases in alike.values() for case in cases[:2]]


#: Cases that are about when something ends, each with what depends on that: in another order of
#: ends they have other states, which the log must agree with all the same.
_ABOUT_TIME = {
    "both-failures-at-once-are-not-both-tolerated": "which of two failures is the first",
    "a-time-limit-that-is-tolerated": "a job that takes longer than it may",
    "a-time-limit-that-a-condition-handles": "a job that takes longer than it may",
    "timeout-of-a-run": "a job that takes longer than it may",
    "timeout-by-default-but-not-of-those-that-have-one": "a job that takes longer than it may",
    "one-failure-too-many-loses-merge": "which of two failures is the first",
    "a-node-stopped-by-an-abort-is-not-handled": "whether the node still runs at the abort",
    "two-fragments-with-the-same-names": "which of the two comes first",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Cases of each test: some of them, or each by itself, which takes minutes."""
    is_every = metafunc.config.getoption("--every-extension")
    if "killed_case" in metafunc.fixturenames:
        chosen = EXTENSIONS if is_every else _killed_ones()
        metafunc.parametrize("killed_case", chosen, ids=lambda case: case.name)
    if "drawn_from" in metafunc.fixturenames:
        drawn = {case.name: [case] for case in EXTENSIONS} if is_every else {"any": EXTENSIONS}
        metafunc.parametrize("drawn_from", drawn.values(), ids=drawn)


@pytest.fixture(scope="module")
def testbed(django_db_setup: None, django_db_blocker: Any) -> Iterator[SimulationTestbed]:
    """One owner and one site for all cases, each of which leaves them as they were."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield create_testbed()
        transaction.set_rollback(True)


def test_there_are_more_than_eighty_cases_of_extensions() -> None:
    assert len({case.name for case in EXTENSIONS}) == len(EXTENSIONS) > 80
    assert not _ABOUT_TIME.keys() - {case.name for case in EXTENSIONS}


@pytest.mark.slow
@pytest.mark.django_db
def test_an_engine_that_is_killed_after_each_start_does_the_same(
    killed_case: Case, testbed: SimulationTestbed
) -> None:
    killed = [_killed(killed_case, each) for each in killed_case.submissions]

    result = run_case(replace(killed_case, submissions=killed), testbed, checks_log=True)

    assert result.differences == []


def _killed(case: Case, submission: Submission) -> Submission:
    options = submission.options
    asked = {trigger.component for trigger in options.triggers}
    kills = [Trigger("kill", name, 0) for name in _jobs(case) if name not in asked]
    return replace(submission, options=replace(options, triggers=(*options.triggers, *kills)))


@pytest.mark.slow
@pytest.mark.django_db
def test_states_and_log_agree_however_long_each_node_takes_and_whoever_is_killed(
    drawn_from: list[Case], testbed: SimulationTestbed
) -> None:
    @settings(max_examples=30 if len(drawn_from) > 1 else 3)
    @given(case=st.sampled_from(drawn_from), data=st.data())
    def agree(case: Case, data: st.DataObject) -> None:
        result = run_case(_drawn(case, data), testbed, checks_log=True)

        assert result.differences == []

    agree()


def _drawn(case: Case, data: st.DataObject) -> Case:
    """The case with other durations, and with what is expected of it whatever they are."""
    durations = {name: data.draw(st.integers(1, 40), label=name) for name in _jobs(case)}
    expected = () if _depends_on_time(case) else _STATES
    drawn = [
        replace(
            each,
            behaviour=replace(each.behaviour, durations_s=durations),
            expect={name: value for name, value in each.expect.items() if name in expected},
        )
        for each in case.submissions
    ]
    if data.draw(st.booleans(), label="the engine is killed"):
        drawn = [_killed(case, each) for each in drawn]
    return replace(case, submissions=drawn)


def _depends_on_time(case: Case) -> bool:
    """Whether it is about when something ends, or something is done to the DAG meanwhile."""
    triggers = [trigger for each in case.submissions for trigger in each.options.triggers]
    return case.name in _ABOUT_TIME or any(trigger.action != "kill" for trigger in triggers)
