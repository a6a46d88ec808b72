from __future__ import annotations

import pytest

from matching.task_queues.needs import Needs
from matching.task_queues.rescheduling import pause_after_s, with_host, without_site


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


def test_the_latest_hosts_that_failed_a_job_are_avoided_each_once() -> None:
    assert with_host((), "wn1.example") == ("wn1.example",)
    assert with_host(("wn1", "wn2"), "wn1") == ("wn2", "wn1")
    assert with_host(("a", "b", "c", "d", "e"), "f") == ("b", "c", "d", "e", "f")


@pytest.mark.parametrize("name", ["", 'x" || true', "{}", "a,b", "a b", "x" * 256])
def test_a_host_whose_name_is_none_is_not_avoided(name: str) -> None:
    assert with_host(("wn1",), name) == ("wn1",)
