"""Whose turn it is and how much each may hold: priorities, groups with quotas, limits.

The rules are HTCondor's (Administrators' manual, "User Priorities and Negotiation"), for places at
sites in the stead of its slots.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

#: The best real priority: who has never used anything has it.
BEST_PRIORITY = 0.5
#: A limit's name, in lower case: a word, or two joined by a point.
_LIMIT = re.compile(
    r"(?P<name>[a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)?)(?::(?P<amount>[0-9]{1,9}(?:\.[0-9]{1,6})?))?\Z"
)
_MAX_LIMITS = 32
_MAX_NAME_LENGTH = 64


@dataclass(frozen=True, slots=True)
class GroupShare:
    """What is set for a group; a point in its name leads to its parent: `physics.higgs`.

    `quota` counts places, or is a fraction of the parent's (of all places for a top group). It
    includes what the group's children have. `accepts_surplus` is about what others leave unused.
    """

    name: str
    quota: float
    is_fraction: bool
    accepts_surplus: bool


def decayed_priority(real: float, used: float, elapsed_s: float, half_life_s: float) -> float:
    """The real priority after `elapsed_s` seconds in which `used` slots were held.

    HTCondor's formula: p(t + dt) = b * p(t) + (1 - b) * used with b = 0.5 ^ (dt / half-life). It
    approaches the number of used slots, and is at least 0.5. Smaller is better.
    """
    kept: float = 0.5 ** (max(0.0, elapsed_s) / half_life_s)
    return max(BEST_PRIORITY, kept * real + (1.0 - kept) * used)


def shares(effective_priorities: Mapping[str, float], total: float) -> dict[str, float]:
    """What each submitter should hold of `total`: in proportion to 1 / effective priority.

    Who has twice the effective priority (the real one times the factor) gets half. All priorities
    are above zero.
    """
    weights = {name: 1.0 / priority for name, priority in effective_priorities.items()}
    whole = sum(weights.values())
    return {name: total * weight / whole for name, weight in weights.items()}


def effective_quotas(groups: Sequence[GroupShare], total: float) -> dict[str, float]:
    """The places of each group, its children's included, when there are `total`.

    As HTCondor assigns them, from the top: the children's static quotas first, scaled down
    together when they exceed the parent's; then the dynamic ones as fractions of what is left,
    scaled down together when they exceed 1.
    """
    return {name: node.quota for name, node in _tree(groups, total).items() if name}


def allotments(
    groups: Sequence[GroupShare], total: float, demand: Mapping[str, float]
) -> dict[str, float]:
    """What each group may hold now, if `demand` is what it holds and wants; "" is for no group.

    A group gets what it wants up to its quota. What it leaves goes to those who want more and
    accept surplus, in proportion to their quotas (evenly among those without one, after the
    others): first to its parent and the parent's other children, then further up. No group gets
    what it does not want; a group that accepts no surplus holds, with its children, its quota at
    most. Who is in no group has what the top groups' quotas leave, and accepts surplus.

    These are real numbers. To hand out whole places, let a group take one more while it holds less
    than its allotment: else thirds of ten places would leave one unused.
    """
    tree = _tree(groups, total)
    ceilings = _ceilings(tree, demand)
    found: dict[str, float] = {}
    amounts = {"": min(total, ceilings[""])}
    for name in _from_the_top(tree):
        node = tree[name]
        # The group itself shares on equal terms with its children.
        takers = [name, *node.children]
        quotas = [node.own_quota, *(tree[child].quota for child in node.children)]
        wanted = [demand.get(name, 0.0), *(ceilings[child] for child in node.children)]
        given = _divided(amounts[name], quotas, wanted)
        found[name] = given[0]
        amounts.update(zip(takers[1:], given[1:], strict=True))
    return found


def starvation_order(quotas: Mapping[str, float], held: Mapping[str, float]) -> list[str]:
    """The groups in the order in which they negotiate: least held of its quota first.

    Groups without quota come after those with one, and "", no group, comes last (HTCondor's
    default GROUP_SORT_EXPR). `quotas` are those of `effective_quotas`, `held` includes the
    children's.
    """

    def key(name: str) -> tuple[float, str]:
        quota = quotas.get(name, 0.0)
        return (held.get(name, 0.0) / quota if quota > 0 else math.inf), name

    return [*sorted((name for name in quotas if name), key=key), ""]


def limit_of(name: str, configured: Mapping[str, float]) -> tuple[str, float | None]:
    """The configured limit that holds for `name`, and its maximum; ("", None) when none does.

    `db.read` falls back to `db.*` and then to `*`; a name without point falls back to `*`. As in
    HTCondor a fall-back only tells the maximum: `db.read` and `db.write` are counted apart.
    """
    prefix, point, _ = name.partition(".")
    for known in (name, f"{prefix}.*" if point else "*", "*"):
        if known in configured:
            return known, configured[known]
    return "", None


def parse_limits(text: str) -> dict[str, float]:
    """The amounts by lower-case name of a `concurrency_limits` value such as `db:2, sw.matlab`.

    The amount is 1 where none is given; the whole may stand in double quotes. Raises ValueError.
    """
    bare = text.strip()
    if len(bare) >= 2 and bare[0] == bare[-1] == '"':
        bare = bare[1:-1]
    limits: dict[str, float] = {}
    for word in bare.replace(",", " ").split():
        name, amount = _limit(word)
        if name in limits:
            raise ValueError(f"the limit {name} is named twice")
        limits[name] = amount
    if len(limits) > _MAX_LIMITS:
        raise ValueError(f"at most {_MAX_LIMITS} limits can be named")
    return limits


def _limit(word: str) -> tuple[str, float]:
    found = _LIMIT.match(word.lower())
    if found is None:
        raise ValueError(f"expected a limit such as db, db.read or db:2, found: {word[:80]}")
    name, amount = found["name"], float(found["amount"] or 1)
    if len(name) > _MAX_NAME_LENGTH:
        raise ValueError(f"the name of a limit has at most {_MAX_NAME_LENGTH} characters")
    if amount <= 0:
        raise ValueError(f"the amount of the limit {name} must be larger than 0")
    return name, amount


@dataclass(slots=True)
class _Node:
    """A group in the tree; the root, "", holds all places."""

    share: GroupShare
    children: list[str]
    quota: float = 0.0
    own_quota: float = 0.0


def _tree(groups: Sequence[GroupShare], total: float) -> dict[str, _Node]:
    """All groups with their places, and the root."""
    tree = {"": _Node(GroupShare("", total, is_fraction=False, accepts_surplus=True), [])}
    tree.update({group.name: _Node(group, []) for group in groups})
    for group in groups:
        tree[_parent(group.name, tree)].children.append(group.name)
    tree[""].quota = total
    for name in _from_the_top(tree):
        _assign(tree[name], [tree[child] for child in tree[name].children])
    return tree


def _parent(name: str, tree: Mapping[str, _Node]) -> str:
    """The nearest group above that there is."""
    above = name.rpartition(".")[0]
    return above if above in tree else _parent(above, tree)


def _from_the_top(tree: Mapping[str, _Node]) -> list[str]:
    """All names, parents before their children."""
    return sorted(tree, key=lambda name: name.count(".") + bool(name))


def _assign(parent: _Node, children: Iterable[_Node]) -> None:
    """Give the children their quotas out of the parent's, and the parent what remains."""
    static = [child for child in children if not child.share.is_fraction]
    dynamic = [child for child in children if child.share.is_fraction]
    wanted = sum(child.share.quota for child in static)
    assigned = min(wanted, parent.quota)
    fractions = max(1.0, sum(child.share.quota for child in dynamic))
    for child in static:
        child.quota = child.share.quota * assigned / wanted if wanted else 0.0
    for child in dynamic:
        child.quota = child.share.quota * (parent.quota - assigned) / fractions
    given = sum(child.quota for child in [*static, *dynamic])
    parent.own_quota = max(0.0, parent.quota - given)


def _ceilings(tree: Mapping[str, _Node], demand: Mapping[str, float]) -> dict[str, float]:
    """What each group with its children could hold if there were no end of surplus."""
    ceilings: dict[str, float] = {}
    for name in reversed(_from_the_top(tree)):
        node = tree[name]
        wanted = demand.get(name, 0.0) + sum(ceilings[child] for child in node.children)
        ceilings[name] = wanted if node.share.accepts_surplus else min(wanted, node.quota)
    return ceilings


def _divided(amount: float, quotas: Sequence[float], wanted: Sequence[float]) -> list[float]:
    """`amount` for takers of the same level: quotas first, then the surplus."""
    given = [min(quota, want) for quota, want in zip(quotas, wanted, strict=True)]
    for weights in (quotas, [0.0 if quota else 1.0 for quota in quotas]):
        open_wants = [want - has for want, has in zip(wanted, given, strict=True)]
        more = _poured(amount - sum(given), weights, open_wants)
        given = [has + extra for has, extra in zip(given, more, strict=True)]
    return given


def _poured(amount: float, weights: Sequence[float], wanted: Sequence[float]) -> list[float]:
    """`amount` in proportion to the weights, nobody getting more than wanted.

    Who needs least for their weight is served first, so what they leave is known when the next
    one's part is cut from the rest.
    """
    given = [0.0] * len(weights)
    takers = [place for place, weight in enumerate(weights) if weight > 0 and wanted[place] > 0]
    takers.sort(key=lambda place: wanted[place] / weights[place])
    rest = max(0.0, amount)
    for number, place in enumerate(takers):
        weight_left = sum(weights[other] for other in takers[number:])
        given[place] = min(wanted[place], rest * (weights[place] / weight_left))
        rest = max(0.0, rest - given[place])
    return given
