"""Input of the negotiator: requests of idle DAGs, loads of sites, usage, concurrency limits.

Also requests of DAGs in any state, idle DAGs by submitter, loads and live pilots of sites for
pages, and cores in use by user and group.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Count, F, QuerySet, Sum, TextField, Value
from django.db.models.functions import Cast, Left

from matching.negotiation.concurrency_limits import Limit
from matching.negotiation.cycle_sites import Offer
from matching.negotiation.decision import Request, Share, Usage
from matching.negotiation.fairshare import limit_of
from wms.accounting import selectors as accounting
from wms.accounting.models import AccountingGroup
from wms.accounting.walls import Walls, seen_by, walls_of
from wms.core.models import User
from wms.dags.models import Dag, MatchRecord
from wms.dags.negotiation import bound
from wms.dags.negotiation.input_data import input_data_of
from wms.dags.negotiation.node_fit import NodeFitter
from wms.dags.priorities import counting_priority
from wms.dags.states import Binding, DagState
from wms.jobs.models import Attempt
from wms.pilots.models import Pilot
from wms.pilots.states import ALIVE
from wms.sites.ads import Load
from wms.sites.models import Site

#: Number of last sites in a DAG's ad, as LastMatchName0 (the latest), LastMatchName1, ...
LAST_MATCHES = 5
#: Length to which the reasons for leaving sites are cut.
_REASON_LENGTH = 500
_COLUMNS = (
    "pk", "name", "owner_id", "owner__username", "accounting_group_id", "accounting_group__name",
    "ad_attributes", "node_count", "done_count", "failed_count", "futile_count",
    "skipped_count", "concurrency_limits", "rematch_count", "weight", "takes_limits", "needs_text",
    "need_nodes", "binding", "input_node", "near_inputs__sites", "near_inputs__told",
    "far_inputs__sites", "far_inputs__told", "far_inputs__tenths",
)  # fmt: skip


@dataclass(slots=True)
class _MatchHistory:
    """Earlier sites of a DAG, latest first, and those that it avoids, with the reasons."""

    names: list[str] = field(default_factory=list)
    avoided: dict[int, datetime] = field(default_factory=dict)
    left_because: dict[int, str] = field(default_factory=dict)


def idle_requests(fitter: NodeFitter | None = None) -> list[Request]:
    """Requests of all idle DAGs, those of a higher priority first, else in the order of submission.

    DAGs that an earlier cycle had no time for come first among those of their priority.
    """
    return requests_of(_in_request_order(_unmatched_dags()), fitter)


def requests_of(dags: QuerySet[Dag], fitter: NodeFitter | None = None) -> list[Request]:
    """Requests of these DAGs in any state; two queries.

    Amounts of limits that a DAG takes already are not asked for again. With a fitter they know
    where their nodes can run: all of those with needs, unless its time is over.
    """
    histories = _match_histories(dags)
    nothing = _MatchHistory()
    weighed = dags.annotate(
        weight=bound.weight_of_request(),
        takes_limits=bound.takes_limits_already(),
        needs_text=Cast("node_needs", TextField()),
    )
    return [
        _request(row, histories.get(row[0], nothing), fitter)
        for row in weighed.values_list(*_COLUMNS)
    ]


def _request(row: tuple[Any, ...], history: _MatchHistory, fitter: NodeFitter | None) -> Request:
    (
        dag_id, name, owner_id, owner, group_id, group, expressions, nodes, done, failed, futile,
        skipped, limits, rematches, weight, takes_limits, needs_text, need_nodes, binding,
        input_node, *found,
    ) = row  # fmt: skip
    inputs = input_data_of(*found)
    near = None if inputs is None else inputs.sites
    unfinished = nodes - done - failed - futile - skipped
    values = {
        "MyType": "Job",
        "TargetType": "Machine",
        "Owner": owner,
        "DagName": name,
        "DagId": dag_id,
        "NodesTotal": nodes,
        "NodesUnfinished": unfinished,
        "Rematches": rematches,
    }
    if group:
        values["AccountingGroup"] = group
    for number, site in enumerate(history.names[:LAST_MATCHES]):
        values[f"LastMatchName{number}"] = site
    return Request(
        dag_id=dag_id,
        expressions=expressions,
        values=values,
        submitter=submitter_key(owner_id, group_id),
        group=group or "",
        unfinished_nodes=weight,
        limits={} if takes_limits else limits,
        avoided=history.avoided,
        left_because=history.left_because,
        node_fit=fitter.fit(needs_text, owner=owner, group=group or "", near=near)
        if fitter is not None and (need_nodes or near is not None)
        else None,
        nodes=need_nodes if near is None else [*need_nodes, input_node],
        bound_singly=binding == Binding.JOB,
        inputs="" if inputs is None else inputs.told,
        nearness=() if inputs is None or fitter is None else fitter.near(inputs.tenths),
    )


def _match_histories(dags: QuerySet[Dag]) -> dict[int, _MatchHistory]:
    records = MatchRecord.objects.filter(
        dag__in=dags.order_by().values("pk"), ended_at__isnull=False
    ).order_by("-matched_at", "-pk")
    histories: dict[int, _MatchHistory] = defaultdict(_MatchHistory)
    columns = ("dag_id", "site_id", "site__name", "avoided_until", Left("reason", _REASON_LENGTH))
    for dag_id, site_id, name, until, reason in records.values_list(*columns):
        history = histories[dag_id]
        history.names.append(name)
        if until is not None:
            history.avoided[site_id] = max(until, history.avoided.get(site_id, until))
            if reason:
                history.left_because.setdefault(site_id, reason)
    return dict(histories)


def submitter_key(user_id: int, group_id: int | None) -> str:
    """Key of a submitter from ids, since names of users may look like names of groups."""
    return f"{user_id}/{group_id or ''}"


def idle_by_submitter() -> dict[str, list[int]]:
    """Ids of the idle DAGs of each submitter, in the order of their requests."""
    ids: dict[str, list[int]] = defaultdict(list)
    rows = _in_request_order(_unmatched_dags())
    for dag_id, owner_id, group_id in rows.values_list("pk", "owner_id", "accounting_group_id"):
        ids[submitter_key(owner_id, group_id)].append(dag_id)
    return dict(ids)


def _unmatched_dags() -> QuerySet[Dag]:
    """Idle DAGs that need a site: not inner or followed ones, nor those bound job by job."""
    return Dag.objects.filter(
        state=DagState.IDLE, parent_node=None, is_followed=False, binding=Binding.SITE
    )


def _in_request_order(dags: QuerySet[Dag]) -> QuerySet[Dag]:
    """In the order in which a submitter's requests are tried; of submitters the shares decide."""
    return dags.order_by(counting_priority().desc(), F("looked_at").asc(nulls_first=True), "pk")


def loads_by_site() -> dict[int, Load]:
    """Load of bound DAGs by site id; one query."""
    first, *others = bound.counts("place")
    loads: dict[int, Load] = defaultdict(Load)
    for site_id, dags, nodes in first.union(*others, all=True):
        loads[site_id] = _more(loads[site_id], dags, nodes)
    return dict(loads)


def load_at(sites: QuerySet[Site]) -> Load:
    """Load of a site, or of several together; one query."""
    ids = sites.order_by().values("pk")
    first, *others = (part.filter(place__in=ids) for part in bound.counts("place"))
    load = Load()
    for _, dags, nodes in first.union(*others, all=True):
        load = _more(load, dags, nodes)
    return load


def _more(load: Load, dags: int, nodes: int) -> Load:
    return Load(dags=load.dags + dags, unfinished_nodes=load.unfinished_nodes + nodes)


@dataclass(slots=True)
class SiteWork:
    """Load of a site, and the number of its live pilots by state."""

    load: Load = field(default_factory=Load)
    pilots: dict[str, int] = field(default_factory=dict)


def work_by_site() -> dict[int, SiteWork]:
    """Load and pilots by site id; sites without any are absent. One query."""
    loads = [part.annotate(of_pilots=Value("")) for part in bound.counts("place")]
    alive = Pilot.objects.filter(state__in=ALIVE).order_by()
    pilots = alive.values_list("queue__site_id").annotate(
        counted=Count("pk"), unfinished=Sum(Value(0)), of_pilots=F("state")
    )
    work: dict[int, SiteWork] = defaultdict(SiteWork)
    for site_id, count, nodes, state in pilots.union(*loads, all=True):
        here = work[site_id]
        if state:
            here.pilots[state] = count
        else:
            here.load = _more(here.load, count, nodes)
    return dict(work)


def usage(offers: Iterable[Offer]) -> Usage:
    """Usage for the fair share: priorities, groups, and the matches held now."""
    held_by_submitter, held_by_group = _held_matches({offer.site_id: offer for offer in offers})
    shares = {
        submitter_key(share.user_id, share.group_id): Share(
            share.effective_priority,
            held_by_submitter.get(submitter_key(share.user_id, share.group_id), 0.0),
        )
        for share in accounting.submitters()
    }
    return Usage(shares, accounting.groups(), held_by_group)


def _held_matches(offers: Mapping[int, Offer]) -> tuple[dict[str, float], dict[str, float]]:
    first, *others = bound.counts("holder", "group", "group_name", "place")
    by_submitter: dict[str, float] = defaultdict(float)
    by_group: dict[str, float] = defaultdict(float)
    for owner_id, group_id, group, site_id, dags, nodes in first.union(*others, all=True):
        size = offers[site_id].group_size if site_id in offers else None
        weight = float(dags) if size is None else nodes / size
        by_submitter[submitter_key(owner_id, group_id)] += weight
        by_group[group or ""] += weight
    return dict(by_submitter), dict(by_group)


def concurrency_limits(requests: Iterable[Request]) -> dict[str, Limit]:
    """Concurrency limits of these requests, by the names that they use."""
    names = {name for request in requests for name in request.limits}
    if not names:
        return {}
    configured, used = accounting.limits(), limits_in_use()
    maxima = {name: limit_of(name, configured)[1] for name in names}
    return {
        name: Limit(maximum, used.get(name, 0.0))
        for name, maximum in maxima.items()
        if maximum is not None
    }


def limits_in_use() -> dict[str, float]:
    """Amount of each concurrency limit in use by bound DAGs, by the names that they use."""
    return _limits_of(bound.dags_that_take_limits())


def names_in_use(user: User) -> set[str] | None:
    """Names of limits that bound DAGs use which the user may see; None for who sees all."""
    if walls_of(user).is_open:
        return None
    return set(_limits_of(seen_by(user, bound.dags_that_take_limits(), Walls.by_group)))


def _limits_of(dags: QuerySet[Dag]) -> dict[str, float]:
    used: dict[str, float] = defaultdict(float)
    rows = dags.exclude(concurrency_limits={})
    for limits in rows.values_list("concurrency_limits", flat=True):
        for name, amount in limits.items():
            used[name] += amount
    return dict(used)


def used_slots() -> dict[tuple[int, int | None], float]:
    """Cores of running jobs by user id and accounting group id, of whatever they were made by."""
    rows = (
        Attempt.objects.filter(outcome="")
        .order_by()
        .values_list("job__owner_id", "owner_group")
        .annotate(held=Sum("cores"))
    )
    groups: dict[str, int] = dict(AccountingGroup.objects.values_list("name", "pk"))
    used: dict[tuple[int, int | None], float] = defaultdict(float)
    for owner_id, group, cores in rows:
        used[owner_id, groups.get(group)] += cores
    return dict(used)
