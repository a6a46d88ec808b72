"""Every conformance case, run by the engine: one test each.

The cases of a group run side by side, when the first of them is asked for: the engine moves their
DAGs in the same rounds. `manage.py simulate_dag --cases FILE --name NAME` runs one by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from wms.dags.simulation.conformance.cases import Case, read_cases
from wms.dags.simulation.conformance.comparison import Difference
from wms.dags.simulation.conformance.runner import groups_of, run_group
from wms.dags.simulation.testbed import create_testbed

FOLDER = Path(__file__).parent / "cases"
DifferencesOf = Callable[[Case], list[Difference]]


def _cases() -> list[tuple[str, Case]]:
    return [
        (path.stem, case)
        for path in sorted(FOLDER.glob("*.json"))
        for case in read_cases(path.read_text(encoding="utf-8"), file=path.name)
    ]


CASES = _cases()


@pytest.fixture(scope="module")
def differences_of(django_db_setup: None, django_db_blocker: Any) -> Iterator[DifferencesOf]:
    """Runs the group of a case, on one owner and one site for all, unless it has run."""
    group_of = {id(case): group for group in groups_of(case for _, case in CASES) for case in group}
    found: dict[int, list[Difference]] = {}
    with django_db_blocker.unblock(), transaction.atomic():
        testbed = create_testbed()

        def of(case: Case) -> list[Difference]:
            if id(case) not in found:
                group = group_of[id(case)]
                for each, result in zip(
                    group, run_group(group, testbed, checks_log=True), strict=True
                ):
                    found[id(each)] = result.differences
            return found[id(case)]

        yield of
        transaction.set_rollback(True)


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize(
    "case", [pytest.param(case, id=f"{file}-{case.name}") for file, case in CASES]
)
def test_a_dag_does_what_the_case_expects(case: Case, differences_of: DifferencesOf) -> None:
    assert differences_of(case) == []
