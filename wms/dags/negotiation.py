"""The negotiator: publishes the sites' ads, matches idle DAGs with them, and binds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import structlog
from django.db import transaction

from matching import environments
from matching.classads import AdError, build_ad, literal_values
from matching.negotiation import Decision, Match, Offer, Request, negotiate
from matching.substitution import Undefined, expand_attributes, expand_environment
from wms.core.actors import Actor
from wms.dags import lifecycle
from wms.dags.models import Dag
from wms.dags.selectors import running_dags_by_site
from wms.dags.states import DagState
from wms.sites.ads import publish_ads, published_ad
from wms.sites.models import Site, SiteAd
from wms.sites.selectors import open_sites

log = structlog.get_logger(__name__)
_ACTOR = Actor.system("negotiator")
#: What `$ENV(PATH)` means in a DAG's own environment: nothing of the server's environment is used.
_SUBMIT_PATH = "/usr/local/bin:/usr/bin:/bin"
_TWO_SIDED = frozenset({"Requirements", "Rank", "CurrentRank"})


def run_cycle(now: datetime) -> dict[str, Any]:
    """One cycle: publish, decide, carry out. A DAG held or removed meanwhile is not bound."""
    published = publish_ads(running_dags_by_site(), now=now)
    offers = read_offers(now)
    dags = list(Dag.objects.filter(state=DagState.IDLE).select_related("owner").order_by("pk"))
    requests = _requests(dags)
    decision = negotiate(requests, offers)
    closed = closed_sites()
    for dag_id, reason in decision.unmatched.items():
        decision.unmatched[dag_id] = f"{reason} {closed}".strip()
    bound = carry_out(decision, offers, now=now)
    return {
        "ads": published,
        "requests": len(requests),
        "matches": len(decision.matches),
        "bound": bound,
        "unmatched": len(decision.unmatched),
    }


def _requests(dags: Iterable[Dag]) -> list[Request]:
    """The DAGs with their ads; one whose ad cannot be made is held and stops no other."""
    requests = []
    for dag in dags:
        try:
            requests.append(Request(dag.pk, dag_ad(dag)))
        except AdError as error:
            reason = f"its ad cannot be made: {error}"
            lifecycle.apply_to_dags("hold", [dag.pk], actor=_ACTOR, reason=reason)
    return requests


def read_offers(now: datetime) -> list[Offer]:
    """The ads that may be matched: not expired, of sites that are on and have a queue."""
    ads = (
        SiteAd.objects.filter(site__in=open_sites(), expires_at__gt=now)
        .select_related("site")
        .defer("site__requirements", "site__attributes")
    )
    offers = []
    for ad in ads.order_by("site__name"):
        try:
            offers.append(Offer(ad.site_id, ad.site.name, published_ad(ad)))
        except AdError as error:
            log.warning("site_ad_unreadable", site=ad.site.name, error=str(error))
    return offers


def closed_sites() -> str:
    """The sites that take no DAG whatever their ads say, as a sentence; empty without such."""
    names = [site.name for site in Site.objects.exclude(pk__in=open_sites()).order_by("name")]
    return f"Switched off, or without a queue: {', '.join(names)}." if names else ""


def dag_ad(dag: Dag) -> Any:
    """The ad under which a DAG is matched: its own attributes and what Pilotage knows of it."""
    values = {
        "MyType": "Job",
        "TargetType": "Machine",
        "Owner": dag.owner.username,
        "DagName": dag.name,
        "DagId": dag.pk,
        "NodesTotal": dag.node_count,
    }
    return build_ad(dag.ad_attributes, values)


@transaction.atomic
def carry_out(decision: Decision, offers: Sequence[Offer], *, now: datetime) -> int:
    """Bind the matched DAGs that are still idle, and note why the others found no site."""
    ads = {offer.site_id: _match_attributes(offer) for offer in offers}
    matches = {match.dag_id: match for match in decision.matches}
    idle = list(
        Dag.objects.filter(pk__in=[*matches, *decision.unmatched], state=DagState.IDLE)
        .select_related("owner")
        .order_by("pk")
        .select_for_update(of=("self",))
    )
    bound = [
        dag
        for dag in idle
        if dag.pk in matches and _bind(dag, matches[dag.pk], ads[matches[dag.pk].site_id], now)
    ]
    Dag.objects.bulk_update(
        bound,
        ["site", "matched_at", "match_attributes", "environment", "unmatched_reason"],
        batch_size=500,
    )
    _note_reasons(idle, decision.unmatched)
    facts = {
        dag.pk: {
            "site": dag.match_attributes.get("Name", ""),
            "dag_rank": matches[dag.pk].dag_rank,
            "site_rank": matches[dag.pk].site_rank,
        }
        for dag in bound
    }
    lifecycle.apply_to_dags("match", [dag.pk for dag in bound], actor=_ACTOR, facts=facts)
    return len(bound)


def _note_reasons(idle: Iterable[Dag], reasons: Mapping[int, str]) -> None:
    """Store why DAGs found no site, where that has changed."""
    changed = []
    for dag in idle:
        if dag.pk in reasons and dag.unmatched_reason != reasons[dag.pk]:
            dag.unmatched_reason = reasons[dag.pk]
            changed.append(dag)
    Dag.objects.bulk_update(changed, ["unmatched_reason"], batch_size=500)


def _match_attributes(offer: Offer) -> dict[str, Any]:
    """What a site's ad says by itself; its Requirements and Rank mean nothing without a DAG."""
    values = literal_values(offer.ad)
    return {name: value for name, value in values.items() if name not in _TWO_SIDED}


def _bind(dag: Dag, match: Match, ad: Mapping[str, Any], now: datetime) -> bool:
    """Set the DAG's site and environment; hold it when its description is undefined there."""
    try:
        environment = dag_environment(dag, ad)
    except (Undefined, AdError, environments.BadEnvironment) as error:
        reason = f"matched to {ad.get('Name')}, but its environment cannot be made: {error}"
        lifecycle.apply_to_dags("hold", [dag.pk], actor=_ACTOR, reason=reason)
        return False
    dag.site_id = match.site_id
    dag.matched_at = now
    dag.match_attributes = dict(ad)
    dag.environment = environment
    dag.unmatched_reason = ""
    return True


def dag_environment(dag: Dag, ad: Mapping[str, Any]) -> dict[str, str]:
    """What `$ENV(NAME)` means in the DAG's nodes: the environment of its description, filled in.

    The description itself may use `$$(Attr)` of the site's ad and `$ENV(USER)`, `$ENV(PATH)`.
    Raises Undefined, AdError or BadEnvironment.
    """
    base = {"USER": dag.owner.username, "PATH": _SUBMIT_PATH}
    text = expand_environment(dag.environment_template, base)
    text, _ = expand_attributes(text, ad)
    return {**base, **environments.parse_environment(text)}
