"""Shares of groups and users in the priorities of TaskQueues, with optional usage feedback.

Each group's share is divided equally among its users that have TaskQueues now (DIRAC pilot
framework, 2009); with job sharing the group stays one pool. A pool's part is divided among its
TaskQueues in proportion to the sum of their jobs' weights, in SQL (`wms.taskqueues.priorities`).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)

#: No priority is smaller: rounding must not make it zero.
LEAST_PRIORITY = 1e-9
#: Steps of the search for the scale of corrections: beyond what a float can tell apart.
_HALVINGS = 70


@dataclass(frozen=True, slots=True)
class Group:
    """A group's share in the draws, relative to the other groups."""

    share: float
    has_job_sharing: bool = False


@dataclass(frozen=True, slots=True)
class Pool:
    """TaskQueues with a common share: of a user in a group, or, for owner 0, of the group."""

    owner_group: str
    owner: int = 0


@dataclass(frozen=True, slots=True)
class Feedback:
    """Decayed recent use by (group, owner), and the largest factor by which it corrects shares."""

    used: Mapping[tuple[str, int], float]
    max_correction: float


def pool_of(owner_group: str, owner: int, groups: Mapping[str, Group]) -> Pool:
    """Pool of the TaskQueues of this owner in this group."""
    group = groups.get(owner_group)
    return Pool(owner_group, 0 if group is not None and group.has_job_sharing else owner)


def parts(
    present: Collection[tuple[str, int]],
    groups: Mapping[str, Group],
    *,
    default_share: float,
    feedback: Feedback | None = None,
) -> dict[Pool, float]:
    """Share of each pool; `present` are the (group, owner) pairs that have TaskQueues now.

    A group that is not in `groups` has the default share. With feedback, first the groups' shares
    are corrected among each other and then those of the users within each group; sums stay.
    """
    owners_by_group: dict[str, set[int]] = {}
    for owner_group, owner in present:
        owners_by_group.setdefault(owner_group, set()).add(owner)
    shares = {
        name: groups[name].share if name in groups else default_share for name in owners_by_group
    }
    if feedback is not None:
        shares = corrected(shares, _used_by_group(feedback), feedback.max_correction)
    found: dict[Pool, float] = {}
    for name, owners in owners_by_group.items():
        pools = {pool_of(name, owner, groups) for owner in owners}
        equal = {pool: shares[name] / len(pools) for pool in pools}
        if feedback is not None and len(pools) > 1:
            used = {pool: feedback.used.get((name, pool.owner), 0.0) for pool in pools}
            equal = corrected(equal, used, feedback.max_correction)
        found |= equal
    return found


def _used_by_group(feedback: Feedback) -> dict[str, float]:
    used: dict[str, float] = {}
    for (group, _), amount in feedback.used.items():
        used[group] = used.get(group, 0.0) + amount
    return used


def corrected(
    shares: Mapping[Key, float], used: Mapping[Key, float], max_correction: float
) -> dict[Key, float]:
    """Shares, raised for those who used less than their share and lowered for the others.

    The factor is the target part of all use divided by the actual part (DIRAC's share correctors).
    All factors are scaled so that the sum stays, and each is between 1/max_correction and
    max_correction. Only use by those who have a share counts; without any, nothing is corrected.
    """
    whole = sum(shares.values())
    all_used = sum(used.get(key, 0.0) for key in shares)
    if all_used <= 0:
        return dict(shares)
    least, most = 1.0 / max_correction, max_correction
    factors = {}
    for key, share in shares.items():
        wanted, actual = share / whole, used.get(key, 0.0) / all_used
        factors[key] = most if actual <= wanted * least else max(wanted / actual, least)

    def scaled(scale: float) -> dict[Key, float]:
        return {
            key: share * min(max(scale * factors[key], least), most)
            for key, share in shares.items()
        }

    # The sum rises with the scale: from all at the least factor to all at the greatest.
    low, high = least * least, most * most
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(scaled(middle).values()) < whole else (low, middle)
    return scaled(high)
