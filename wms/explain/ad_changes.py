"""What-if changes of the ads of DAGs and sites, checked, and applied to the negotiator's input.

Nothing is stored. Expressions of users are parsed, and their cost is bounded, before they are
evaluated. `WhatIfChanges` also holds the changes of needs and queues, which
`wms.explain.queue_changes` applies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import classad2

from matching.ads.ad_cost import check_cost
from matching.ads.classads import AdError, build_ad, parse_expression
from matching.negotiation.cycle_sites import Offer
from matching.negotiation.decision import Request
from wms.core.errors import Finding, InvalidInput
from wms.sites.queue_figures import QUEUES


@dataclass(frozen=True, slots=True)
class WhatIfChanges:
    """What-if changes: attributes of the DAG, and of sites by name, as expressions.

    An empty expression removes an attribute. `needs` are changed needs of jobs, `queues` changed
    offers of queues by `SITE` or `SITE/QUEUE`.
    """

    dag: Mapping[str, str] = field(default_factory=dict)
    sites: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    needs: Mapping[str, str] = field(default_factory=dict)
    queues: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.dag or self.sites or self.needs or self.queues)


def checked(expressions: Mapping[str, str], field_name: str) -> dict[str, str]:
    """Changed attributes after a syntax check. Raises InvalidInput."""
    findings = []
    for name, text in expressions.items():
        try:
            build_ad({name: text.strip() or "undefined"})
        except AdError as error:
            findings.append(Finding(f"{name}: {error.message}", field=field_name))
    if findings:
        raise InvalidInput(findings)
    return dict(expressions)


def changed_offers(
    offers: Sequence[Offer], changes: WhatIfChanges, requests: Iterable[Request]
) -> list[Offer]:
    """Offers with the changes; `requests` have theirs already. Raises InvalidInput."""
    unknown = sorted(set(changes.sites) - {offer.name for offer in offers})
    if unknown:
        raise InvalidInput.of(f"there is no ad of a site {', '.join(unknown)}", field="sites")
    changed = {
        offer.name: _changed_ad(offer, checked(changes.sites[offer.name], "sites"))
        for offer in offers
        if offer.name in changes.sites
    }
    _check_costs(requests, changed.values())
    return [replace(offer, ad=changed.get(offer.name, offer.ad)) for offer in offers]


def _check_costs(requests: Iterable[Request], sites: Iterable[classad2.ClassAd]) -> None:
    """Raise InvalidInput when changed ads cost too much, alone or evaluated against each other.

    A user who writes both sides of a match could multiply their costs.
    """
    # What Pilotage lists of queues is long, and costs no more than in a match.
    site_ads = [{name: str(ad.lookup(name)) for name in list(ad) if name != QUEUES} for ad in sites]
    dag_ads = {tuple(request.expressions.items()): request.expressions for request in requests}
    try:
        for dag_ad in dag_ads.values():
            check_cost(dag_ad)
        for site_ad in site_ads:
            check_cost(site_ad)
            for dag_ad in dag_ads.values():
                check_cost(_both(dag_ad, site_ad))
    except AdError as error:
        raise InvalidInput.of(error.message, field="sites" if site_ads else "dag") from error


def _both(one: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    """Ad whose cost is at least that of each attribute evaluated against the other ad."""
    texts: dict[str, list[str]] = {}
    for name, text in [*one.items(), *other.items()]:
        texts.setdefault(name.lower(), []).append(text)
    return {
        name: each[0] if len(each) == 1 else "{ " + ", ".join(f"({t}\n)" for t in each) + " }"
        for name, each in texts.items()
    }


def _changed_ad(offer: Offer, changes: Mapping[str, str]) -> classad2.ClassAd:
    ad = classad2.ClassAd(repr(offer.ad))
    for name, text in changes.items():
        if text.strip():
            ad[name] = parse_expression(text)
        else:
            ad.pop(name, None)
    return ad
