from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.task_queues.priority_shares import Feedback, Group, Pool, corrected, parts

GROUPS = {"prod": Group(6000.0, has_job_sharing=True), "physics": Group(1000.0)}
present = st.sets(
    st.tuples(st.sampled_from(["", "prod", "physics", "other"]), st.integers(1, 9)), min_size=1
)
used = st.dictionaries(st.integers(0, 5), st.floats(0, 1e6))


def test_a_group_shares_equally_among_its_users_that_have_task_queues() -> None:
    found = parts({("physics", 1), ("physics", 2)}, GROUPS, default_share=500)

    assert found == {Pool("physics", 1): 500.0, Pool("physics", 2): 500.0}


def test_with_job_sharing_the_share_stays_with_the_group() -> None:
    found = parts({("prod", 1), ("prod", 2), ("", 3)}, GROUPS, default_share=500)

    assert found == {Pool("prod"): 6000.0, Pool("", 3): 500.0}


@given(present)
def test_the_parts_of_a_group_add_up_to_its_share(owners: set[tuple[str, int]]) -> None:
    found = parts(owners, GROUPS, default_share=500)

    for name in {group for group, _ in owners}:
        whole = sum(part for pool, part in found.items() if pool.owner_group == name)
        assert math.isclose(whole, GROUPS[name].share if name in GROUPS else 500)


def test_who_used_more_than_the_share_gets_less_and_the_others_more() -> None:
    found = corrected({"a": 100.0, "b": 100.0}, {"a": 30.0, "b": 10.0}, max_correction=3.0)

    # Wanted are halves; a has used 3/4 and b 1/4: factors 2/3 and 2.
    assert found == pytest.approx({"a": 50.0, "b": 150.0})


def test_a_correction_is_bounded_after_the_sum_is_kept_too() -> None:
    found = corrected({"a": 100.0, "b": 100.0}, {"a": 1e6, "b": 0.0}, max_correction=2.0)

    # a gets half of its share, the least there is; so b gets one and a half.
    assert found == pytest.approx({"a": 50.0, "b": 150.0})


def test_without_any_use_nothing_is_corrected() -> None:
    assert corrected({"a": 1.0, "b": 2.0}, {"c": 5.0}, max_correction=3.0) == {"a": 1.0, "b": 2.0}


many_shares = st.dictionaries(st.integers(0, 5), st.floats(0.1, 1e5), min_size=1)


@given(many_shares, used, st.floats(1.0, 100.0))
def test_corrected_shares_keep_their_sum_and_no_factor_is_beyond_the_bound(
    shares: dict[int, float], use: dict[int, float], most: float
) -> None:
    found = corrected(shares, use, max_correction=most)

    assert found.keys() == shares.keys()
    assert math.isclose(sum(found.values()), sum(shares.values()), rel_tol=1e-9)
    for key, share in shares.items():
        assert share / most * (1 - 1e-9) <= found[key] <= share * most * (1 + 1e-9)


@given(many_shares, used, st.floats(1.0, 100.0))
def test_who_used_more_of_their_share_never_gets_more_of_it(
    shares: dict[int, float], use: dict[int, float], most: float
) -> None:
    found = corrected(shares, use, max_correction=most)

    by_use = sorted(shares, key=lambda key: use.get(key, 0.0) / shares[key])
    factors = [found[key] / shares[key] for key in by_use]
    for less_used, more_used in pairwise(factors):
        assert more_used <= less_used * (1 + 1e-9)


@given(st.floats(1.0, 1e5), st.floats(0.0, 1e6), st.floats(1.0, 1e6), st.floats(1.01, 100.0))
def test_of_two_with_equal_shares_who_used_more_gets_less(
    share: float, less: float, more: float, most: float
) -> None:
    found = corrected({"a": share, "b": share}, {"a": less, "b": less + more}, max_correction=most)

    assert found["b"] < share < found["a"]


def test_feedback_corrects_groups_among_each_other_and_users_within_their_group() -> None:
    feedback = Feedback({("physics", 1): 30.0, ("physics", 2): 10.0, ("prod", 7): 40.0}, 3.0)

    found = parts({("physics", 1), ("physics", 2), ("prod", 7)}, GROUPS, default_share=1.0,
                  feedback=feedback)  # fmt: skip

    assert found[Pool("physics", 2)] / found[Pool("physics", 1)] == pytest.approx(3.0)
    # prod may use 6/7 and has used half: it is raised; physics used half instead of 1/7: lowered.
    assert found[Pool("prod")] > 6000.0
    assert sum(found.values()) == pytest.approx(7000.0)
