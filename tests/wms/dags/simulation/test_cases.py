"""Every conformance case, run by the engine: one test each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from wms.dags.simulation.cases import Case, read_cases
from wms.dags.simulation.conformance import run_case
from wms.dags.simulation.surroundings import Surroundings, make_surroundings

FOLDER = Path(__file__).parent / "cases"


def cases() -> list[Any]:
    return [
        pytest.param(case, id=f"{path.stem}-{case.name}")
        for path in sorted(FOLDER.glob("*.json"))
        for case in read_cases(path.read_text(encoding="utf-8"), file=path.name)
    ]


@pytest.fixture(scope="module")
def surroundings(django_db_setup: None, django_db_blocker: Any) -> Iterator[Surroundings]:
    """One owner and one site for all cases, each of which leaves them as they were."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield make_surroundings()
        transaction.set_rollback(True)


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("case", cases())
def test_a_dag_does_what_the_case_expects(case: Case, surroundings: Surroundings):
    verdict = run_case(case, surroundings, checks_log=True)

    assert verdict.differences == []
