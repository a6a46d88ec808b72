"""Reasons why a request stayed unmatched or left sites: kind, and a sentence with counts.

Also how each site and a request stand with each other (`SiteStanding`), and reasons of several
names grouped into one text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from matching.negotiation.autoclusters import Cluster
from matching.negotiation.candidates import Fit, SitePool
from matching.negotiation.cycle_sites import CycleSite

_NAMES_SHOWN = 5
_REASONS_SHOWN = 5
#: Number of reasons for leaving sites that are listed, and their length in characters.
_LEFT_SHOWN = 3
_LEFT_LENGTH = 200


class Kind(StrEnum):
    """Kind of reason why a request was not matched, for statistics."""

    NO_SITE = "no site fits"
    NODES = "no queue for one of its nodes"
    BUSY = "fitting sites are full"
    CLOSED = "fitting sites are closed"
    LIMIT = "a concurrency limit is used up"
    QUOTA = "the group's quota is used up"
    UNSEEN = "not looked at yet"
    FAULT = "its ad is at fault"


@dataclass(frozen=True, slots=True)
class Leftover:
    """Reason why a request was not matched: kind and sentence.

    `unfit` are the ids of sites that would take it, were there a queue for each of its nodes.
    `names_attributes`: the sentence tells what sites require and the request does not set.
    """

    kind: Kind
    text: str
    unfit: frozenset[int] = frozenset()
    names_attributes: bool = False

    def with_more(self, more: str) -> Leftover:
        """Reason with an addition, if it is about sites."""
        is_of_sites = self.kind in {Kind.NO_SITE, Kind.NODES, Kind.BUSY, Kind.CLOSED}
        return replace(self, text=f"{self.text} {more}") if more and is_of_sites else self


class SiteStanding(StrEnum):
    """Standing of a site and a request with each other at a moment."""

    FREE = "would take it now"
    REFUSED_BY_DAG = "ruled out by the Requirements of the DAG"
    REFUSED_BY_SITE = "refusing the DAG by their own Requirements"
    UNFIT_FOR_NODES = "without a queue for one of its nodes"
    CLOSED = "closed"
    AVOIDED = "avoided, as the DAG was taken back from there"
    USED_UP = "taking no further match at present"
    FULL = "full, CurMatches has reached MaxMatches"


_UNWILLING = {
    Fit.REFUSED_BY_DAG: SiteStanding.REFUSED_BY_DAG,
    Fit.REFUSED_BY_SITE: SiteStanding.REFUSED_BY_SITE,
    Fit.UNFIT_FOR_NODES: SiteStanding.UNFIT_FOR_NODES,
}


def standing_of(site: CycleSite, fit: Fit, avoided: Collection[int]) -> SiteStanding:
    """Standing of a site and a request, by the same tests in the same order as the match."""
    if fit is not Fit.WILLING:
        return _UNWILLING[fit]
    if not site.has_space:
        is_full = site.max_matches <= 0 or site.has_space_when_empty
        return SiteStanding.FULL if is_full else SiteStanding.REFUSED_BY_SITE
    if site.offer.closed:
        return SiteStanding.CLOSED
    if site.offer.site_id in avoided:
        return SiteStanding.AVOIDED
    return SiteStanding.FREE if site.is_free else SiteStanding.USED_UP


def no_site_reason(site_pool: SitePool, fits: Sequence[Fit], cluster: Cluster) -> Leftover:
    """Reason why no site takes a request now, with counts by standing.

    Where none ever would, with the attributes that sites require and the request does not set.
    """
    sites = site_pool.sites
    if not sites:
        return Leftover(Kind.NO_SITE, "No site has published an ad.")
    by_standing: dict[SiteStanding, list[str]] = {}
    for site, fit in zip(sites, fits, strict=True):
        standing = standing_of(site, fit, cluster.avoided)
        name = site.offer.name
        shown = f"{name}: {site.offer.closed}" if standing is SiteStanding.CLOSED else name
        by_standing.setdefault(standing, []).append(shown)
    parts = [
        f"{len(names)} of {len(sites)} {standing.value} ({_name_list(names)})"
        for standing in SiteStanding
        if (names := by_standing.get(standing))
    ]
    unfit = frozenset(
        site.offer.site_id
        for site, fit in zip(sites, fits, strict=True)
        if fit is Fit.UNFIT_FOR_NODES
    )
    kind = _kind(by_standing)
    # Where waiting does not help, nothing is said of now.
    verb = "fits" if kind in {Kind.NO_SITE, Kind.NODES} else "fits now"
    left = Leftover(kind, f"No site {verb}: {'; '.join(parts)}.", unfit)
    wanted = site_pool.wishes.sentence(cluster) if left.kind is Kind.NO_SITE else ""
    return replace(left.with_more(wanted), names_attributes=bool(wanted))


def _kind(standings: Collection[SiteStanding]) -> Kind:
    if SiteStanding.FULL in standings:
        return Kind.BUSY
    is_willing = not {SiteStanding.CLOSED, SiteStanding.AVOIDED, SiteStanding.USED_UP}.isdisjoint(
        standings
    )
    if is_willing:
        return Kind.CLOSED
    return Kind.NODES if SiteStanding.UNFIT_FOR_NODES in standings else Kind.NO_SITE


def grouped_reasons(reasons: Iterable[tuple[str, str]]) -> str:
    """Distinct reasons, each with the names it applies to; without names if there is only one.

    Takes pairs of name and reason; only the first few reasons are listed.
    """
    names: dict[str, list[str]] = {}
    for name, reason in reasons:
        names.setdefault(reason, []).append(name)
    if len(names) < 2:
        return "".join(names)
    lines = [f"{_name_list(whose)}: {reason}" for reason, whose in names.items()]
    return "; ".join([*lines[:_REASONS_SHOWN], *(["..."] if len(lines) > _REASONS_SHOWN else [])])


def reasons_for_leaving(reasons: Mapping[str, str]) -> str:
    """Short text on why a request left these sites; empty where no reason is known.

    Takes reasons by site name. Reasons that differ only in the site's name are merged.
    """
    sites_by_reason: dict[str, list[str]] = {}
    first_texts: dict[str, str] = {}
    for name, reason in reasons.items():
        if not reason:
            continue
        generic = f" {reason} ".replace(f" {name} ", " the site ").strip()
        first_texts.setdefault(generic, reason)
        sites_by_reason.setdefault(generic, []).append(name)
    lines = [
        f"It left {_name_list(left)}: {_short(generic if len(left) > 1 else first_texts[generic])}"
        for generic, left in sorted(
            sites_by_reason.items(), key=lambda each: (-len(each[1]), each[0])
        )
    ]
    rest = len(lines) - _LEFT_SHOWN
    more = [f"It left others for {rest} more reason{'s' if rest > 1 else ''}."] if rest > 0 else []
    return " ".join([*lines[:_LEFT_SHOWN], *more])


def _short(reason: str) -> str:
    is_short = len(reason) <= _LEFT_LENGTH
    return f"{reason.rstrip('.')}." if is_short else f"{reason[:_LEFT_LENGTH]} ..."


def _name_list(names: Sequence[str]) -> str:
    return ", ".join(sorted(names)[:_NAMES_SHOWN]) + (", ..." if len(names) > _NAMES_SHOWN else "")
