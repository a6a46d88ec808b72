"""Requests and offers for tests of matchmaking, random ads, and a reference negotiator.

`plainly_matched` is the plainest negotiator that follows the same rules as `decide`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import classad2
from hypothesis import strategies as st

from matching.ads.classads import attribute_value, build_ad, rank_value
from matching.negotiation.autoclusters import Grouping
from matching.negotiation.candidates import SitePool
from matching.negotiation.concurrency_limits import Limit
from matching.negotiation.cycle_sites import Offer, number_of
from matching.negotiation.decision import Decision, Request, Usage, decide

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def request(dag_id: int = 1, **attributes: str) -> Request:
    """A request whose ad has these expressions."""
    return Request(dag_id, attributes, {"DagId": dag_id})


def offer(site_id: int, name: str, current: float = 0, most: float = 2, **attributes: str) -> Offer:
    """An open site of the usual kind."""
    expressions = {
        "WantAdRevaluate": "True",
        "CurMatches": str(current),
        "MaxMatches": str(most),
        "Requirements": "CurMatches < MaxMatches",
        **attributes,
    }
    return Offer(site_id, name, build_ad(expressions))


def submitted_by(name: str, dag_ids: range, group: str = "", **attributes: str) -> list[Request]:
    """Requests of one submitter, with these expressions."""
    return [replace(request(n, **attributes), submitter=name, group=group) for n in dag_ids]


class Clock:
    """A stopwatch that goes on by the same step whenever it is read."""

    def __init__(self, step_s: float) -> None:
        self.time_s, self.step_s = 0.0, step_s

    def __call__(self) -> float:
        self.time_s += self.step_s
        return self.time_s


def match(
    requests: Sequence[Request],
    offers: Sequence[Offer],
    usage: Usage | None = None,
    limits: Mapping[str, Limit] | None = None,
) -> Decision:
    """The decision at a fixed time."""
    return decide(requests, offers, usage or Usage(), limits or {}, NOW)


def requirement_holds(ad: classad2.ClassAd, target: classad2.ClassAd) -> bool:
    """True when the `Requirements` of `ad`, seen towards `target`, is exactly true.

    A missing Requirements accepts everybody; undefined and error refuse, as in HTCondor.
    """
    return attribute_value(ad, "Requirements", True, target) is True


def plainly_matched(requests: Sequence[Request], offers: Sequence[Offer]) -> list[tuple[int, int]]:
    """What the rules say for requests of one submitter, found without any cleverness.

    Every pair is evaluated anew for every request. As in a cycle, a request of the autocluster of
    one that found no site is not tried again, even if a match has opened a site since.
    """
    grouping = Grouping(SitePool(offers).looked_up)
    ads = [classad2.ClassAd(repr(offer.ad)) for offer in offers]
    given = [0] * len(offers)
    hopeless: set[int] = set()
    matches = []
    for request in requests:
        cluster = grouping.number(request.request_ad(NOW))
        if cluster in hopeless:
            continue
        ad = build_ad(request.expressions, request.values)
        keys = []
        for place, offer in enumerate(offers):
            is_used = given[place] and ads[place].eval("WantAdRevaluate") is not True
            if offer.closed or is_used or request.avoided.get(offer.site_id, NOW) > NOW:
                continue
            if requirement_holds(ad, ads[place]) and requirement_holds(ads[place], ad):
                most = number_of(ads[place], "MaxMatches", float("inf"))
                load = number_of(ads[place], "CurMatches", 0.0) / most if most > 0 else 1.0
                ranks = (-rank_value(ad, ads[place]), -rank_value(ads[place], ad))
                keys.append((*ranks, load, offer.name, place))
        if not keys:
            hopeless.add(cluster)
            continue
        place = min(keys)[-1]
        given[place] += 1
        ads[place]["CurMatches"] = int(number_of(ads[place], "CurMatches", 0.0)) + 1
        matches.append((request.dag_id, offers[place].site_id))
    return matches


site_requirements = st.sampled_from(
    [
        "CurMatches < MaxMatches",
        "(CurMatches < MaxMatches) && (TARGET.Kind =!= 1)",
        "CurMatches < MaxMatches && TARGET.Kind <= CurMatches",
        "TARGET.Wish is undefined || TARGET.Wish",
        "CurMatches =!= 1",
        "MaxMatches",
        "1 && CurMatches < MaxMatches",
        "Room",
        "Kind < 2 && Room",
    ]
)
dag_requirements = st.sampled_from(
    [
        "true",
        "Speed >= Kind",
        "CurMatches >= 1",
        "TARGET.CurMatches < 2 && Speed =!= 1",
        "Busy || Speed > 1",
        "Fond",
        'regexp("^s[01]", Name)',
        "1",
        "Missing > 2",
    ]
)
ranks = st.sampled_from(
    ["0.0", "-CurMatches/real(MaxMatches)", "CurMatches", "Speed", "Kind * Speed", "Fond", '"x"']
)
site_ads = st.fixed_dictionaries(
    {
        "Requirements": site_requirements,
        "Rank": st.sampled_from(["0", "TARGET.Kind", "CurMatches", "TARGET.Kind * CurMatches"]),
        "Speed": st.sampled_from(["0", "1", "2"]),
        "WantAdRevaluate": st.sampled_from(["True", "True", "False"]),
        "Room": st.just("CurMatches < MaxMatches"),
        "Busy": st.just("CurMatches > 0"),
        "Fond": st.sampled_from(["TARGET.Kind > 0", "CurMatches < 2"]),
    }
)
dag_ads = st.fixed_dictionaries(
    {"Requirements": dag_requirements, "Rank": ranks, "Kind": st.sampled_from(["0", "1", "2"])},
    optional={"Wish": st.sampled_from(["TARGET.CurMatches < 1", "TARGET.Speed > 0"])},
)
