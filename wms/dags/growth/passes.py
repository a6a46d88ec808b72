"""Passes of repeated nodes: whether another follows a node that ends well, and its insertion.

A pass is a node of its own, which takes the place of the one before: all that followed the old
node follows the new one. It is inserted in the transaction in which the pass before ends, so no
kill loses or doubles one. Who finds or inserts passes holds the lock of the DAG's row.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from wms.core.database.statements import whole_numbers
from wms.dags.engine.node_features import features_of
from wms.dags.engine.node_work import write_work
from wms.dags.engine.round import NodeOutcome, Round
from wms.dags.growth.records import Insertion, next_ordinal, record_insertions, room_fault
from wms.dags.growth.sql import HAND_OVER_ARCS, HAND_OVER_CONDITIONS
from wms.dags.joins.conditions import ParentEnd, Verdict, verdict_of
from wms.dags.language.commands.growth import PASS_VARIABLE, first_name, pass_name
from wms.dags.language.spec import Repeat
from wms.dags.models import Edge, Growth, Join, Node, NodeWork
from wms.dags.states import GrowthKind, NodeKind
from wms.dags.submission.storing import new_node_ids

_COPIED = (
    "kind", "submit_description_id", "directory", "priority", "category", "max_retries",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NextPass:
    """A pass that is to follow a node, and why."""

    node: Node
    rule: Repeat
    reason: str

    @property
    def name(self) -> str:
        """Name of the new node."""
        first = first_name(self.node.name, self.rule.pass_number)
        return pass_name(first, self.rule.pass_number + 1)


def passes_to_come(
    outcomes: Sequence[NodeOutcome], found: Mapping[int, Mapping[str, Any]]
) -> list[NextPass]:
    """Passes that follow these nodes, which end well; `found` are their outcomes.

    A node that runs again after it was followed is not asked any more.
    """
    ids = [each.node.pk for each in outcomes]
    followed = set(Growth.objects.filter(node__in=ids).values_list("node_id", flat=True))
    following = []
    for each in outcomes:
        rule = features_of(each.node.features).repeat
        if rule is None or each.node.pk in followed or rule.pass_number >= rule.most:
            continue
        verdict = verdict_of_pass(rule, found[each.node.pk])
        if verdict.holds:
            following.append(NextPass(each.node, rule, verdict.reason))
    return following


def verdict_of_pass(rule: Repeat, outcome: Mapping[str, Any]) -> Verdict:
    """Whether WHILE is true of the outcome of a pass."""
    return verdict_of(rule.text, ParentEnd(outcome))


def pass_faults(round_: Round, passes: Sequence[NextPass]) -> dict[int, str]:
    """Why passes cannot be inserted, by the node before."""
    if not passes:
        return {}
    fault = room_fault(round_.dag, len(passes))
    if fault:
        return {each.node.pk: fault for each in passes}
    names = [each.name for each in passes]
    taken = set(Node.objects.filter(dag=round_.dag, name__in=names).values_list("name", flat=True))
    return {
        each.node.pk: f"the DAG has a node {each.name} already"
        for each in passes
        if each.name in taken
    }


def insert_passes(round_: Round, passes: Sequence[NextPass]) -> None:
    """Insert these passes, each between a node that is about to end and what follows that."""
    if not passes:
        return
    first = next_ordinal(round_.dag)
    ids = new_node_ids(len(passes))
    new = [
        _node(round_, each, pk, first + at)
        for at, (each, pk) in enumerate(zip(passes, ids, strict=True))
    ]
    Node.objects.bulk_create(new, batch_size=1000)
    fresh = [node.pk for node in new if node.kind == NodeKind.SUBDAG]
    # No pass begins from the rescue of the inner DAG of another one.
    write_work([NodeWork(node_id=pk, is_fresh=True) for pk in fresh], "is_fresh")
    before = [each.node.pk for each in passes]
    _hand_over(round_, before, ids)
    record_insertions(
        round_,
        first,
        [
            Insertion(
                GrowthKind.PASS,
                each.node,
                [each.name],
                each.reason,
                categories={each.node.category} - {""},
            )
            for each in passes
        ],
    )


def _node(round_: Round, following: NextPass, pk: int, ordinal: int) -> Node:
    before, number = following.node, following.rule.pass_number + 1
    features = {**(before.features or {})}
    features.pop("save_point", None)
    features["repeat"] = {**features["repeat"], "pass_number": number}
    return Node(
        pk=pk,
        dag=round_.dag,
        name=following.name,
        ordinal=ordinal,
        variables={**before.variables, PASS_VARIABLE: str(number)},
        features=features,
        unfinished_parents=1,
        state_since=round_.now,
        **{name: getattr(before, name) for name in _COPIED},
    )


def _hand_over(round_: Round, before: Sequence[int], new: Sequence[int]) -> None:
    """Arcs from the nodes before to the new ones, which have all others of these from now on."""
    parameters = {"nodes": whole_numbers(before), "heirs": whole_numbers(new)}
    with connection.cursor() as cursor:
        cursor.execute(HAND_OVER_ARCS, parameters)
        if round_.dag.has_joins:
            cursor.execute(HAND_OVER_CONDITIONS, parameters)
    joined = _joined(round_, before)
    Edge.objects.bulk_create(
        (
            Edge(parent_id=parent, child_id=child, is_joined=parent in joined)
            for parent, child in zip(before, new, strict=True)
        ),
        batch_size=1000,
    )
    Join.objects.bulk_create(
        (
            Join(node_id=child, needed_count=1, arc_count=1)
            for parent, child in zip(before, new, strict=True)
            if parent in joined
        ),
        batch_size=1000,
    )


def _joined(round_: Round, node_ids: Collection[int]) -> set[int]:
    """Those of the nodes that may be skipped: what follows them may be, too."""
    if not round_.dag.has_joins:
        return set()
    return set(Join.objects.filter(node__in=list(node_ids)).values_list("node_id", flat=True))
