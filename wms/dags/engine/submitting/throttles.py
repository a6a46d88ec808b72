"""Throttles on submission: how many ready nodes of a DAG may be submitted now, and which.

By the limits of the DAG, of its categories, and those shared by DAGs, whose rows are locked for
that. Also why there is no capacity, the columns of ready nodes that are read for submission, and
the DAGs that limits keep back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.db.models import F, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from wms.dags.engine import transitions
from wms.dags.engine.round import Round
from wms.dags.language.spec import RunOptions
from wms.dags.models import Dag, Node, SharedLimit
from wms.dags.reading.dag_jobs import jobs_of
from wms.dags.states import COUNTED_KINDS, DAG_ACTIVE, NodeKind, NodeState

_IDLE_JOBS = ("received", "waiting", "matched", "held")


class ReadyNode(NamedTuple):
    """Columns of a ready node that its submission needs: of `Node`, and the last of `NodeWork`.

    Thousands are read in each round, most of them for a few values only.
    """

    pk: int
    name: str
    kind: str
    submit_description_id: int | None
    directory: str
    variables: dict[str, str]
    features: dict[str, Any] | None
    category: str
    retry_number: int
    pre_code: int | None


_IN_TURN = (F("priority").desc(), "ready_rank", "ordinal")
_COLUMNS = (*ReadyNode._fields[:-1], "work__pre_code")


def ready_nodes(nodes: QuerySet[Node]) -> list[ReadyNode]:
    """These nodes, in their order. One query."""
    return [ReadyNode(*row) for row in nodes.values_list(*_COLUMNS)]


@dataclass(slots=True)
class Capacity:
    """Number of nodes that may still be submitted: in all, and of each category with a limit.

    `reason` names the limit that is reached when `nodes` is 0, `reasons` that of a category.
    `data_nodes` is the number of DATA nodes, which the DAG's limits of jobs do not concern: the
    placement has limits of its own.
    """

    nodes: int
    data_nodes: int
    categories: dict[str, int] = field(default_factory=dict)
    reason: str = ""
    reasons: dict[str, str] = field(default_factory=dict)

    def narrow(self, nodes: int, reason: str) -> None:
        """Apply a further limit that leaves this number of nodes."""
        self.narrow_jobs(nodes, reason)
        self.data_nodes = max(min(nodes, self.data_nodes), 0)

    def narrow_jobs(self, nodes: int, reason: str) -> None:
        """Apply a further limit on nodes that are no DATA nodes."""
        if nodes < self.nodes:
            self.nodes, self.reason = max(nodes, 0), reason

    def narrow_category(self, category: str, nodes: int, reason: str) -> None:
        """Apply a further limit on the nodes of a category."""
        if category not in self.categories or nodes < self.categories[category]:
            self.categories[category] = max(nodes, 0)
            self.reasons[category] = reason


def capacity_of(round_: Round, *, most: int) -> Capacity:
    """Capacity for nodes of a DAG in this round. Locks the shared limits that concern it."""
    limits = LimitsInUse([round_.dag])
    return capacity_under(round_.dag, round_.options, limits.of(round_.dag), most=most)


class LimitsInUse:
    """The shared limits that concern DAGs of rounds, locked, with the nodes submitted under them.

    Of these DAGs by their rounds, of others by their rows.
    """

    def __init__(self, dags: Sequence[Dag]) -> None:
        self._dags = dags
        locked = list(limits_of(*dags).select_for_update(of=("self",)))
        # Counted when all of them are locked, and not by the statement that waited for the locks.
        self._used = {limit: self._submitted_under(limit) for limit in locked}

    def of(self, dag: Dag) -> list[tuple[SharedLimit, int]]:
        """The limits that a DAG is under, with their use."""
        return [(limit, used) for limit, used in self._used.items() if _is_under(dag, limit)]

    def add(self, dag: Dag, nodes: Sequence[ReadyNode]) -> None:
        """Count nodes that are about to be submitted."""
        for limit in self._used:
            if _is_under(dag, limit):
                self._used[limit] += sum(limit.category in ("", node.category) for node in nodes)

    def _submitted_under(self, limit: SharedLimit) -> int:
        own = [dag for dag in self._dags if _is_under(dag, limit)]
        # Held and halted DAGs have nodes under way as well, and so have those that left their site.
        dags = Dag.objects.filter(state__in=[*DAG_ACTIVE, "idle"]).exclude(
            pk__in=[dag.pk for dag in own]
        )
        if limit.owner_id is not None:
            dags = dags.filter(owner_id=limit.owner_id)
        if limit.site_id is not None:
            dags = dags.filter(site_id=limit.site_id)
        if limit.category:
            under_way = dags.filter(submitted_count__gt=0).values_list("category_counts", flat=True)
            of_own = [dag.category_counts for dag in own]
            return sum(counts.get(limit.category, 0) for counts in [*of_own, *under_way])
        total: int = dags.aggregate(total=Coalesce(Sum("submitted_count"), 0))["total"]
        return total + sum(dag.submitted_count for dag in own)


def capacity_under(
    dag: Dag, options: RunOptions, shared: Iterable[tuple[SharedLimit, int]], *, most: int
) -> Capacity:
    """Capacity for nodes of a DAG under its own limits and shared ones with their use."""
    capacity = Capacity(most, most)
    if options.max_jobs:
        submitted = dag.submitted_count - dag.category_counts.get(transitions.DATA_CATEGORY, 0)
        capacity.narrow_jobs(options.max_jobs - submitted, f"at most {options.max_jobs} at once")
    if options.max_idle and capacity.nodes:
        idle = _idle_jobs(dag)
        capacity.narrow_jobs(options.max_idle - idle, f"{idle} of its jobs are idle")
    if dag.category_limits:
        for category, limit in dag.category_limits.items():
            reason = f"at most {limit} of category {category} at once"
            capacity.narrow_category(category, limit - dag.category_counts.get(category, 0), reason)
    for each, submitted in shared:
        _narrow_shared(capacity, each, submitted)
    return capacity


def limits_of(*dags: Dag) -> QuerySet[SharedLimit]:
    """The shared limits that a DAG is under, or that any of several may be under."""
    owners = {dag.owner_id for dag in dags}
    sites = {dag.site_id for dag in dags if dag.site_id is not None}
    limits = SharedLimit.objects.filter(
        Q(owner=None) | Q(owner__in=owners), Q(site=None) | Q(site__in=sites)
    )
    # Whose and where stands in the reason.
    return limits.select_related("owner", "site").order_by("pk")


def ready_by_dag(dags: Iterable[Dag]) -> dict[int, list[ReadyNode]]:
    """All ready nodes of these DAGs that limits concern, in their turn. One query."""
    found: dict[int, list[ReadyNode]] = defaultdict(list)
    rows = _ready_queue(*dags).order_by("dag_id", *_IN_TURN).values_list("dag_id", *_COLUMNS)
    for dag_id, *columns in rows:
        found[dag_id].append(ReadyNode(*columns))
    return found


def _ready_queue(*dags: Dag) -> QuerySet[Node]:
    ready = Node.objects.filter(dag__in=dags, state=NodeState.READY, kind__in=COUNTED_KINDS)
    # The index of the ready queue knows no states.
    return ready.filter(ready_rank__isnull=False)


def take_ready(round_: Round, capacity: Capacity) -> list[ReadyNode]:
    """Ready nodes within the capacity, by priority and rank.

    Nodes of a full category are passed over; they keep their rank.
    """
    ready = _ready_queue(round_.dag).order_by(*_IN_TURN)
    left = dict(capacity.categories)
    if capacity.nodes == capacity.data_nodes:
        return _take(ready, capacity.nodes, left)
    taken = _take(ready.exclude(kind=NodeKind.DATA), capacity.nodes, left)
    return taken + _take(ready.filter(kind=NodeKind.DATA), capacity.data_nodes, left)


def _take(ready: QuerySet[Node], most: int, left: dict[str, int]) -> list[ReadyNode]:
    """The first of these nodes, within the capacity of their categories."""
    taken: list[ReadyNode] = []
    # Each turn finds a category full that was not full before, or is the last.
    for _ in range(len(left) + 1):
        if len(taken) >= most:
            break
        full = [category for category, number in left.items() if number <= 0]
        taken_ids = [node.pk for node in taken] if full else []
        nodes = ready_nodes(
            ready.exclude(category__in=full).exclude(pk__in=taken_ids)[: most - len(taken)]
        )
        passed = 0
        for node in nodes:
            if left.get(node.category, 1) <= 0:
                passed += 1
                continue
            if node.category in left:
                left[node.category] -= 1
            taken.append(node)
        if not passed:
            break
    return taken


def dags_waiting_for_capacity() -> list[int]:
    """Running DAGs with ready nodes that limits outside of their own events keep back."""
    waiting = Dag.objects.filter(state="running", ready_count__gt=0)
    under_limit = Q(options__max_idle__gt=0)
    if SharedLimit.objects.exists():
        under_limit |= Q(owner__dag_limits__isnull=False) | Q(site__dag_limits__isnull=False)
        if SharedLimit.objects.filter(owner=None, site=None).exists():
            under_limit = Q()
    return list(waiting.filter(under_limit).values_list("pk", flat=True).distinct())


def _idle_jobs(dag: Dag) -> int:
    """Jobs of the DAG's nodes that neither run nor have ended; held ones count."""
    return jobs_of(dag.pk).filter(state__in=_IDLE_JOBS).count()


def _is_under(dag: Dag, limit: SharedLimit) -> bool:
    return limit.owner_id in (None, dag.owner_id) and limit.site_id in (None, dag.site_id)


def _narrow_shared(capacity: Capacity, limit: SharedLimit, submitted: int) -> None:
    left = limit.max_jobs - submitted
    if limit.category:
        capacity.narrow_category(limit.category, left, _reason_of(limit))
    else:
        capacity.narrow(left, _reason_of(limit))


def _reason_of(limit: SharedLimit) -> str:
    return f"at most {limit.max_jobs} {limit} at once"
