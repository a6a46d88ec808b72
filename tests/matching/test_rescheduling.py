from __future__ import annotations

import pytest

from matching.needs import Needs
from matching.rescheduling import pause_after_s, without_host, without_site
from matching.resources import Resource, pilot_ad, requirements_value


@pytest.mark.parametrize(
    ("attempts", "expected"), [(1, 60), (2, 180), (3, 300), (4, 600), (9, 600), (0, 60)]
)
def test_pauses_grow_with_the_attempts_up_to_the_last_one(attempts: int, expected: float) -> None:
    assert pause_after_s(attempts, (60, 180, 300, 600)) == expected


def test_without_pauses_there_is_none() -> None:
    assert pause_after_s(3, ()) == 0


@pytest.mark.parametrize(
    ("sites", "banned", "left_sites", "left_banned"),
    [
        ((), (), (), ("A",)),
        (("A", "B"), (), ("B",), ()),
        (("A",), (), ("A",), ()),  # the only one that it may run at
        ((), ("B",), (), ("B",)),  # the other one is banned
        (("A", "C"), (), ("A", "C"), ()),  # the other one is not open
    ],
)
def test_a_site_is_avoided_where_another_one_is_left(
    sites, banned, left_sites, left_banned
) -> None:
    needs = Needs.of("alice", sites=sites, banned_sites=banned)

    left = without_site(needs, "A", {"A", "B"})

    assert (left.sites, left.banned_sites) == (left_sites, left_banned)


def test_a_host_is_avoided_by_the_requirements() -> None:
    needs = without_host(Needs.of("alice", requirements="Memory > 100"), "wn1.example")

    def takes(host: str) -> object:
        resource = Resource("A", cpu_time_s=1, memory_mb=200)
        return requirements_value(needs, pilot_ad(resource, {"hostname": host}))

    assert takes("wn2.example") is True
    assert takes("wn1.example") is False
    assert without_host(needs, "wn1.example") == needs


def test_a_host_whose_name_is_none_is_not_avoided() -> None:
    needs = Needs.of("alice")

    assert without_host(needs, 'x" || true') == needs
    assert without_host(needs, "") == needs
