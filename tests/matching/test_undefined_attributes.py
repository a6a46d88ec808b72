from __future__ import annotations

import pytest

from matching.task_queues.resources import NODE_FACTS, PILOT_ATTRIBUTES
from matching.task_queues.undefined_attributes import unknown_attributes


@pytest.mark.parametrize(
    ("requirements", "told"),
    [
        ("TARGET.Cpu >= 1", ["no pilot has an attribute Cpu; did you mean Cpus?"]),
        ('NodePyton == "3"', ["no pilot has an attribute NodePyton; did you mean NodePython?"]),
        ("HasSquid", ["no pilot has an attribute HasSquid"]),
        ("'Memroy' > 1", ["no pilot has an attribute Memroy; did you mean Memory?"]),
        ("MY.Cpus > 1", ["no job has an attribute Cpus; did you mean TARGET.Cpus?"]),
        ("TARGET.Owner == 1", ["no pilot has an attribute Owner; did you mean MY.Owner?"]),
        ("Cpu > 1 || Cpu < 1", ["no pilot has an attribute Cpu; did you mean Cpus?"]),
        (f"{'x' * 3000} > 1", [f"no pilot has an attribute {'x' * 3000}"]),
    ],
)  # fmt: skip
def test_an_attribute_that_neither_side_has_is_told_with_what_may_be_meant(
    requirements: str, told: list[str]
) -> None:
    assert list(unknown_attributes(requirements)) == told


@pytest.mark.parametrize(
    "requirements",
    [
        "",
        'TARGET.cpus >= MY.RequestCpus && MEMORY > RequestMemory && Arch == "Cpu"',
        'member("gpu", Tags) && substr(NodeHostname, 0, 2) == "wn" && NodeSlotGpus =!= undefined',
        'Machine == "node7" || true is false',
    ],
)
def test_what_pilots_and_jobs_have_is_known_in_any_case(requirements: str) -> None:
    assert unknown_attributes(requirements) == ()


def test_all_facts_of_nodes_are_attributes_of_pilots() -> None:
    named = {name for name in PILOT_ATTRIBUTES if name.startswith("Node")}

    assert len(named) == len(NODE_FACTS)
    assert {"NodeMemoryMb", "NodeAgentVersion"} <= named


def test_of_very_many_attributes_the_first_are_told() -> None:
    assert len(unknown_attributes(" && ".join(f"A{number}" for number in range(20)))) == 5
