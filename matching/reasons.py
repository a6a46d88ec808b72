"""Why a request was left over: one sentence with counts, by what the negotiation found."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from matching.market import Fit
from matching.places import Place

_NAMES_SHOWN = 5
_REASONS_SHOWN = 5
#: So many reasons for which a DAG left sites are told, each so far.
_LEFT_SHOWN = 3
_LEFT_LENGTH = 200


class Kind(StrEnum):
    """Why a request was left over, in kinds that can be counted."""

    NO_SITE = "no site fits"
    BUSY = "fitting sites are full"
    CLOSED = "fitting sites are closed"
    LIMIT = "a concurrency limit is used up"
    QUOTA = "the group's quota is used up"
    UNSEEN = "not looked at yet"
    FAULT = "its ad is at fault"


@dataclass(frozen=True, slots=True)
class Leftover:
    """Why a request was not matched, in a word and in a sentence."""

    kind: Kind
    text: str

    def with_more(self, more: str) -> Leftover:
        """The same with something to add, where it is about the sites."""
        is_of_sites = self.kind in {Kind.NO_SITE, Kind.BUSY, Kind.CLOSED}
        return replace(self, text=f"{self.text} {more}") if more and is_of_sites else self


class Stand(StrEnum):
    """How a site and a request stand to each other at a moment."""

    FREE = "would take it now"
    REFUSED_BY_DAG = "ruled out by the Requirements of the DAG"
    REFUSED_BY_SITE = "refusing the DAG by their own Requirements"
    CLOSED = "closed"
    AVOIDED = "avoided, as the DAG was taken back from there"
    USED_UP = "taking no further match at present"
    FULL = "full, CurMatches has reached MaxMatches"


def stand_of(place: Place, fit: Fit, avoided: Collection[int]) -> Stand:
    """How a site and a request stand, by the same tests in the same order as the match itself."""
    if fit is not Fit.WILLING:
        return Stand.REFUSED_BY_DAG if fit is Fit.REFUSED_BY_DAG else Stand.REFUSED_BY_SITE
    if not place.has_room:
        is_full = place.most <= 0 or place.has_room_when_empty
        return Stand.FULL if is_full else Stand.REFUSED_BY_SITE
    if place.offer.closed:
        return Stand.CLOSED
    if place.offer.site_id in avoided:
        return Stand.AVOIDED
    return Stand.FREE if place.is_free else Stand.USED_UP


def no_site(places: Sequence[Place], fits: Sequence[Fit], avoided: Collection[int]) -> Leftover:
    """Why none of the sites takes a request now."""
    if not places:
        return Leftover(Kind.NO_SITE, "No site has published an ad.")
    by_stand: dict[Stand, list[str]] = {}
    for place, fit in zip(places, fits, strict=True):
        stand = stand_of(place, fit, avoided)
        name = place.offer.name
        shown = f"{name}: {place.offer.closed}" if stand is Stand.CLOSED else name
        by_stand.setdefault(stand, []).append(shown)
    parts = [
        f"{len(by_stand[stand])} of {len(places)} {stand.value} ({_listed(by_stand[stand])})"
        for stand in Stand
        if stand in by_stand
    ]
    return Leftover(_kind(by_stand), f"No site fits now: {'; '.join(parts)}.")


def _kind(stands: Collection[Stand]) -> Kind:
    if Stand.FULL in stands:
        return Kind.BUSY
    is_willing = not {Stand.CLOSED, Stand.AVOIDED, Stand.USED_UP}.isdisjoint(stands)
    return Kind.CLOSED if is_willing else Kind.NO_SITE


def each_told(reasons: Iterable[tuple[str, str]]) -> str:
    """Reasons, each once behind those whose it is; without these where all have the same one.

    They come as pairs of a name and a reason; the first few are told.
    """
    names: dict[str, list[str]] = {}
    for name, reason in reasons:
        names.setdefault(reason, []).append(name)
    if len(names) < 2:
        return "".join(names)
    told = [f"{_listed(whose)}: {reason}" for reason, whose in names.items()]
    return "; ".join([*told[:_REASONS_SHOWN], *(["..."] if len(told) > _REASONS_SHOWN else [])])


def why_left(reasons: Mapping[str, str]) -> str:
    """Why a request left the sites of these names, in short; empty where no reason is known.

    Reasons that differ in the site's name only are told once.
    """
    sites: dict[str, list[str]] = {}
    firsts: dict[str, str] = {}
    for name, reason in reasons.items():
        if not reason:
            continue
        alike = f" {reason} ".replace(f" {name} ", " the site ").strip()
        firsts.setdefault(alike, reason)
        sites.setdefault(alike, []).append(name)
    told = [
        f"It left {_listed(left)}: {_short(alike if len(left) > 1 else firsts[alike])}"
        for alike, left in sorted(sites.items(), key=lambda each: (-len(each[1]), each[0]))
    ]
    rest = len(told) - _LEFT_SHOWN
    more = [f"It left others for {rest} more reason{'s' if rest > 1 else ''}."] if rest > 0 else []
    return " ".join([*told[:_LEFT_SHOWN], *more])


def _short(reason: str) -> str:
    is_short = len(reason) <= _LEFT_LENGTH
    return f"{reason.rstrip('.')}." if is_short else f"{reason[:_LEFT_LENGTH]} ..."


def _listed(names: Sequence[str]) -> str:
    return ", ".join(sorted(names)[:_NAMES_SHOWN]) + (", ..." if len(names) > _NAMES_SHOWN else "")
