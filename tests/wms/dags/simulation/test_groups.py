"""Groups of conformance cases that run side by side."""

from __future__ import annotations

import json
from typing import Any

from wms.dags.simulation.conformance.cases import read_cases
from wms.dags.simulation.conformance.runner import groups_of


def _groups(*given: dict[str, Any]) -> list[list[str]]:
    cases = read_cases(json.dumps([{"dag": "JOB A A.sub\n", **each} for each in given]), file="")
    return [[case.name for case in group] for group in groups_of(cases)]


def test_cases_are_together_in_their_order_unless_one_has_to_be_alone() -> None:
    killed = {"name": "killed", "options": {"kill_when": "A.start"}}
    moving = {"name": "moving", "dag": "DATA D d.json\n"}
    inside = {"name": "inside", "files": {"b.dag": "JOB A A.sub\n  data D d.json\n"}}

    groups = _groups({"name": "first"}, killed, {"name": "second"}, moving, inside)

    assert sorted(groups) == [["first", "second"], ["inside"], ["killed"], ["moving"]]


def test_every_case_is_in_one_group_and_no_group_is_endless() -> None:
    groups = _groups(*({"name": str(number)} for number in range(100)))

    assert [int(name) for group in groups for name in group] == list(range(100))
    assert max(map(len, groups)) < 100
