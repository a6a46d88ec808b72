from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.task_queues.needs import BadNeeds, Needs, cpu_segment


@pytest.mark.parametrize(
    ("cpu_time_s", "segment"),
    [(0, 500), (10, 500), (500, 500), (501, 5_000), (50_001, 300_000), (10**9, 300_000)],
)
def test_cpu_time_is_rounded_up_to_its_segment(cpu_time_s: int, segment: int) -> None:
    assert cpu_segment(cpu_time_s) == segment


def test_needs_that_say_the_same_have_the_same_key() -> None:
    one = Needs.of("alice", cpu_time_s=10, sites=["b", "a", "a "], tags=["x"])
    two = Needs.of("alice", cpu_time_s=499, sites=["a", "b"], tags=["x", ""])

    assert one.key() == two.key()
    assert Needs.from_dict(one.as_dict()) == one


@pytest.mark.parametrize(
    "difference",
    [
        {"owner_group": "g"}, {"setup": "s"}, {"cpu_time_s": 501}, {"cores": 2}, {"max_cores": 2},
        {"memory_mb": 1}, {"gpus": 1}, {"sites": ["a"]}, {"banned_sites": ["a"]},
        {"queues": ["a/q"]}, {"platforms": ["a"]}, {"pilot_types": ["private"]},
        {"submit_pools": ["a"]}, {"middlewares": ["slurm"]}, {"tags": ["a"]}, {"job_type": "User"},
        {"requirements": "Cpus > 1"},
    ],
)  # fmt: skip
def test_needs_that_differ_have_different_keys(difference: dict[str, object]) -> None:
    assert Needs.of("alice").key() != Needs.of("alice", **difference).key()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given_needs", "fields"),
    [
        ({"sites": ["a", "b"], "banned_sites": ["b"]}, ("sites", "banned_sites")),
        ({"cores": 4, "max_cores": 2}, ("cores", "max_cores")),
        ({"queues": ["a/q"], "sites": ["b"]}, ("queues", "sites")),
        ({"queues": ["a/q"], "banned_sites": ["a"]}, ("queues", "banned_sites")),
        ({"cores": 0}, ("cores",)),
        ({"cores": 10**9}, ("cores",)),
        ({"max_cores": 0}, ("max_cores",)),
        ({"memory_mb": -1}, ("memory_mb",)),
        ({"cpu_time_s": -1}, ("cpu_time_s",)),
        ({"cpu_time_s": float("nan")}, ("cpu_time_s",)),
        ({"gpus": 10**6}, ("gpus",)),
        ({"pilot_types": ["public"]}, ("pilot_types",)),
        ({"tags": ["x" * 65]}, ("tags",)),
        ({"tags": ["a\0b"]}, ("tags",)),
        ({"job_type": "a\nb"}, ("job_type",)),
        ({"queues": ["x" * 130]}, ("queues",)),
        ({"tags": [str(n) for n in range(90)], "queues": list("abcdefghijk")}, ("tags",)),
        ({"job_type": "x" * 65}, ("job_type",)),
        ({"requirements": "Cpus >"}, ("requirements",)),
        ({"requirements": "false"}, ("requirements",)),
        ({"requirements": "eval(Name)"}, ("requirements",)),
        ({"requirements": 'regexp("^(a+)+$", Machine)'}, ("requirements",)),
        ({"requirements": 'Machine == "\ud800"'}, ("requirements",)),
        ({"memory_mb": 1.0}, ("memory_mb",)),
        ({"cores": 1.5}, ("cores",)),
    ],
)
def test_contradictions_and_absurd_values_are_refused_with_the_fields_names(
    given_needs: dict[str, Any], fields: tuple[str, ...]
) -> None:
    with pytest.raises(BadNeeds) as refused:
        Needs.of("alice", **given_needs)

    assert refused.value.fields == fields
    assert all(field in str(refused.value) for field in fields)


def test_requirements_that_differ_in_spaces_only_are_equal() -> None:
    one = Needs.of("alice", requirements='Cpus>=2&&OpSys=="LINUX"')
    two = Needs.of("alice", requirements=' Cpus >= 2  &&  OpSys == "LINUX" ')

    assert one == two
    digits = "1.234567890123456E+10"
    assert Needs.of("a", requirements=f'Site == "{digits}"').requirements == f'Site == "{digits}"'
    assert Needs.of("alice", requirements='OpSys == "A  B"') != Needs.of(
        "alice", requirements='OpSys == "A B"'
    )


def test_segments_are_a_setting() -> None:
    assert Needs.of("alice", cpu_time_s=700, segments_s=[600, 1200]).cpu_time_s == 1200
    assert Needs.of("alice", cpu_time_s=9999, segments_s=[600, 1200]).cpu_time_s == 1200


def test_needs_that_were_stored_before_a_kind_of_need_was_known_get_its_default() -> None:
    stored = {"owner": "alice", "cores": 4, "cpu_time_s": 500, "memory_mb": 1, "sites": ["a"]}

    found = Needs.from_dict(stored)

    assert (found.cores, found.max_cores, found.gpus, found.sites) == (4, 4, 0, ("a",))


@given(st.lists(st.sampled_from("abcd")), st.lists(st.sampled_from("abcd")))
def test_the_order_of_lists_does_not_matter(sites: list[str], tags: list[str]) -> None:
    forward = Needs.of("u", sites=sites, tags=tags)
    backward = Needs.of("u", sites=reversed(sites), tags=reversed(tags))

    assert forward.key() == backward.key()
