"""Sums of what carries a label, for each label: DAGs, nodes, clusters, jobs, core-hours.

Only what the user may see is summed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db.models import (
    CharField,
    Count,
    F,
    FloatField,
    Func,
    Max,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
)

from wms.core.models import User
from wms.dags.lifecycle import JOB_TOPIC
from wms.dags.models import Dag
from wms.dags.reading.selectors import visible_dags
from wms.dags.states import DAG_TERMINAL
from wms.jobs.clusters.selectors import visible_clusters
from wms.jobs.clusters.states import CLUSTER_TERMINAL, TOPIC
from wms.jobs.models import Cluster, TopicUse

#: Labels that are told: those that were given last.
MAX_LABELS_TOLD = 200
_NODE_COUNTS = ("node_count", "done_count", "failed_count", "futile_count", "skipped_count",
                "submitted_count", "ready_count")  # fmt: skip
_JOB_COUNTS = ("size", "done_count", "failed_count", "killed_count")


@dataclass(slots=True)
class LabelSum:
    """What carries one label. Nodes are those of inner DAGs as well; DAGs are not.

    `jobs` are those of clusters. Core-hours are those of attempts that have ended, of DAGs and
    clusters together.
    """

    label: str
    dags: int = 0
    active_dags: int = 0
    clusters: int = 0
    active_clusters: int = 0
    nodes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_names(_NODE_COUNTS), 0))
    jobs: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_names(_JOB_COUNTS), 0))
    jobs_done: int = 0
    core_hours: float = 0.0


def _names(columns: Iterable[str]) -> list[str]:
    return [_name(column) for column in columns]


def _name(column: str) -> str:
    return "total" if column in {"node_count", "size"} else column.removesuffix("_count")


class _Unnest(Func):
    function = "unnest"
    output_field = CharField()
    set_returning = True


def label_sums(user: User, *, prefix: str = "") -> list[LabelSum]:
    """Sums of the labels that begin so, by name; of very many those that were given last."""
    return sums_of(visible_dags(user), visible_clusters(user), prefix=prefix)


def sums_of(dags: QuerySet[Dag], clusters: QuerySet[Cluster], *, prefix: str) -> list[LabelSum]:
    """Sums over DAGs and clusters, by the labels that begin so. Two queries."""
    found: dict[str, LabelSum] = {}
    for row in _by_label(dags, JOB_TOPIC, prefix, _of_dags()):
        each = found.setdefault(row["one_label"], LabelSum(row["one_label"]))
        each.dags, each.active_dags = row["sum_dags"], row["sum_active"]
        each.nodes = {_name(name): row[f"sum_{name}"] for name in _NODE_COUNTS}
        _add_use(each, row)
    for row in _by_label(clusters, TOPIC, prefix, _of_clusters()):
        each = found.setdefault(row["one_label"], LabelSum(row["one_label"]))
        each.clusters, each.active_clusters = row["sum_clusters"], row["sum_active"]
        each.jobs = {_name(name): row[f"sum_{name}"] for name in _JOB_COUNTS}
        _add_use(each, row)
    return sorted(found.values(), key=lambda each: each.label)


def _of_dags() -> dict[str, Any]:
    outermost = Q(parent_node__isnull=True)
    return {
        "sum_dags": Count("pk", filter=outermost),
        "sum_active": Count("pk", filter=outermost & ~Q(state__in=DAG_TERMINAL)),
        **{f"sum_{name}": Sum(name) for name in _NODE_COUNTS},
    }


def _of_clusters() -> dict[str, Any]:
    return {
        "sum_clusters": Count("pk"),
        "sum_active": Count("pk", filter=~Q(state__in=CLUSTER_TERMINAL)),
        **{f"sum_{name}": Sum(name) for name in _JOB_COUNTS},
    }


def _by_label(
    rows: QuerySet[Any], topic: str, prefix: str, sums: dict[str, Any]
) -> list[dict[str, Any]]:
    """Sums of rows by each of their labels, the labels of the latest rows first."""
    used = TopicUse.objects.filter(topic=topic, topic_key=OuterRef("pk"))
    seconds = used.values_list(F("useful_s") + F("failed_s") + F("lost_s"))
    split = (
        rows.exclude(labels=[])
        .order_by()
        .annotate(
            one_label=_Unnest("labels"),
            used_s=Subquery(seconds, output_field=FloatField()),
            used_done=Subquery(used.values("done_count")),
        )
    )
    summed = (
        split.values("one_label")
        .annotate(
            **sums,
            sum_used_s=Sum("used_s", default=0.0),
            sum_used_done=Sum("used_done", default=0),
            newest=Max("pk"),
        )
        .order_by("-newest")
    )
    return [row for row in summed if row["one_label"].startswith(prefix)][:MAX_LABELS_TOLD]


def _add_use(each: LabelSum, row: dict[str, Any]) -> None:
    each.core_hours += row["sum_used_s"] / 3600
    each.jobs_done += row["sum_used_done"]
