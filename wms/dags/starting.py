"""Beginning the nodes that wait for nobody: when a DAG starts, goes on, or is provisioned."""

from __future__ import annotations

from wms.dags import lifecycle
from wms.dags.models import Node
from wms.dags.ready import ready_nodes
from wms.dags.rounds import Round
from wms.dags.settling import Verdict, begin, settle
from wms.dags.states import COUNTED_KINDS, NodeKind, NodeState
from wms.dags.submitting import submit
from wms.dags.work import work_of

_FIRST = -(2**40)
#: So many nodes are made ready in one round; the rest follows in the next.
_MOST = 50_000


def start_waiting(round_: Round) -> list[Verdict]:
    """Make everything ready that nothing holds back, and begin what has to be begun.

    A provisioner comes first, and alone until it has said that it is ready; then services. Returns
    verdicts about nodes that have nothing to run.
    """
    beside = round_.beside()
    provisioner = beside.get(NodeKind.PROVISIONER, [])
    if provisioner:
        _start_beside(round_, provisioner)
        if not all(work_of(node).is_provisioned for node in provisioner):
            return []
    _start_beside(round_, beside.get(NodeKind.SERVICE, []))
    roots = (
        Node.objects.filter(
            dag=round_.dag, state=NodeState.WAITING, unfinished_parents=0, kind__in=COUNTED_KINDS
        )
        .order_by("-priority", "ordinal")
        .values_list("pk", flat=True)[:_MOST]
    )
    if len(roots) == _MOST:
        lifecycle.tell_to_begin(round_.dag.pk)
    round_.move("make ready", list(roots), ready_rank=round_.number)
    special = Node.objects.filter(
        dag=round_.dag, state=NodeState.READY, features__isnull=False, kind__in=COUNTED_KINDS
    )
    return begin(round_, special.values_list("pk", flat=True))


def _start_beside(round_: Round, nodes: list[Node]) -> None:
    waiting = [node.pk for node in nodes if node.state == NodeState.WAITING]
    round_.move("make ready", waiting, ready_rank=_FIRST)
    # Those that were recalled from another site are ready already.
    ready = waiting + [node.pk for node in nodes if node.state == NodeState.READY]
    if ready:
        settle(round_, begin(round_, ready))
        _submit_ready(round_, ready)


def submit_beside(round_: Round) -> None:
    """Submit the provisioner and the services whose PRE scripts have ended."""
    beside = round_.beside()
    nodes = [*beside.get(NodeKind.PROVISIONER, []), *beside.get(NodeKind.SERVICE, [])]
    _submit_ready(round_, [node.pk for node in nodes if node.state == NodeState.READY])


def _submit_ready(round_: Round, node_ids: list[int]) -> None:
    if not node_ids:
        return
    ready = Node.objects.filter(pk__in=node_ids, state=NodeState.READY)
    verdicts, _ = submit(round_, ready_nodes(ready))
    settle(round_, verdicts)
