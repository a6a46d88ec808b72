"""Services that add a fragment to a DAG that runs: check it, insert it; by a person or a program.

With permission, reason and audit. A fragment with any fault changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db import connection, transaction
from django.utils import timezone

from wms.accounting.limited_tokens import require_limit_of_actor
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import Conflict, Finding, InvalidInput, ReasonRequired
from wms.dags import lifecycle
from wms.dags.engine.round import Round
from wms.dags.growth.fragments import Fragment, fragment_of
from wms.dags.growth.insertion import Following, Place, insert_fragment
from wms.dags.language.commands.growth import copy_fault
from wms.dags.models import Dag, Node
from wms.dags.services.dags import locked_dags
from wms.dags.services.sql import FIND_WITH_DESCENDANTS
from wms.dags.states import COUNTED_KINDS, DAG_TERMINAL, GrowthKind, NodeState
from wms.dags.submission.checking import MAX_TEXT_BYTES
from wms.jobs.content.paths import path_in

#: Name of a fragment that is given none.
DEFAULT_NAME = "added.dag"
#: Nodes that a fragment may be behind, and before.
MAX_ENDS = 100
#: Limit of names in the audit record; the DAG's events have all.
_NAMES_AUDITED = 200
#: What follows a node in one of these states never runs.
_NO_PARENTS = frozenset({NodeState.FAILED.value, NodeState.FUTILE.value, NodeState.SKIPPED.value})


@dataclass(frozen=True, slots=True)
class GrowthRequest:
    """A fragment, the name of its file, and the nodes that it is to stand after and before.

    Without `after` it begins at once; no node waits for it without `before`.
    """

    text: str
    file: str = DEFAULT_NAME
    after: Sequence[str] = ()
    before: Sequence[str] = ()


@transaction.atomic
def grow_dag(dag_id: int, asked: GrowthRequest, *, actor: Actor, reason: str) -> Fragment:
    """Add nodes to a DAG that has not ended, checked as at its submission; they begin in its turn.

    Nodes of `before` must wait. Raises NotFound, NotPermitted, ReasonRequired, Conflict,
    QuotaExceeded, and InvalidInput with every fault, those of the fragment with file and line.
    """
    [dag] = locked_dags([dag_id], actor)
    if not reason.strip():
        raise ReasonRequired("grow")
    with Round(dag, timezone.now(), actor) as round_:
        fragment = _insert(round_, asked, reason)
    lifecycle.notify_engine_to_start(dag.pk)
    names = list(fragment.spec.nodes)
    record_action(
        "grow DAG",
        target=f"DAG {dag.pk}",
        actor=actor,
        reason=reason,
        facts={
            "nodes": names[:_NAMES_AUDITED],
            "count": len(names),
            "file": fragment.copy,
            "after": list(asked.after),
            "before": list(asked.before),
        },
    )
    return fragment


@transaction.atomic
def check_growth(dag_id: int, asked: GrowthRequest, *, actor: Actor) -> Fragment:
    """What `grow_dag` would add; nothing is changed. Raises as that, but needs no reason."""
    [dag] = locked_dags([dag_id], actor)
    with Round(dag, timezone.now(), actor) as round_:
        fragment = _insert(round_, asked, "checked")
    transaction.set_rollback(True)
    return fragment


def _insert(round_: Round, asked: GrowthRequest, reason: str) -> Fragment:
    dag = round_.dag
    _refuse_ended(dag)
    require_limit_of_actor(dag.workspace.limited_to, actor=round_.actor, named=f"DAG {dag.pk}")
    path, content = _file_of(dag, asked)
    place = _place(dag, asked)
    fragment = fragment_of(dag, content, path, dag.directory, arcs_around=len(place.before))
    if not fragment.spec.nodes:
        raise InvalidInput.of("the fragment has no nodes", file=path)
    insert_fragment(
        round_,
        fragment,
        place,
        kind=GrowthKind.HAND,
        node=None,
        reason=reason,
        after=asked.after,
        before=asked.before,
    )
    return fragment


def _refuse_ended(dag: Dag) -> None:
    if dag.is_followed:
        raise Conflict(f"DAG {dag.pk} follows the log of another engine, and cannot grow here.")
    if dag.state in DAG_TERMINAL:
        raise Conflict(f"DAG {dag.pk} has ended: only one that has not can grow.")
    if dag.is_ending:
        raise Conflict(f"DAG {dag.pk} is ending: its FINAL node runs.")


def _file_of(dag: Dag, asked: GrowthRequest) -> tuple[str, bytes]:
    """Path and content of the fragment. Raises InvalidInput."""
    path = path_in(dag.directory, asked.file, field="file")
    if fault := copy_fault(path):
        raise InvalidInput.of(fault, field="file")
    try:
        content = asked.text.encode()
    except UnicodeEncodeError:
        raise InvalidInput.of("is no text in UTF-8", field="text") from None
    if len(content) > MAX_TEXT_BYTES:
        raise InvalidInput.of(f"at most {MAX_TEXT_BYTES} bytes", field="text")
    return path, content


def _place(dag: Dag, asked: GrowthRequest) -> Place:
    """The place between the nodes that are named. Raises InvalidInput with every fault."""
    behind, faults = _find(dag, asked.after, "after")
    before, more = _find(dag, asked.before, "before")
    faults += more
    faults += [
        Finding(f"node {node.name} is {node.state}: nothing after it would run", field="after")
        for node in behind
        if node.state in _NO_PARENTS
    ]
    faults += [
        Finding(f"node {node.name} is {node.state}: only one that waits can wait", field="before")
        for node in before
        if node.state != NodeState.WAITING
    ]
    if behind and before and not faults:
        faults += _cycles(behind, before)
    if faults:
        raise InvalidInput(faults)
    return Place(
        [node.pk for node in behind],
        sum(node.state != NodeState.DONE for node in behind),
        [Following(node.pk) for node in before],
    )


def _find(dag: Dag, names: Collection[str], field: str) -> tuple[list[Node], list[Finding]]:
    wanted = list(dict.fromkeys(names))
    if len(wanted) > MAX_ENDS:
        return [], [Finding(f"at most {MAX_ENDS} nodes", field=field)]
    found = Node.objects.filter(dag=dag, name__in=wanted, kind__in=COUNTED_KINDS)
    nodes = {node.name: node for node in found.only("name", "state")}
    faults = [
        Finding(f"the DAG has no node {name[:255]} in its graph", field=field)
        for name in wanted
        if name not in nodes
    ]
    return list(nodes.values()), faults


def _cycles(behind: Collection[Node], before: Collection[Node]) -> list[Finding]:
    """Faults of nodes that would have to wait for what waits for them."""
    with connection.cursor() as cursor:
        cursor.execute(FIND_WITH_DESCENDANTS, [[node.pk for node in before]])
        below = {row[0] for row in cursor.fetchall()}
    return [
        Finding(f"node {node.name} would wait for itself: it is below the others", field="after")
        for node in behind
        if node.pk in below
    ]
