"""Preview of a further run of a DAG: the nodes that it would run again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Count, QuerySet

from wms.dags.models import Dag, Node
from wms.dags.rescue.rescue_files import Resumption, read_rescue
from wms.dags.states import COUNTED_KINDS, NodeState


@dataclass(frozen=True, slots=True)
class Preview:
    """Number of nodes that would run, by their states now, and the first of them.

    `done_total` counts those that are done now and would be done again.
    """

    total: int
    by_state: Mapping[str, int]
    nodes: Sequence[Node]

    @property
    def done_total(self) -> int:
        """Number of nodes that would run although they are done."""
        return self.by_state.get(NodeState.DONE.value, 0)

    @property
    def left_out(self) -> int:
        """Number of nodes that are not in `nodes`."""
        return self.total - len(self.nodes)


def preview_of(dag: Dag, resumption: Resumption, *, limit: int) -> Preview:
    """Nodes that would run, as they are stored. Raises InvalidInput for a faulty rescue.

    Files that were changed since are not read: nodes that they add run as well.
    """
    nodes = Node.objects.filter(dag=dag, kind__in=COUNTED_KINDS)
    resume_point = read_rescue(dag.workspace, dag.dag_files, resumption)
    if resume_point is None:
        return _preview(nodes, limit)
    done = {*resume_point.text.done, *resume_point.text.failed}
    ids = [pk for pk, name in nodes.values_list("pk", "name").iterator() if name not in done]
    return _preview(nodes.filter(pk__in=ids), limit)


def _preview(nodes: QuerySet[Node], limit: int) -> Preview:
    counted = nodes.order_by().values_list("state").annotate(Count("pk"))
    by_state = dict(counted)
    first = nodes.only("name", "state", "ordinal", "state_reason").order_by("ordinal")
    return Preview(sum(by_state.values()), by_state, list(first[:limit]))
