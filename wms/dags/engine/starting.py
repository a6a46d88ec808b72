"""Beginning the nodes that wait for nobody: when a DAG starts, goes on, or is provisioned."""

from __future__ import annotations

from wms.dags import lifecycle
from wms.dags.engine.inner_nodes import go_on_at_site
from wms.dags.engine.node_work import work_of
from wms.dags.engine.round import Round
from wms.dags.engine.settling import Verdict, begin
from wms.dags.models import Node
from wms.dags.states import COUNTED_KINDS, NodeKind, NodeState

_FIRST = -(2**40)
#: So many nodes are made ready in one round; the rest follows in the next.
_MOST = 50_000


def start_waiting(round_: Round) -> list[Verdict]:
    """Make everything ready that nothing holds back, and begin what has to be begun.

    Of a DAG that is ending that is FINAL. Else a provisioner comes first, and alone until it has
    said that it is ready; then services, and nodes without parents. Returns verdicts about nodes
    that have nothing to run.
    """
    # Some may be ready since an earlier round, when they were not to be submitted.
    round_.looks_beside = True
    kinds = {NodeKind.FINAL.value} if round_.is_aside else _make_ready(round_)
    special = Node.objects.filter(
        dag=round_.dag, state=NodeState.READY, features__isnull=False, kind__in=kinds
    )
    return begin(round_, special.values_list("pk", flat=True))


def _make_ready(round_: Round) -> set[str]:
    """Make ready what may be now; returns the kinds of nodes that may begin."""
    go_on_at_site(round_)
    beside = round_.beside()
    provisioners = beside.get(NodeKind.PROVISIONER, [])
    _make_first(round_, provisioners)
    if not all(work_of(node).is_provisioned for node in provisioners):
        return {NodeKind.PROVISIONER}
    _make_first(round_, beside.get(NodeKind.SERVICE, []))
    roots = (
        Node.objects.filter(
            dag=round_.dag, state=NodeState.WAITING, unfinished_parents=0, kind__in=COUNTED_KINDS
        )
        .order_by("-priority", "ordinal")
        .values_list("pk", flat=True)[:_MOST]
    )
    if len(roots) == _MOST:
        lifecycle.notify_engine_to_start(round_.dag.pk)
    round_.move("make ready", list(roots), ready_rank=round_.number)
    return {NodeKind.PROVISIONER, NodeKind.SERVICE, *COUNTED_KINDS}


def _make_first(round_: Round, nodes: list[Node]) -> None:
    waiting = [node.pk for node in nodes if node.state == NodeState.WAITING]
    round_.move("make ready", waiting, ready_rank=_FIRST)
