"""Negotiation of DAGs whose jobs are bound at the claim: which sites accept them, evaluated anew.

Those that are idle begin as soon as a site accepts them and no limit is reached; of those that run,
the waiting jobs move where the sites have changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction
from django.db.models import Q, QuerySet

from matching.negotiation.acceptance import Acceptance, accept, homeless_node
from matching.negotiation.concurrency_limits import LimitsInUse
from matching.negotiation.cycle_sites import Offer
from matching.negotiation.decision import Bounds, Request
from matching.negotiation.unmatched_reasons import Leftover
from wms.core.actors import Actor
from wms.dags import lifecycle
from wms.dags.models import Dag
from wms.dags.negotiation.binding import base_environment, store_reasons
from wms.dags.negotiation.node_fit import NodeFitter
from wms.dags.negotiation.requests import concurrency_limits, requests_of
from wms.dags.reading.dag_jobs import jobs_of
from wms.dags.states import Binding, DagState
from wms.jobs import operations as jobs
from wms.jobs.binding import scopes
from wms.jobs.models import SiteScope
from wms.jobs.states import JobState

_ACTOR = Actor.system("negotiator")
#: States of DAGs whose jobs wait now, or will when they are released.
_PLACED = (DagState.RUNNING, DagState.HALTED, DagState.HELD)
#: Number of DAGs that begin, and of those whose jobs move, in one transaction.
_BEGUN_AT_ONCE = 1000
_MOVED_AT_ONCE = 100
_NAMED_IN_EVENT = 20


@dataclass(frozen=True, slots=True)
class LateResult:
    """What came of it: the number of idle DAGs, of those that began, and of those whose sites have
    changed; and why the other idle ones wait.
    """

    idle: int = 0
    begun: int = 0
    changed: int = 0
    waiting: Mapping[int, Leftover] = field(default_factory=dict)


def negotiate(
    offers: Sequence[Offer], fitter: NodeFitter, now: datetime, *, bounds: Bounds
) -> LateResult:
    """Ask the sites about all DAGs whose jobs are bound at the claim, and act on the answers.

    Limits and groups concern the beginning of a DAG alone, and so does that each of its nodes can
    run at one of the sites. A DAG for which no time is left keeps
    its sites, but for those that have closed meanwhile; each cycle begins with other DAGs.
    """
    states = dict(_bound_by_job().values_list("pk", "state"))
    if not states:
        return LateResult()
    found = requests_of(_bound_by_job().order_by("pk"), fitter)
    requests = _turned([each for each in found if each.dag_id in states], now)
    accepted = accept(requests, offers, now, bounds=bounds)
    names = {offer.site_id: offer.name for offer in offers}
    idle = [each for each in found if states.get(each.dag_id) == DagState.IDLE]
    waiting = _obstacles(idle, accepted)
    starting = [request for request in idle if request.dag_id not in waiting]
    begun = _begin(starting, accepted, names, now)
    placed = {pk: each for pk, each in accepted.items() if states[pk] != DagState.IDLE}
    changed = _change(placed, {offer.name for offer in offers if not offer.closed}, names)
    known = {pk: each.leftover for pk, each in placed.items() if not each.is_unknown}
    store_reasons(known, states=_PLACED)
    if begun or changed:
        scopes.remove_unused_sets()
    return LateResult(len(idle), begun, changed, waiting)


def _bound_by_job() -> QuerySet[Dag]:
    return Dag.objects.filter(
        Q(state=DagState.IDLE) | Q(state__in=_PLACED, matched_at__isnull=False),
        binding=Binding.JOB,
        parent_node=None,
    )


def _turned(requests: Sequence[Request], now: datetime) -> list[Request]:
    """The requests, beginning with another one each time: none is always the one left over."""
    first = int(now.timestamp() * 7) % max(1, len(requests))
    return [*requests[first:], *requests[:first]]


def _obstacles(idle: Sequence[Request], accepted: Mapping[int, Acceptance]) -> dict[int, Leftover]:
    """Why idle DAGs cannot begin now: no site accepts one, or can run a node, or a limit is
    reached.
    """
    limits = LimitsInUse(concurrency_limits(idle))
    obstacles: dict[int, Leftover] = {}
    for request in idle:
        found = accepted[request.dag_id]
        obstacle = (
            found.leftover
            or homeless_node(request, found.site_ids)
            or limits.exceeded(request.limits)
        )
        if obstacle is not None:
            obstacles[request.dag_id] = obstacle
        else:
            limits.take(request.limits)
    return obstacles


def _begin(
    starting: Sequence[Request],
    accepted: Mapping[int, Acceptance],
    names: Mapping[int, str],
    now: datetime,
) -> int:
    sites = _names_by_dag({each.dag_id: accepted[each.dag_id] for each in starting}, names)
    return sum(
        _begin_batch(starting[start : start + _BEGUN_AT_ONCE], sites, now)
        for start in range(0, len(starting), _BEGUN_AT_ONCE)
    )


def _names_by_dag(
    accepted: Mapping[int, Acceptance], names: Mapping[int, str]
) -> dict[int, frozenset[str]]:
    """Names of the accepting sites by DAG; equal sets are one object."""
    by_ids: dict[frozenset[int], frozenset[str]] = {}
    for each in accepted.values():
        if each.site_ids not in by_ids:
            by_ids[each.site_ids] = frozenset(names[site_id] for site_id in each.site_ids)
    return {dag_id: by_ids[each.site_ids] for dag_id, each in accepted.items()}


@transaction.atomic
def _begin_batch(
    requests: Sequence[Request], sites: Mapping[int, frozenset[str]], now: datetime
) -> int:
    """Let those that are still idle begin."""
    by_id = {request.dag_id: request for request in requests}
    idle = list(
        Dag.objects.filter(pk__in=by_id, state=DagState.IDLE)
        .select_related("owner")
        .only("environment_template", "owner__username")
        .order_by("pk")
        .select_for_update(of=("self",))
    )
    set_ids = scopes.site_set_ids({sites[dag.pk] for dag in idle})
    scopes.store_scopes(
        [
            SiteScope(
                pk=dag.pk,
                sites_id=set_ids[sites[dag.pk]],
                environment_template=dag.environment_template,
                environment=base_environment(dag),
                own_ad={
                    "expressions": dict(by_id[dag.pk].expressions),
                    "values": dict(by_id[dag.pk].values),
                },
                changed_at=now,
            )
            for dag in idle
        ]
    )
    facts = {
        dag.pk: {
            "sites": sorted(sites[dag.pk])[:_NAMED_IN_EVENT],
            "site_count": len(sites[dag.pk]),
        }
        for dag in idle
    }
    applied = lifecycle.apply_to_dags(
        "match",
        [dag.pk for dag in idle],
        actor=_ACTOR,
        facts=facts,
        matched_at=now,
        unmatched_reason="",
        unmatched_kind="",
    )
    return len(applied.changed)


def _change(
    placed: Mapping[int, Acceptance], open_names: Collection[str], names: Mapping[int, str]
) -> int:
    """Give DAGs that run the sites that accept them now, and move their waiting jobs."""
    known = {pk: each for pk, each in placed.items() if not each.is_unknown}
    wanted = _names_by_dag(known, names)
    unknown = placed.keys() - known.keys()
    for dag_id, old in scopes.sites_of(unknown).items() if unknown else ():
        wanted[dag_id] = frozenset(old).intersection(open_names)
    set_ids = scopes.site_set_ids(set(wanted.values()))
    now_at = dict(SiteScope.objects.filter(pk__in=wanted).values_list("pk", "sites_id"))
    other = {
        pk: set_ids[sites]
        for pk, sites in sorted(wanted.items())
        if pk in now_at and now_at[pk] != set_ids[sites]
    }
    ids = list(other)
    return sum(
        _change_batch({pk: other[pk] for pk in ids[start : start + _MOVED_AT_ONCE]})
        for start in range(0, len(ids), _MOVED_AT_ONCE)
    )


@transaction.atomic
def _change_batch(set_by_dag: Mapping[int, int]) -> int:
    changed = scopes.change_scopes(set_by_dag)
    if changed:
        tree = Dag.objects.filter(Q(pk__in=changed) | Q(root_id__in=changed))
        waiting = jobs_of(*tree.values_list("pk", flat=True)).filter(state=JobState.WAITING)
        jobs.move_waiting(list(waiting.values_list("pk", flat=True)))
    return len(changed)
