"""Start of nodes without unfinished parents, when a DAG begins, resumes or is provisioned.

A PROVISIONER node comes first, alone until it is ready, then SERVICE nodes and those of the graph;
of a DAG that is ending only its FINAL node.
"""

from __future__ import annotations

from wms.dags import lifecycle
from wms.dags.engine.node_work import work_of
from wms.dags.engine.round import NodeOutcome, Round
from wms.dags.engine.settling.settle import begin
from wms.dags.engine.submitting.nodes_without_jobs import go_on_at_site
from wms.dags.joins.deciding import decide_unmet
from wms.dags.models import Node
from wms.dags.states import COUNTED_KINDS, NodeKind, NodeState

_FIRST = -(2**40)
#: Nodes made ready in one round; the rest follows in the next.
_MOST = 50_000


def start_waiting(round_: Round) -> list[NodeOutcome]:
    """Make the nodes ready that wait for no parent, and begin those with scripts or nothing to run.

    Of a DAG that is ending that is FINAL. Else a provisioner comes first, and alone until it has
    said that it is ready; then services, and nodes without parents. Returns outcomes about nodes
    that have nothing to run.
    """
    # Some may be ready since an earlier round that was not to submit them.
    round_.checks_auxiliary = True
    kinds = {NodeKind.FINAL.value} if round_.is_ending else _make_ready(round_)
    special = Node.objects.filter(
        dag=round_.dag, state=NodeState.READY, features__isnull=False, kind__in=kinds
    )
    return begin(round_, special.values_list("pk", flat=True))


def _make_ready(round_: Round) -> set[str]:
    """Make nodes ready that may be now; return the kinds of nodes that may begin."""
    go_on_at_site(round_)
    auxiliary = round_.auxiliary_nodes()
    provisioners = auxiliary.get(NodeKind.PROVISIONER, [])
    _make_first(round_, provisioners)
    if not all(work_of(node).is_provisioned for node in provisioners):
        return {NodeKind.PROVISIONER}
    _make_first(round_, auxiliary.get(NodeKind.SERVICE, []))
    if round_.dag.has_joins:
        # Of what ended in an earlier run, it was only counted.
        decide_unmet(round_)
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
