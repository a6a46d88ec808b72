"""Use of quotas by DAGs: nodes that are still to make their jobs; a DAG counts as one cluster.

Also the number of nodes of a new DAG that will make jobs.
"""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Count, F, Q, Sum

from wms.dags.language.spec import DagSpec
from wms.dags.models import Dag
from wms.dags.states import COUNTED_KINDS, DAG_TERMINAL, DagState
from wms.jobs.quotas import Holder, Usage

#: States of DAGs that have not ended.
_OPEN = [state.value for state in DagState if state.value not in DAG_TERMINAL]
_ENDED_NODES = F("done_count") + F("failed_count") + F("futile_count") + F("skipped_count")


def usage_by_dags(holder: Holder) -> Usage:
    """What the open DAGs of a user or group use beside their waiting jobs and files.

    Inner DAGs count with their nodes only. One query over the open DAGs, none of which reads nodes.
    """
    theirs = holder.rows(group="accounting_group__name")
    sums = Dag.objects.filter(theirs, state__in=_OPEN, is_followed=False).aggregate(
        to_come=Sum(F("node_count") - _ENDED_NODES - F("submitted_count")),
        dags=Count("pk", filter=Q(root=None)),
    )
    return Usage(waiting_jobs=max(0, sums["to_come"] or 0), clusters=sums["dags"])


def jobs_to_come(spec: DagSpec, done: Collection[str] = ()) -> int:
    """The nodes of a new DAG that will make jobs; `done` are those that have run before."""
    ended = set(done)
    return sum(
        node.kind in COUNTED_KINDS and not node.is_done and node.name not in ended
        for node in spec.nodes.values()
    )
