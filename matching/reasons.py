"""Why a request was left over: one sentence with counts, by what the negotiation found."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from matching.market import Fit
from matching.places import Place

_NAMES_SHOWN = 5


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


def _listed(names: Sequence[str]) -> str:
    return ", ".join(sorted(names)[:_NAMES_SHOWN]) + (", ..." if len(names) > _NAMES_SHOWN else "")
