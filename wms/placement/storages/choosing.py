"""Choice of the storage for a logical name by the request's and the storages' `Requirements`.

Each storage is an ad of what is known of it now. Of those that meet the request's requirements and
whose own ones it meets the one of the request's highest `Rank` is taken, of equal ones one near the
DAG's site, then the one with most free space.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final

import classad2
from django.db.models import Count, F, Q, Sum

from matching.ads.classads import build_ad, evaluate, rank_value
from matching.ads.conjuncts import Conjunct, conjuncts_of
from wms.placement.addresses import scheme_of
from wms.placement.models import PlacementAttempt
from wms.placement.storages.endpoints import endpoint_lines
from wms.placement.storages.models import Storage
from wms.placement.storages.selectors import listed_storages, uses_of

#: So long ago attempts count for `SuccessRate` and `BytesPerS`.
PERIOD: Final = timedelta(days=1)
_MOST_ATTEMPTS: Final = 10_000
_SHOWN: Final = 10
_LONGEST_CLAUSE: Final = 200


@dataclass(frozen=True, slots=True)
class Offer:
    """A storage that can be written to, and its ad."""

    storage_id: int
    name: str
    ad: Mapping[str, Any]
    #: Its own `Requirements`; empty for none.
    requirements: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """The storage that was chosen, or none, and in words why."""

    storage_id: int | None
    why: str


def choose(
    attributes: Mapping[str, str], offers: Sequence[Offer], facts: Mapping[str, Any] | None = None
) -> Choice:
    """Choose by the attributes of a request, whose TARGET each offer is in turn.

    The request is the TARGET of the offers, with `facts` that its text cannot claim otherwise.
    """
    mine = _ad_of_request(attributes, facts or {})
    wanted = next((attributes[each] for each in attributes if each.lower() == "requirements"), "")
    found: list[tuple[tuple[float, bool, int], Offer]] = []
    unmet: list[str] = []
    refusing: list[str] = []
    for offer in offers:
        theirs = build_ad({}, offer.ad)
        if clause := _untrue(wanted, mine, theirs):
            unmet.append(f"{offer.name} ({clause})")
            continue
        if clause := _untrue(offer.requirements, theirs, mine):
            refusing.append(f"{offer.name} ({clause})")
            continue
        order = (rank_value(mine, theirs), offer.ad["IsNear"], offer.ad.get("FreeBytes", 0))
        found.append((order, offer))
    told = f"; the request's Requirements are not met by {_listed(unmet)}" if unmet else ""
    if refusing:
        told += f"; it does not meet the Requirements of {_listed(refusing)}"
    if not found:
        return Choice(None, f"no storage can be chosen{told or ': there is none'}")
    best = max(found, key=lambda each: each[0])
    (rank, is_near, _), chosen = best
    words = f"{chosen.name} of {_listed([offer.name for _, offer in found])}: rank {rank:g}"
    return Choice(chosen.storage_id, f"{words}{', near the site' if is_near else ''}{told}")


def _ad_of_request(attributes: Mapping[str, str], facts: Mapping[str, Any]) -> classad2.ClassAd:
    names = {name.lower() for name in facts}
    given = {name: text for name, text in attributes.items() if name.lower() not in names}
    return build_ad(given, {name: value for name, value in facts.items() if value is not None})


def _untrue(requirements: str, ad: classad2.ClassAd, target: classad2.ClassAd) -> str:
    """The first clause that is not true, empty where all are.

    As in HTCondor, where what is not known is no yes.
    """
    for clause in _clauses(requirements) if requirements else ():
        if evaluate(clause.expression, ad, target) is not True:
            text = " ".join(clause.text.split())
            return text if len(text) <= _LONGEST_CLAUSE else f"{text[: _LONGEST_CLAUSE - 3]}..."
    return ""


# The requests of a text often have theirs in common, and each is compared with all storages.
@lru_cache(maxsize=256)
def _clauses(requirements: str) -> tuple[Conjunct, ...]:
    return tuple(conjuncts_of(requirements, {}))


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def offers(*, site_id: int | None, schemes: Collection[str], now: datetime) -> list[Offer]:
    """Storages that are on and can be written by these schemes, by name. Five queries."""
    storages = [
        (storage, {scheme_of(line) for line in endpoint_lines(storage.endpoints)})
        for storage in listed_storages(now).filter(is_enabled=True)
    ]
    usable = [(storage, has) for storage, has in storages if has.intersection(schemes)]
    ids = [storage.pk for storage, _ in usable]
    uses, links = uses_of(ids), _figures(ids, now)
    made = []
    for storage, has in usable:
        use = uses.get(storage.pk)
        made.append(Offer(storage.pk, storage.name, {
            "Name": storage.name,
            "Schemes": sorted(has),
            "Sites": sorted(site.name for site in storage.sites.all()),
            "IsNear": site_id is not None and site_id in {s.pk for s in storage.sites.all()},
            "Running": use.running if use else 0,
            "Waiting": use.waiting if use else 0,
            **_space_of(storage),
            **links.get(storage.pk, {}),
        }, storage.transfer_requirements))  # fmt: skip
    return made


def _space_of(storage: Storage) -> Mapping[str, int]:
    if storage.space_bytes is None:
        return {}
    allocated = int(getattr(storage, "allocated", 0))
    return {
        "SpaceBytes": storage.space_bytes,
        "FreeBytes": max(storage.space_bytes - allocated, 0),
    }


def _figures(ids: Collection[int], now: datetime) -> dict[int, dict[str, float]]:
    """`SuccessRate` and, where a file came, `BytesPerS` of transfers to storages of late."""
    latest = PlacementAttempt.objects.filter(ended_at__gte=now - PERIOD, exit_code__gte=0)
    some = latest.order_by("-ended_at").values("pk")[:_MOST_ATTEMPTS]
    rows = (
        PlacementAttempt.objects.filter(pk__in=some, request__destination_storage__in=ids)
        .order_by()
        .values("request__destination_storage")
        .annotate(
            all=Count("pk"),
            good=Count("pk", filter=Q(exit_code=0)),
            moved=Sum("size_bytes", filter=Q(exit_code=0)),
            time=Sum(F("ended_at") - F("started_at"), filter=Q(exit_code=0)),
        )
    )
    found: dict[int, dict[str, float]] = {}
    for row in rows:
        figures = {"SuccessRate": row["good"] / row["all"]}
        if row["good"]:
            figures["BytesPerS"] = (row["moved"] or 0) / max(row["time"].total_seconds(), 0.001)
        found[row["request__destination_storage"]] = figures
    return found
