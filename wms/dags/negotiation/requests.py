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

from django.db.models import Count, F, OuterRef, QuerySet, Subquery, Sum, Value
from django.db.models.functions import Coalesce, Left

from matching.negotiation.concurrency_limits import Limit
from matching.negotiation.cycle_sites import Offer
from matching.negotiation.decision import Request, Share, Usage
from matching.negotiation.fairshare import limit_of
from wms.accounting import selectors as accounting
from wms.accounting.models import AccountingGroup
from wms.dags.models import Dag, MatchRecord
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
    "concurrency_limits", "rematch_count",
)  # fmt: skip


@dataclass(slots=True)
class _MatchHistory:
    """Earlier sites of a DAG, latest first, and those that it avoids, with the reasons."""

    names: list[str] = field(default_factory=list)
    avoided: dict[int, datetime] = field(default_factory=dict)
    left_because: dict[int, str] = field(default_factory=dict)


def idle_requests() -> list[Request]:
    """Requests of all idle DAGs in the order of submission.

    DAGs that an earlier cycle had no time for come first.
    """
    return requests_of(_in_request_order(_unmatched_dags()))


def requests_of(dags: QuerySet[Dag]) -> list[Request]:
    """Requests of these DAGs in any state; two queries."""
    histories = _match_histories(dags)
    nothing = _MatchHistory()
    return [_request(row, histories.get(row[0], nothing)) for row in dags.values_list(*_COLUMNS)]


def _request(row: tuple[Any, ...], history: _MatchHistory) -> Request:
    (
        dag_id, name, owner_id, owner, group_id, group, expressions, nodes, done, failed, futile,
        limits, rematches,
    ) = row  # fmt: skip
    unfinished = nodes - done - failed - futile
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
        unfinished_nodes=max(1, unfinished),
        limits=limits,
        avoided=history.avoided,
        left_because=history.left_because,
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
    return dags.order_by(F("looked_at").asc(nulls_first=True), "pk")


def loads_by_site() -> dict[int, Load]:
    """Load of running DAGs by site id; one query.

    A held DAG keeps its site but does not count.
    """
    rows = _running_at_sites().order_by().values_list("site_id")
    counted = rows.annotate(dags=Count("pk"), unfinished=Sum(_UNFINISHED))
    return {site_id: Load(dags=dags, unfinished_nodes=nodes) for site_id, dags, nodes in counted}


def with_loads(sites: QuerySet[Site]) -> QuerySet[Site]:
    """Sites annotated with their loads for `load_of`, in the same query; for few sites."""
    here = _running_at_sites().filter(site=OuterRef("pk")).order_by().values("site_id")
    return sites.annotate(
        load_dags=Coalesce(Subquery(here.annotate(n=Count("pk")).values("n")), 0),
        load_nodes=Coalesce(Subquery(here.annotate(n=Sum(_UNFINISHED)).values("n")), 0),
    )


def load_of(site: Any) -> Load:
    """Load of a site that was read by `with_loads`."""
    return Load(dags=site.load_dags, unfinished_nodes=site.load_nodes)


def _running_at_sites() -> QuerySet[Dag]:
    """DAGs that count as matches of their sites."""
    return Dag.objects.filter(
        state=DagState.RUNNING, parent_node=None, is_followed=False, binding=Binding.SITE
    )


@dataclass(slots=True)
class SiteWork:
    """Load of a site, and the number of its live pilots by state."""

    load: Load = field(default_factory=Load)
    pilots: dict[str, int] = field(default_factory=dict)


def work_by_site() -> dict[int, SiteWork]:
    """Load and pilots by site id; sites without any are absent. One query."""
    loads = _running_at_sites().order_by().values_list("site_id", Value("")).annotate(
        counted=Count("pk"), unfinished=Sum(_UNFINISHED)
    )  # fmt: skip
    alive = Pilot.objects.filter(state__in=ALIVE).order_by()
    pilots = alive.values_list("queue__site_id", "state").annotate(
        counted=Count("pk"), unfinished=Sum(Value(0))
    )
    work: dict[int, SiteWork] = defaultdict(SiteWork)
    for site_id, state, count, nodes in loads.union(pilots, all=True):
        if state:
            work[site_id].pilots[state] = count
        else:
            work[site_id].load = Load(dags=count, unfinished_nodes=nodes)
    return dict(work)


_UNFINISHED = F("node_count") - F("done_count") - F("failed_count") - F("futile_count")


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
    rows = (
        Dag.objects.filter(state=DagState.RUNNING, is_followed=False, binding=Binding.SITE)
        .order_by()
        .values_list("owner_id", "accounting_group_id", "accounting_group__name", "site_id")
        .annotate(dags=Count("pk"), unfinished=Sum(_UNFINISHED))
    )
    by_submitter: dict[str, float] = defaultdict(float)
    by_group: dict[str, float] = defaultdict(float)
    for owner_id, group_id, group, site_id, dags, nodes in rows:
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
    """Amount of each concurrency limit in use by running DAGs, by the names that they use."""
    used: dict[str, float] = defaultdict(float)
    rows = Dag.objects.filter(state=DagState.RUNNING).exclude(concurrency_limits={})
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
