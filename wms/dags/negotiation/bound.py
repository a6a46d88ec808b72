"""Bound DAGs: the one rule of what counts at sites, for owners and groups, and in limits.

A DAG counts from its match on, until it has ended or left the site and its last job there has ended
as well:

- Running, held and halted DAGs count at their site. A held DAG goes on there by a release, which
  asks nobody for room, even if no job of it is left; so its place is kept.
- A DAG that was taken back counts at the site that it left while jobs finish there, also while it
  is idle, or bound to another site, where it counts too.
- A removed DAG, and any that has ended, does not count: its jobs were ended with it.
- An idle DAG, and one held or halted before it had a site, counts nowhere else.

A job has ended when its event says so: the payload of a killed one stops with the next heartbeat of
its pilot. Inner DAGs take no place of their own; followed DAGs, and those whose jobs are bound at
the claim, take none at all.

In units of jobs a DAG weighs its unfinished nodes, at least 1. For a node with an inner DAG those
of the inner DAG count instead, at the site of the outermost one. A node whose jobs finish at a site
that the DAG has left weighs there, and not at the DAG's site.

Of concurrency limits each DAG takes its amount once, from the same match to the same end; a DAG
whose jobs are bound at the claim too, but no followed one.
"""

from __future__ import annotations

from typing import Any

from django.db.models import (
    Case,
    Count,
    Exists,
    F,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    Value,
    When,
)
from django.db.models.functions import Coalesce, Greatest

from wms.dags.models import Dag, LeftCluster
from wms.dags.states import COUNTED_KINDS, DAG_ACTIVE, DAG_TERMINAL, Binding, DagState, NodeState

_NOT_ENDED = sorted(set(DagState.values) - DAG_TERMINAL)
_ENDED = F("done_count") + F("failed_count") + F("futile_count") + F("skipped_count")
_UNFINISHED = F("node_count") - _ENDED
#: What an inner DAG weighs beyond its node.
_BEYOND_NODE = Greatest(_UNFINISHED, 1) - 1
_AT_SITE = Q(
    state__in=sorted(DAG_ACTIVE),
    parent_node=None,
    is_followed=False,
    binding=Binding.SITE,
    site__isnull=False,
)
_BY_CLAIM = Q(state__in=sorted(DAG_ACTIVE), binding=Binding.JOB, matched_at__isnull=False)
_INSIDE = Q(
    root__state__in=sorted(DAG_ACTIVE),
    root__is_followed=False,
    root__binding=Binding.SITE,
    root__site__isnull=False,
)
_IS_COUNTED_NODE = Q(node__kind__in=sorted(COUNTED_KINDS))
#: DAGs that may have left a site: others are not searched for what is left there.
_HAS_LEFT = Q(rematch_count__gt=0)


def counts(*columns: str) -> list[QuerySet[Any, Any]]:
    """Parts of the counts as tuples of these columns, DAGs and jobs; for one UNION ALL.

    Columns are `place` (a site id), `holder`, `group` (their ids) and `group_name`. Their sums over
    all parts are the counts.
    """
    return [
        _bound_dags().values_list(*columns).annotate(
            dags=Count("pk", filter=Q(parent_node=None)), jobs=Sum("weight")
        ),
        _still_there().values_list(*columns).annotate(
            dags=Count("dag", distinct=True), jobs=Count("pk")
        ),
        _counted_elsewhere().values_list(*columns).annotate(
            dags=Sum(Value(0)), jobs=-Count("pk", filter=_IS_COUNTED_NODE)
        ),
    ]  # fmt: skip


def dags_that_take_limits() -> QuerySet[Dag]:
    """DAGs whose amounts of concurrency limits are in use."""
    takes = _AT_SITE | _BY_CLAIM | Q(pk__in=left_clusters().values("dag"))
    return Dag.objects.filter(takes, state__in=_NOT_ENDED, parent_node=None)


def left_clusters() -> QuerySet[LeftCluster]:
    """Jobs left to finish, for which their nodes still wait."""
    return LeftCluster.objects.filter(node__state=NodeState.SUBMITTED, node__job_id=F("pk"))


def forget_ended_clusters() -> None:
    """Delete what is stored of jobs that were left to finish and have ended."""
    LeftCluster.objects.exclude(node__state=NodeState.SUBMITTED, node__job_id=F("pk")).delete()


def weight_of_request() -> Case:
    """Jobs with which a DAG will count at its next site: those of inner DAGs, none left behind."""
    inner = Dag.objects.filter(root=OuterRef("pk"), state__in=_NOT_ENDED).order_by().values("root")
    behind = left_clusters().filter(_IS_COUNTED_NODE, dag=OuterRef("pk")).order_by().values("dag")
    beyond = Coalesce(Subquery(inner.annotate(n=Sum(_BEYOND_NODE)).values("n")), 0)
    left = Coalesce(Subquery(behind.annotate(n=Count("pk")).values("n")), 0)
    return Case(
        When(_HAS_LEFT, then=Greatest(_UNFINISHED + beyond - left, 1)),
        default=Greatest(_UNFINISHED, 1),
    )


def takes_limits_already() -> Case:
    """Whether an idle DAG takes its amounts of limits: it has jobs at a site that it left."""
    left = Exists(left_clusters().filter(dag=OuterRef("pk")))
    return Case(When(_HAS_LEFT, then=left), default=Value(False))


def _bound_dags() -> QuerySet[Dag]:
    """DAGs at their sites, and DAGs inside of them, with what each adds to the jobs there."""
    is_outermost = Q(root=None)
    weight = Case(When(is_outermost, then=Greatest(_UNFINISHED, 1)), default=_BEYOND_NODE)
    return Dag.objects.filter(_AT_SITE | _INSIDE, state__in=_NOT_ENDED).order_by().annotate(
        weight=weight,
        place=Coalesce("root__site_id", "site_id"),
        holder=Coalesce("root__owner_id", "owner_id"),
        group=Case(
            When(is_outermost, then=F("accounting_group_id")),
            default=F("root__accounting_group_id"),
        ),
        group_name=Case(
            When(is_outermost, then=F("accounting_group__name")),
            default=F("root__accounting_group__name"),
        ),
    )  # fmt: skip


def _still_there() -> QuerySet[LeftCluster]:
    """Jobs at sites where their DAG is not bound any more."""
    left = _with_holders(F("site_id")).filter(site__isnull=False)
    return left.exclude(dag__site_id=F("site_id"))


def _counted_elsewhere() -> QuerySet[LeftCluster]:
    """Jobs left behind, by the site where their DAG is bound now, and where they do not count."""
    left = _with_holders(F("dag__site_id")).filter(site__isnull=False, dag__site__isnull=False)
    return left.exclude(dag__site_id=F("site_id"))


def _with_holders(place: F) -> QuerySet[LeftCluster]:
    return left_clusters().filter(dag__binding=Binding.SITE).order_by().annotate(
        place=place,
        holder=F("dag__owner_id"),
        group=F("dag__accounting_group_id"),
        group_name=F("dag__accounting_group__name"),
    )  # fmt: skip
