"""Fair share between submitters: real priorities, group quotas with surplus, order of groups.

The rules are HTCondor's (Administrators' manual, "User Priorities and Negotiation"), with the match
slots of sites in place of machine slots. Also parses a `concurrency_limits` value and finds the
configured limit that applies to a name.
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
    """Configured share of a group; a dot in its name leads to its parent: `physics.higgs`.

    `quota` counts slots, or is a fraction of the parent's (of all slots for a top group). It
    includes the quotas of the group's children. `accepts_surplus` allows it to use what others
    leave.
    """

    name: str
    quota: float
    is_fraction: bool
    accepts_surplus: bool


def decayed_priority(real: float, used: float, elapsed_s: float, half_life_s: float) -> float:
    """Real priority after `elapsed_s` seconds in which `used` slots were held.

    HTCondor's formula: p(t + dt) = b * p(t) + (1 - b) * used with b = 0.5 ^ (dt / half-life). It
    approaches the number of used slots and is at least 0.5. Smaller is better.
    """
    kept: float = 0.5 ** (max(0.0, elapsed_s) / half_life_s)
    return max(BEST_PRIORITY, kept * real + (1.0 - kept) * used)


def shares(effective_priorities: Mapping[str, float], total: float) -> dict[str, float]:
    """Fair share of each submitter in `total`: in proportion to 1 / effective priority.

    Twice the effective priority (real priority times factor) means half the share. All priorities
    are above zero.
    """
    weights = {name: 1.0 / priority for name, priority in effective_priorities.items()}
    whole = sum(weights.values())
    return {name: total * weight / whole for name, weight in weights.items()}


def effective_quotas(groups: Sequence[GroupShare], total: float) -> dict[str, float]:
    """Slots of each group, its children's included, when there are `total` slots.

    As HTCondor assigns them, from the top: the children's static quotas first, scaled down together
    when they exceed the parent's; then the dynamic ones as fractions of what is left, scaled down
    together when they exceed 1.
    """
    return {name: node.quota for name, node in _tree(groups, total).items() if name}


def allotments(
    groups: Sequence[GroupShare], total: float, demand: Mapping[str, float]
) -> dict[str, float]:
    """Slots that each group may hold now; `demand` is what it holds and wants; "" is no group.

    A group gets what it wants up to its quota. Unused quota goes to groups that want more and
    accept surplus, in proportion to their quotas (evenly among those without one, after the
    others): first to the parent and the parent's other children, then further up. No group gets
    more than it wants; a group that accepts no surplus holds, with its children, at most its quota.
    Submitters without a group share what the top groups' quotas leave, and accept surplus.

    The results are real numbers. To assign whole slots, let a group take one more while it holds
    less than its allotment: else thirds of ten slots would leave one unused.
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
    """Groups in the order in which they negotiate: least held relative to its quota first.

    Groups without quota come after those with one, and "", no group, comes last (HTCondor's default
    GROUP_SORT_EXPR). `quotas` are those of `effective_quotas`, `held` includes the children's.
    """

    def key(name: str) -> tuple[float, str]:
        quota = quotas.get(name, 0.0)
        return (held.get(name, 0.0) / quota if quota > 0 else math.inf), name

    return [*sorted((name for name in quotas if name), key=key), ""]


def limit_of(name: str, configured: Mapping[str, float]) -> tuple[str, float | None]:
    """Name and maximum of the configured limit that applies to `name`; ("", None) if none does.

    `db.read` falls back to `db.*` and then to `*`; a name without dot falls back to `*`. As in
    HTCondor the fall-back only gives the maximum: `db.read` and `db.write` are counted apart.
    """
    prefix, point, _ = name.partition(".")
    for known in (name, f"{prefix}.*" if point else "*", "*"):
        if known in configured:
            return known, configured[known]
    return "", None


def parse_limits(text: str) -> dict[str, float]:
    """Amounts by lower-case name of a `concurrency_limits` value such as `db:2, sw.matlab`.

    The default amount is 1; the whole may stand in double quotes. Raises ValueError.
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
    """A group in the tree of groups; the root, "", holds all slots."""

    share: GroupShare
    children: list[str]
    quota: float = 0.0
    own_quota: float = 0.0


def _tree(groups: Sequence[GroupShare], total: float) -> dict[str, _Node]:
    """Groups with their slots by name, and the root."""
    tree = {"": _Node(GroupShare("", total, is_fraction=False, accepts_surplus=True), [])}
    tree.update({group.name: _Node(group, []) for group in groups})
    for group in groups:
        tree[_parent(group.name, tree)].children.append(group.name)
    tree[""].quota = total
    for name in _from_the_top(tree):
        _assign(tree[name], [tree[child] for child in tree[name].children])
    return tree


def _parent(name: str, tree: Mapping[str, _Node]) -> str:
    """Nearest configured group above a group."""
    above = name.rpartition(".")[0]
    return above if above in tree else _parent(above, tree)


def _from_the_top(tree: Mapping[str, _Node]) -> list[str]:
    """Names of all groups, parents before their children."""
    return sorted(tree, key=lambda name: name.count(".") + bool(name))


def _assign(parent: _Node, children: Iterable[_Node]) -> None:
    """Assign quotas to the children out of the parent's, and the rest to the parent itself."""
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
    """Slots that each group with its children could hold with unlimited surplus."""
    ceilings: dict[str, float] = {}
    for name in reversed(_from_the_top(tree)):
        node = tree[name]
        wanted = demand.get(name, 0.0) + sum(ceilings[child] for child in node.children)
        ceilings[name] = wanted if node.share.accepts_surplus else min(wanted, node.quota)
    return ceilings


def _divided(amount: float, quotas: Sequence[float], wanted: Sequence[float]) -> list[float]:
    """Split of `amount` between groups of one level: quotas first, then the surplus."""
    given = [min(quota, want) for quota, want in zip(quotas, wanted, strict=True)]
    for weights in (quotas, [0.0 if quota else 1.0 for quota in quotas]):
        unmet = [want - has for want, has in zip(wanted, given, strict=True)]
        more = _poured(amount - sum(given), weights, unmet)
        given = [has + extra for has, extra in zip(given, more, strict=True)]
    return given


def _poured(amount: float, weights: Sequence[float], wanted: Sequence[float]) -> list[float]:
    """Split of `amount` in proportion to the weights, nobody getting more than wanted.

    Groups that need least for their weight are served first, so that what they leave is known when
    the next one is served.
    """
    given = [0.0] * len(weights)
    takers = [index for index, weight in enumerate(weights) if weight > 0 and wanted[index] > 0]
    # The quotient itself is infinite for the smallest weights, which would all come equal.
    takers.sort(key=lambda index: math.log(wanted[index]) - math.log(weights[index]))
    rest = max(0.0, amount)
    for number, index in enumerate(takers):
        weight_left = sum(weights[other] for other in takers[number:])
        given[index] = min(wanted[index], rest * (weights[index] / weight_left))
        rest = max(0.0, rest - given[index])
    return given
