from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.needs import Needs, Resource, cpu_segment


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


@pytest.mark.parametrize("difference", [{"cores": 2}, {"memory_mb": 1}, {"banned_sites": ["a"]}])
def test_needs_that_differ_have_different_keys(difference: dict[str, object]) -> None:
    assert Needs.of("alice").key() != Needs.of("alice", **difference).key()  # type: ignore[arg-type]


def test_contradictions_are_refused() -> None:
    with pytest.raises(ValueError, match="no site is left"):
        Needs.of("alice", sites=["a"], banned_sites=["a"])
    with pytest.raises(ValueError, match="cores"):
        Needs.of("alice", cores=0)


@pytest.mark.parametrize(
    ("needs", "reason"),
    [
        (Needs.of("a", cpu_time_s=501), "CPU time"),
        (Needs.of("a", cores=3), "cores"),
        (Needs.of("a", memory_mb=3000), "memory"),
        (Needs.of("a", sites=["y", "z"]), "may run at y, z only"),
        (Needs.of("a", banned_sites=["x"]), "may not run at x"),
        (Needs.of("a", platforms=["arm"]), "needs platform arm, here is linux"),
        (Needs.of("a", tags=["gpu"]), "needs the tags gpu"),
    ],
)
def test_a_refusal_names_what_is_missing(needs: Needs, reason: str) -> None:
    here = Resource("x", cpu_time_s=500, cores=2, memory_mb=2000, platform="linux", tags=("t",))

    assert reason in here.refusal(needs)
    assert here.refusal(Needs.of("a", cores=2, memory_mb=2000, tags=["t"], sites=["x"])) == ""


@given(st.lists(st.sampled_from("abcd")), st.lists(st.sampled_from("abcd")))
def test_the_order_of_lists_does_not_matter(sites: list[str], tags: list[str]) -> None:
    forward = Needs.of("u", sites=sites, tags=tags)
    backward = Needs.of("u", sites=reversed(sites), tags=reversed(tags))

    assert forward.key() == backward.key()
