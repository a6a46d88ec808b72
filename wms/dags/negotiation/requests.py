"""What the negotiator has to know of DAGs: who wants a site, and who holds what already."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Count, F, OuterRef, QuerySet, Subquery, Sum, Value
from django.db.models.functions import Coalesce, Left

from matching.cycle_sites import Offer
from matching.fairshare import limit_of
from matching.negotiation import Limit, Request, Share, Usage
from wms.accounting import selectors as accounting
from wms.dags.models import Dag, MatchRecord
from wms.dags.reading.dag_jobs import TOLD_OF_JOB, told_dag
from wms.dags.states import DagState
from wms.jobs.models import Attempt
from wms.pilots.models import Pilot
from wms.pilots.states import ALIVE
from wms.sites.ads import Load
from wms.sites.models import Site

#: So many of its last sites a DAG's ad names, as LastMatchName0 (the latest), LastMatchName1, ...
LAST_MATCHES = 5
#: So much of the reasons for which DAGs left sites is read: they are for people.
_REASON_LENGTH = 500
_COLUMNS = (
    "pk", "name", "owner_id", "owner__username", "accounting_group_id", "accounting_group__name",
    "ad_attributes", "node_count", "done_count", "failed_count", "futile_count",
    "concurrency_limits", "rematch_count",
)  # fmt: skip


@dataclass(slots=True)
class _Past:
    """Where a DAG was before: names of sites, latest first, and those that it avoids, and why."""

    names: list[str] = field(default_factory=list)
    avoided: dict[int, datetime] = field(default_factory=dict)
    left_because: dict[int, str] = field(default_factory=dict)


def idle_requests() -> list[Request]:
    """The requests of all idle DAGs, in the order of submission.

    DAGs that an earlier negotiation had no time for come first.
    """
    return requests_of(_in_turn(_looking_for_a_site()))


def requests_of(dags: QuerySet[Dag]) -> list[Request]:
    """The requests of these DAGs, whatever their states; two queries."""
    pasts = _pasts(dags)
    nothing = _Past()
    return [_request(row, pasts.get(row[0], nothing)) for row in dags.values_list(*_COLUMNS)]


def _request(row: tuple[Any, ...], past: _Past) -> Request:
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
    for number, site in enumerate(past.names[:LAST_MATCHES]):
        values[f"LastMatchName{number}"] = site
    return Request(
        dag_id=dag_id,
        expressions=expressions,
        values=values,
        submitter=submitter_key(owner_id, group_id),
        group=group or "",
        unfinished_nodes=max(1, unfinished),
        limits=limits,
        avoided=past.avoided,
        left_because=past.left_because,
    )


def _pasts(dags: QuerySet[Dag]) -> dict[int, _Past]:
    records = MatchRecord.objects.filter(
        dag__in=dags.order_by().values("pk"), ended_at__isnull=False
    ).order_by("-matched_at", "-pk")
    pasts: dict[int, _Past] = defaultdict(_Past)
    columns = ("dag_id", "site_id", "site__name", "avoided_until", Left("reason", _REASON_LENGTH))
    for dag_id, site_id, name, until, reason in records.values_list(*columns):
        past = pasts[dag_id]
        past.names.append(name)
        if until is not None:
            past.avoided[site_id] = max(until, past.avoided.get(site_id, until))
            if reason:
                past.left_because.setdefault(site_id, reason)
    return dict(pasts)


def submitter_key(user_id: int, group_id: int | None) -> str:
    """Tells submitters apart; names of users may contain the points of groups' names."""
    return f"{user_id}/{group_id or ''}"


def idle_by_submitter() -> dict[str, list[int]]:
    """The ids of the idle DAGs of each submitter, in the order of their turns."""
    found: dict[str, list[int]] = defaultdict(list)
    rows = _in_turn(_looking_for_a_site())
    for dag_id, owner_id, group_id in rows.values_list("pk", "owner_id", "accounting_group_id"):
        found[submitter_key(owner_id, group_id)].append(dag_id)
    return dict(found)


def _looking_for_a_site() -> QuerySet[Dag]:
    """Idle DAGs; one inside of another goes where that goes, one that is followed nowhere."""
    return Dag.objects.filter(state=DagState.IDLE, parent_node=None, is_followed=False)


def _in_turn(dags: QuerySet[Dag]) -> QuerySet[Dag]:
    return dags.order_by(F("looked_at").asc(nulls_first=True), "pk")


def loads_by_site() -> dict[int, Load]:
    """What runs at each site now, by the site's id; one query.

    A held DAG keeps its site but takes nobody's place there.
    """
    rows = _loading().order_by().values_list("site_id")
    counted = rows.annotate(dags=Count("pk"), unfinished=Sum(_UNFINISHED))
    return {site_id: Load(dags=dags, unfinished_nodes=nodes) for site_id, dags, nodes in counted}


def with_loads(sites: QuerySet[Site]) -> QuerySet[Site]:
    """Sites with what runs at each now, for `load_of`, in the same query: meant for few of them."""
    here = _loading().filter(site=OuterRef("pk")).order_by().values("site_id")
    return sites.annotate(
        load_dags=Coalesce(Subquery(here.annotate(n=Count("pk")).values("n")), 0),
        load_nodes=Coalesce(Subquery(here.annotate(n=Sum(_UNFINISHED)).values("n")), 0),
    )


def load_of(site: Any) -> Load:
    """What runs at a site that was read by `with_loads`."""
    return Load(dags=site.load_dags, unfinished_nodes=site.load_nodes)


def _loading() -> QuerySet[Dag]:
    """The DAGs that take a place at their sites."""
    return Dag.objects.filter(state=DagState.RUNNING, parent_node=None, is_followed=False)


@dataclass(slots=True)
class Work:
    """What is at a site now: its load, and its live pilots by state."""

    load: Load = field(default_factory=Load)
    pilots: dict[str, int] = field(default_factory=dict)


def work_by_site() -> dict[int, Work]:
    """What is at each site now, by the site's id; sites with nothing are absent. One query."""
    loads = _loading().order_by().values_list("site_id", Value("")).annotate(
        counted=Count("pk"), unfinished=Sum(_UNFINISHED)
    )  # fmt: skip
    alive = Pilot.objects.filter(state__in=ALIVE).order_by()
    pilots = alive.values_list("queue__site_id", "state").annotate(
        counted=Count("pk"), unfinished=Sum(Value(0))
    )
    work: dict[int, Work] = defaultdict(Work)
    for site_id, state, count, nodes in loads.union(pilots, all=True):
        if state:
            work[site_id].pilots[state] = count
        else:
            work[site_id].load = Load(dags=count, unfinished_nodes=nodes)
    return dict(work)


_UNFINISHED = F("node_count") - F("done_count") - F("failed_count") - F("futile_count")


def usage(offers: Iterable[Offer]) -> Usage:
    """Who is to be served before whom: priorities, groups, and the matches held now."""
    held_by_submitter, held_by_group = _held({offer.site_id: offer for offer in offers})
    shares = {
        submitter_key(share.user_id, share.group_id): Share(
            share.effective_priority,
            held_by_submitter.get(submitter_key(share.user_id, share.group_id), 0.0),
        )
        for share in accounting.submitters()
    }
    return Usage(shares, accounting.groups(), held_by_group)


def _held(offers: Mapping[int, Offer]) -> tuple[dict[str, float], dict[str, float]]:
    rows = (
        Dag.objects.filter(state=DagState.RUNNING, is_followed=False)
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
    """The limits that these requests are subject to, by the names that they use."""
    wanted = {name for request in requests for name in request.limits}
    if not wanted:
        return {}
    configured, used = accounting.limits(), limits_in_use()
    found = {name: limit_of(name, configured)[1] for name in wanted}
    return {
        name: Limit(maximum, used.get(name, 0.0))
        for name, maximum in found.items()
        if maximum is not None
    }


def limits_in_use() -> dict[str, float]:
    """How much of each concurrency limit the running DAGs take, by the names that they use."""
    used: dict[str, float] = defaultdict(float)
    rows = Dag.objects.filter(state=DagState.RUNNING).exclude(concurrency_limits={})
    for limits in rows.values_list("concurrency_limits", flat=True):
        for name, amount in limits.items():
            used[name] += amount
    return dict(used)


def used_slots() -> dict[tuple[int, int | None], float]:
    """The cores that each user's jobs have now, by user id and accounting group's id."""
    rows = list(
        Attempt.objects.filter(outcome="")
        .order_by()
        .values_list("job__owner_id", *TOLD_OF_JOB)
        .annotate(used=Sum("cores"))
    )
    told = (told_dag(topic, key) for _, topic, key, _ in rows)
    dags = {dag_id for dag_id in told if dag_id is not None}
    groups: dict[int | None, int | None] = dict(
        Dag.objects.filter(pk__in=dags, accounting_group__isnull=False).values_list(
            "pk", "accounting_group_id"
        )
    )
    used: dict[tuple[int, int | None], float] = defaultdict(float)
    for owner_id, topic, key, count in rows:
        used[owner_id, groups.get(told_dag(topic, key))] += count
    return dict(used)
