"""Every conformance case, run by the engine: one test each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from wms.dags.simulation.conformance.cases import Case, read_cases
from wms.dags.simulation.conformance.runner import run_case
from wms.dags.simulation.testbed import SimulationTestbed, create_testbed

FOLDER = Path(__file__).parent / "cases"


def cases() -> list[Any]:
    return [
        pytest.param(case, id=f"{path.stem}-{case.name}")
        for path in sorted(FOLDER.glob("*.json"))
        for case in read_cases(path.read_text(encoding="utf-8"), file=path.name)
    ]


@pytest.fixture(scope="module")
def testbed(django_db_setup: None, django_db_blocker: Any) -> Iterator[SimulationTestbed]:
    """One owner and one site for all cases, each of which leaves them as they were."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield create_testbed()
        transaction.set_rollback(True)


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("case", cases())
def test_a_dag_does_what_the_case_expects(case: Case, testbed: SimulationTestbed):
    result = run_case(case, testbed, checks_log=True)

    assert result.differences == []
