"""Every conformance case, run by the engine: one test each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wms.dags.simulation.cases import Case, read_cases
from wms.dags.simulation.conformance import run_cases

FOLDER = Path(__file__).parent / "cases"


def cases() -> list[Any]:
    return [
        pytest.param(case, id=f"{path.stem}-{case.name}")
        for path in sorted(FOLDER.glob("*.json"))
        for case in read_cases(path.read_text(encoding="utf-8"), file=path.name)
    ]


@pytest.mark.django_db
@pytest.mark.parametrize("case", cases())
def test_a_dag_does_what_the_case_expects(case: Case):
    [verdict] = run_cases([case], checks_log=True)

    assert verdict.differences == []
