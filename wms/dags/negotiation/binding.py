"""Binding of matched DAGs to their sites, with ad and environment; reasons of unmatched DAGs.

DAGs with a faulty ad or environment are held. Also the environment of a DAG (`$ENV`) at a site, and
which DAGs a cycle had time to look at.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from django.db import connection, transaction
from psycopg.types.json import Jsonb

from matching.descriptions.substitution import EXPRESSION_OPENING
from matching.negotiation.cycle_sites import Offer
from matching.negotiation.decision import Decision, Match, Request
from matching.negotiation.unmatched_reasons import Kind, Leftover
from wms.core.actors import Actor
from wms.dags import lifecycle
from wms.dags.models import Dag, MatchRecord
from wms.dags.negotiation.requests import requests_of
from wms.dags.negotiation.sql import BIND_DAGS, NOTE_REASONS
from wms.dags.states import DagCause, DagState
from wms.jobs.description.site_environment import site_environment
from wms.sites.ads import match_attributes
from wms.sites.throttling import note_matches

log = structlog.get_logger(__name__)
_ACTOR = Actor.system("negotiator")
#: Value of `$ENV(PATH)` in a DAG's own environment; the server's environment is not used.
_SUBMIT_PATH = "/usr/local/bin:/usr/bin:/bin"
#: Number of DAGs bound in one transaction, so that their rows are locked for a short time.
_BATCH = 1000


def carry_out(decision: Decision, offers: Iterable[Offer], *, now: datetime) -> int:
    """Bind the matched DAGs that are still idle, and store the reasons of unmatched ones.

    A DAG held or removed meanwhile is not bound. DAGs are bound in batches: after a kill the rest
    stays idle until the next cycle. Returns the number of bound DAGs.
    """
    ads = {offer.site_id: match_attributes(offer.ad) for offer in offers}
    _hold_faulty(decision)
    store_reasons(decision.unmatched, states=[DagState.IDLE])
    _store_looked_at(decision, now)
    matches = decision.matches
    return sum(
        _bind_batch(matches[start : start + _BATCH], ads, now)
        for start in range(0, len(matches), _BATCH)
    )


def _hold_faulty(decision: Decision) -> None:
    faulty: dict[str, list[int]] = defaultdict(list)
    for dag_id, leftover in decision.unmatched.items():
        if leftover.kind is Kind.FAULT:
            faulty[leftover.text].append(dag_id)
    for reason, ids in faulty.items():
        lifecycle.apply_to_dags("hold", ids, actor=_ACTOR, reason=reason, cause=DagCause.AD)


def store_reasons(reasons: Mapping[int, Leftover | None], *, states: Sequence[str]) -> None:
    """Store why DAGs that are in one of these states are left over; None where they are not."""
    if not reasons:
        return
    places = {left: place for place, left in enumerate(dict.fromkeys(reasons.values()), start=1)}
    values: dict[str, Any] = {
        "dags": list(reasons),
        "places": [places[left] for left in reasons.values()],
        "reasons": [left.text if left is not None else "" for left in places],
        "kinds": [left.kind.value if left is not None else "" for left in places],
        "states": [str(state) for state in states],
    }
    with connection.cursor() as cursor:
        cursor.execute(NOTE_REASONS, values)


def _store_looked_at(decision: Decision, now: datetime) -> None:
    """Store which DAGs the cycle has looked at, so that the others come first in the next one.

    After a cycle with time for all, the order is that of submission again.
    """
    if not decision.is_cut:
        Dag.objects.filter(looked_at__isnull=False).update(looked_at=None)
    else:
        looked_at = [
            dag_id for dag_id, left in decision.unmatched.items() if left.kind is not Kind.UNSEEN
        ]
        Dag.objects.filter(pk__in=looked_at).update(looked_at=now)


@transaction.atomic
def _bind_batch(matches: Sequence[Match], ads: Mapping[int, dict[str, Any]], now: datetime) -> int:
    by_dag = {match.dag_id: match for match in matches}
    idle = (
        Dag.objects.filter(pk__in=by_dag, state=DagState.IDLE)
        .select_related("owner")
        .only("environment_template", "owner__username")
        .order_by("pk")
        .select_for_update(of=("self",))
    )
    site_environments = _site_environments(list(idle), by_dag, ads)
    bound = [by_dag[dag_id] for dag_id in site_environments]
    _store(bound, site_environments, ads, now)
    facts = {
        match.dag_id: {
            "site": ads[match.site_id].get("Name", ""),
            "dag_rank": match.dag_rank,
            "site_rank": match.site_rank,
        }
        for match in bound
    }
    lifecycle.apply_to_dags("match", [match.dag_id for match in bound], actor=_ACTOR, facts=facts)
    note_matches(Counter(match.site_id for match in bound))
    MatchRecord.objects.bulk_create(
        MatchRecord(
            dag_id=match.dag_id,
            site_id=match.site_id,
            matched_at=now,
            dag_rank=match.dag_rank,
            site_rank=match.site_rank,
        )
        for match in bound
    )
    return len(bound)


@dataclass(frozen=True, slots=True)
class _SiteEnvironment:
    """Environment of a DAG at its site, and the values of `$$(...)` used in it."""

    environment: dict[str, str]
    substitutions: dict[str, str]


def _site_environments(
    dags: Iterable[Dag], matches: Mapping[int, Match], ads: Mapping[int, dict[str, Any]]
) -> dict[int, _SiteEnvironment]:
    """Environments by DAG; a DAG whose description is undefined at its site is held."""
    environments_by_dag: dict[int, _SiteEnvironment] = {}
    own_ads = _own_ads(dags)
    for dag in dags:
        ad = ads[matches[dag.pk].site_id]
        try:
            environment, substitutions = dag_environment(dag, ad, own_ads.get(dag.pk))
        except Exception as error:
            # Any fault of one DAG holds that DAG only: the others are bound.
            if not isinstance(error, ValueError):
                log.exception("dag_environment_failed", dag=dag.pk)
            reason = f"matched to {ad.get('Name')}, but its environment cannot be made: {error}"
            lifecycle.apply_to_dags(
                "hold", [dag.pk], actor=_ACTOR, reason=reason, cause=DagCause.AD
            )
            continue
        environments_by_dag[dag.pk] = _SiteEnvironment(environment, substitutions)
    return environments_by_dag


def _own_ads(dags: Iterable[Dag]) -> dict[int, Request]:
    """Requests of the DAGs whose environment uses expressions of their own ads."""
    ids = [dag.pk for dag in dags if EXPRESSION_OPENING in dag.environment_template]
    if not ids:
        return {}
    return {request.dag_id: request for request in requests_of(Dag.objects.filter(pk__in=ids))}


def _store(
    bound: Sequence[Match],
    site_environments: Mapping[int, _SiteEnvironment],
    ads: Mapping[int, dict[str, Any]],
    now: datetime,
) -> None:
    if not bound:
        return
    rows = [
        {
            "dag_id": match.dag_id,
            "site_id": match.site_id,
            "environment": site_environments[match.dag_id].environment,
            "substitutions": site_environments[match.dag_id].substitutions,
        }
        for match in bound
    ]
    sites = {match.site_id for match in bound}
    attributes = [{"site_id": site, "attributes": ads[site]} for site in sorted(sites)]
    values: dict[str, Any] = {"now": now, "bound": Jsonb(rows), "ads": Jsonb(attributes)}
    with connection.cursor() as cursor:
        cursor.execute(BIND_DAGS, values)


def dag_environment(
    dag: Dag, ad: Mapping[str, Any], own: Request | None
) -> tuple[dict[str, str], dict[str, str]]:
    """Environment for `$ENV(NAME)` in the DAG's nodes, with all references expanded.

    The template may use `$$(Attr)` of the site's ad, `$$([expression])` of this ad and the DAG's
    `own` one, `$ENV(USER)` and `$ENV(PATH)`. Also returns the used attributes as `MATCH_<Attr>`.
    Raises Undefined, AdError, BadEnvironment or ValueError.
    """
    return site_environment(
        dag.environment_template,
        ad,
        base=base_environment(dag),
        expressions=own.expressions if own else {},
        values=own.values if own else {},
    )


def base_environment(dag: Dag) -> dict[str, str]:
    """What `$ENV(NAME)` means in the template of a DAG's environment itself."""
    return {"USER": dag.owner.username, "PATH": _SUBMIT_PATH}
