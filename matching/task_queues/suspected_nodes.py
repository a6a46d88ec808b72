"""Detection of black-hole worker nodes: nodes that fail payloads which succeed elsewhere.

Also when a suspicion is cleared. The rule is the one-sided test of Mantel and Haenszel (Journal of
the National Cancer Institute 22, 1959, 719-748) with its exact conditional distribution; for a
single batch of payloads it is Fisher's exact test. Payloads on a node are compared, batch by batch,
with payloads of the same batch on other nodes: a faulty payload fails everywhere, and one that ran
nowhere else shows nothing. Nodes on which most payloads failed are not used for comparison: so two
bad nodes do not hide each other.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

#: What is less probable is left out of the distributions: they stay short.
_NEGLIGIBLE = 1e-18


@dataclass(frozen=True, slots=True)
class Trial:
    """Outcome of one payload on one worker node.

    A payload is the same in all of its attempts; a `batch` has payloads that are alike.
    """

    host: str
    batch: Hashable
    payload: Hashable
    has_failed: bool


@dataclass(frozen=True, slots=True)
class Rule:
    """Thresholds for suspicion: failed payloads, ratio to other nodes, and probability.

    At least `least_failed` payloads have failed on the node, `ratio` times as many as on the
    others, and chance alone would give that on any of the nodes with a probability below `chance`.
    """

    least_failed: int = 5
    ratio: float = 3.0
    chance: float = 1e-3


@dataclass(frozen=True, slots=True)
class Suspect:
    """A suspected node, with numbers of failed and of all payloads there and on other nodes.

    Only batches that ran on both are counted.
    """

    host: str
    failed: int
    tried: int
    others_failed: int
    others_tried: int


@dataclass(frozen=True, slots=True)
class _Part:
    """One batch: payloads on the node and on the others, and how many of them failed."""

    tried: int
    failed: int
    others_tried: int
    others_failed: int


def suspects(trials: Iterable[Trial], rule: Rule | None = None) -> list[Suspect]:
    """Suspected nodes of one site, by name."""
    rule = rule or Rule()
    by_host = _parts(_judged(trials), rule)
    chance = rule.chance / max(len(by_host), 1)
    found = []
    for host, parts in sorted(by_host.items()):
        failed = sum(part.failed for part in parts)
        expected = sum(part.tried * part.others_failed / part.others_tried for part in parts)
        if failed < rule.least_failed or failed < rule.ratio * expected:
            continue
        if chance_of(parts) < chance:
            found.append(
                Suspect(
                    host,
                    failed,
                    sum(part.tried for part in parts),
                    sum(part.others_failed for part in parts),
                    sum(part.others_tried for part in parts),
                )
            )
    return found


def _judged(trials: Iterable[Trial]) -> dict[tuple[str, Hashable], Counter[bool]]:
    """Numbers of good and failed payloads by node and batch, each counted once on a node.

    A payload that failed on several nodes and succeeded on none is faulty itself and is left out.
    """
    has_failed: dict[tuple[Hashable, Hashable], dict[str, bool]] = defaultdict(dict)
    for each in trials:
        of_payload = has_failed[each.batch, each.payload]
        of_payload[each.host] = of_payload.get(each.host, False) or each.has_failed
    counts: dict[tuple[str, Hashable], Counter[bool]] = defaultdict(Counter)
    for (batch, _), by_host in has_failed.items():
        if len(by_host) > 1 and all(by_host.values()):
            continue
        for host, is_bad in by_host.items():
            counts[host, batch][is_bad] += 1
    return counts


def _parts(
    counts: Mapping[tuple[str, Hashable], Counter[bool]], rule: Rule
) -> dict[str, list[_Part]]:
    """Batches that ran both on the node and on others, by node."""
    of_host: dict[str, Counter[bool]] = defaultdict(Counter)
    for (host, _), count in counts.items():
        of_host[host].update(count)
    # One with few failures stays: to choose the others by their luck would make this one's worse.
    bad = {
        host
        for host, count in of_host.items()
        if count[True] >= rule.least_failed and count[True] > count[False]
    }
    whole: dict[Hashable, Counter[bool]] = defaultdict(Counter)
    for (host, batch), count in counts.items():
        if host not in bad:
            whole[batch].update(count)
    parts: dict[str, list[_Part]] = defaultdict(list)
    for (host, batch), count in counts.items():
        own = Counter[bool]() if host in bad else count
        others_failed, others_well = (
            whole[batch][is_bad] - own[is_bad] for is_bad in (True, False)
        )
        if others_tried := others_failed + others_well:
            parts[host].append(_Part(count.total(), count[True], others_tried, others_failed))
    return parts


def chance_of(parts: Collection[_Part]) -> float:
    """Probability that chance alone puts this many failures, or more, on the node."""
    failed = sum(part.failed for part in parts)
    least, shares = 0, [1.0]
    for part in parts:
        first, of_part = _hypergeometric(part)
        least += first
        shares = _convolved(shares, of_part)
        while len(shares) > 1 and shares[0] < _NEGLIGIBLE:
            least, shares = least + 1, shares[1:]
        while len(shares) > 1 and shares[-1] < _NEGLIGIBLE:
            shares.pop()
    return min(math.fsum(shares[max(failed - least, 0) :]), 1.0)


def _hypergeometric(part: _Part) -> tuple[int, list[float]]:
    """Probabilities of the numbers of failures on the node, and the first such number."""
    whole, failures = part.tried + part.others_tried, part.failed + part.others_failed
    first, last = max(0, failures - part.others_tried), min(part.tried, failures)
    norm = _log_choices(whole, part.tried)
    return first, [
        math.exp(
            _log_choices(failures, number)
            + _log_choices(whole - failures, part.tried - number)
            - norm
        )
        for number in range(first, last + 1)
    ]


def _log_choices(of: int, number: int) -> float:
    return math.lgamma(of + 1) - math.lgamma(number + 1) - math.lgamma(of - number + 1)


def _convolved(left: Sequence[float], right: Sequence[float]) -> list[float]:
    sums = [0.0] * (len(left) + len(right) - 1)
    for place, share in enumerate(left):
        for step, other in enumerate(right):
            sums[place + step] += share * other
    return sums


def is_cleared(has_failed: Sequence[bool], *, needed: int) -> bool:
    """Whether the latest trials of a suspected node succeeded, `needed` in a row."""
    latest = has_failed[-needed:]
    return len(latest) == needed and not any(latest)
