"""Matching idle DAGs with site ads: two-sided, ranked, a reason for every DAG left over."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import classad2

from matching.classads import attribute_value, rank_value, requirement_holds


@dataclass(frozen=True, slots=True)
class Request:
    """An idle DAG that wants a site."""

    dag_id: int
    ad: classad2.ClassAd


@dataclass(frozen=True, slots=True)
class Offer:
    """A site with the ad under which it is published."""

    site_id: int
    name: str
    ad: classad2.ClassAd


@dataclass(frozen=True, slots=True)
class Match:
    """A DAG and the site that it is to be bound to, with the ranks of both."""

    dag_id: int
    site_id: int
    dag_rank: float
    site_rank: float


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of a cycle: matches, and for every other DAG the reason why there is none."""

    matches: list[Match] = field(default_factory=list)
    unmatched: dict[int, str] = field(default_factory=dict)


def negotiate(requests: Sequence[Request], offers: Iterable[Offer]) -> Decision:
    """Match the requests in their order.

    A site fits when the `Requirements` of both ads are true. Among fitting sites the largest
    `Rank` of the DAG wins, then the largest `Rank` of the site, then the least relative load
    (CurMatches / MaxMatches), then the name. An ad with `WantAdRevaluate` may be matched again in
    the same cycle and counts each match at once (Condor's semantics for site ads); an ad without
    it is used once. The offers' own ads are not changed.
    """
    decision = Decision()
    open_offers = [Offer(o.site_id, o.name, classad2.ClassAd(repr(o.ad))) for o in offers]
    for request in requests:
        chosen = _choose(request, open_offers)
        if chosen is None:
            decision.unmatched[request.dag_id] = explain_no_match(request, open_offers)
            continue
        match, offer = chosen
        decision.matches.append(match)
        if _flag(offer.ad, "WantAdRevaluate"):
            offer.ad["CurMatches"] = int(_number(offer.ad, "CurMatches", 0)) + 1
        else:
            open_offers.remove(offer)
    return decision


def _choose(request: Request, offers: Sequence[Offer]) -> tuple[Match, Offer] | None:
    best: tuple[tuple[float, float, float, str], Match, Offer] | None = None
    for offer in offers:
        if not (
            requirement_holds(request.ad, offer.ad) and requirement_holds(offer.ad, request.ad)
        ):
            continue
        match = Match(
            request.dag_id,
            offer.site_id,
            dag_rank=rank_value(request.ad, offer.ad),
            site_rank=rank_value(offer.ad, request.ad),
        )
        key = (-match.dag_rank, -match.site_rank, _load(offer.ad), offer.name)
        if best is None or key < best[0]:
            best = key, match, offer
    return None if best is None else best[1:]


def explain_no_match(request: Request, offers: Sequence[Offer]) -> str:
    """Why no site fits, in one sentence with counts, by the same rules as the match itself."""
    if not offers:
        return "No site is open for DAGs at present."
    refused_by_dag = [o.name for o in offers if not requirement_holds(request.ad, o.ad)]
    willing = [o for o in offers if o.name not in set(refused_by_dag)]
    full = [o.name for o in willing if _load(o.ad) >= 1]
    refused_by_site = [
        o.name
        for o in willing
        if o.name not in set(full) and not requirement_holds(o.ad, request.ad)
    ]
    parts = [
        _part("full, CurMatches has reached MaxMatches", full, len(offers)),
        _part("ruled out by the Requirements of the DAG", refused_by_dag, len(offers)),
        _part("refusing the DAG by their own Requirements", refused_by_site, len(offers)),
    ]
    return f"No site fits now: {'; '.join(part for part in parts if part)}."


def _part(what: str, names: Sequence[str], total: int) -> str:
    if not names:
        return ""
    shown = ", ".join(sorted(names)[:5]) + (", ..." if len(names) > 5 else "")
    return f"{len(names)} of {total} {what} ({shown})"


def _load(ad: classad2.ClassAd) -> float:
    most = _number(ad, "MaxMatches", math.inf)
    return _number(ad, "CurMatches", 0) / most if most > 0 else 1.0


def _number(ad: classad2.ClassAd, name: str, default: float) -> float:
    value = attribute_value(ad, name, default)
    is_number = isinstance(value, int | float) and not isinstance(value, classad2.Value)
    return float(value) if is_number else 0.0


def _flag(ad: classad2.ClassAd, name: str) -> bool:
    return attribute_value(ad, name, False) is True
