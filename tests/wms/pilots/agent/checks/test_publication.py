"""Rules for what a check of a node may publish, which pilot and portal share."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.pilots.agent.checks.publication import (
    MOST_BYTES,
    TYPES,
    Declaration,
    read_publication,
    variable_fault,
)

DECLARED = Declaration(
    {"Available": "boolean", "Count": "integer", "Release": "real", "Model": "string"},
    ("SOFTWARE_DIR", "LICENCE"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def test_what_is_declared_is_published_with_its_type() -> None:
    said = {"Available": True, "Count": 2, "Release": 12, "Model": "A100"}

    found = read_publication(said, {"SOFTWARE_DIR": "/cvmfs/sw"}, DECLARED)

    assert found.attributes == said
    assert found.variables == {"SOFTWARE_DIR": "/cvmfs/sw"}
    assert found.skipped == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Other", True),
        ("available", True),
        ("Available", 1),
        ("Available", "true"),
        ("Count", 1.5),
        ("Count", True),
        ("Count", 10**400),
        ("Release", float("nan")),
        ("Release", float("inf")),
        ("Model", "two\nlines"),
        ("Model", "x" * 501),
        ("Model", None),
        ("Model", ["A100"]),
    ],
)
def test_one_bad_attribute_is_left_out_and_told_and_others_go_on(name: str, value: Any) -> None:
    others = {"Count": 1} if name != "Count" else {"Model": "A100"}

    found = read_publication({name: value, **others}, None, DECLARED)

    assert found.attributes == others
    [reason] = found.skipped
    assert reason.startswith(f"{name} ")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LD_PRELOAD", "/tmp/x.so"),
        ("ld_preload", "/tmp/x.so"),
        ("PATH", "/tmp"),
        ("HOME", "/tmp"),
        ("PILOTAGE_JOB", "1"),
        ("APPTAINER_BIND", "/"),
        ("BASH_FUNC_x%%", "() { :; }"),
        ("UID", "5"),
        ("UNDECLARED", "1"),
        ("SOFTWARE_DIR", "a\nb"),
        ("SOFTWARE_DIR", "a\0b"),
        ("SOFTWARE_DIR", 5),
        ("SOFTWARE_DIR", "ä" * 513),
    ],
)
def test_one_bad_variable_is_left_out_and_told(name: str, value: Any) -> None:
    declared = Declaration(variables=(*DECLARED.variables, "LD_PRELOAD", "PATH", "UID"))

    found = read_publication(None, {name: value, "LICENCE": "yes"}, declared)

    assert found.variables == {"LICENCE": "yes"}
    assert len(found.skipped) == 1


def test_too_much_is_not_published_at_all() -> None:
    said = {f"Name{number}": "x" * 100 for number in range(100)}

    found = read_publication({**said, "Count": 1}, None, DECLARED)

    assert found.attributes == {}
    assert str(MOST_BYTES) in found.skipped[0]


def test_reasons_are_few_however_much_is_wrong() -> None:
    found = read_publication({f"n{number}": 1 for number in range(50)}, None, DECLARED)

    assert len(found.skipped) == 6
    assert found.skipped[-1] == "45 more"


@given(JSON, JSON)
def test_whatever_is_said_only_declared_values_of_the_right_type_remain(
    attributes: Any, variables: Any
) -> None:
    found = read_publication(attributes, variables, DECLARED)

    for name, value in found.attributes.items():
        assert TYPES[DECLARED.attributes[name]][1](value)
    assert set(found.variables) <= set(DECLARED.variables)
    assert all(reason.isprintable() for reason in found.skipped)


@given(st.text(max_size=70))
def test_no_variable_for_the_loader_or_of_the_pilot_has_a_good_name(rest: str) -> None:
    for beginning in ("LD_", "PILOTAGE_", "Ld_"):
        assert variable_fault(beginning + rest)


@pytest.mark.process
def test_no_variable_that_bash_keeps_read_only_may_be_set() -> None:
    listed = subprocess.run(
        ["bash", "-c", "readonly -p"], capture_output=True, text=True, check=True
    ).stdout
    names = [line.split("=")[0].split()[-1] for line in listed.splitlines()]

    assert "UID" in names
    assert [name for name in names if not variable_fault(name)] == []
