"""Growth after nodes that end well: what is to follow them is inserted before they have ended.

Their children thus find what they have to wait for when the ends are counted. A node whose growth
is at fault has failed, and nothing else is changed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wms.core.errors import PilotageError
from wms.dags.engine.node_features import features_of
from wms.dags.engine.round import NodeOutcome, Round
from wms.dags.engine.settling.decisions import Attempt, Next, after_failed_growth
from wms.dags.growth.fragments import read_fragment
from wms.dags.growth.insertion import Place, arcs_to_hand_over, insert_fragment
from wms.dags.growth.passes import insert_passes, pass_faults, passes_to_come
from wms.dags.joins.outcomes import FACT, outcome_of
from wms.dags.models import Growth
from wms.dags.states import GrowthKind, NodeCause

_GOOD_ENDS = (Next.SUCCEED, Next.SKIP)
#: Characters of the faults of a fragment that become the reason of its node.
_MOST_TOLD = 1000


class FragmentsTakeLong(PilotageError):
    """There is no time in this round for all fragments that were returned; so many were read."""

    def __init__(self, read: int) -> None:
        super().__init__(f"{read} fragments were read in a round that has more of them")
        self.read = read


@dataclass(frozen=True, slots=True)
class Grown:
    """Outcomes of nodes after the DAG has grown, and the facts that this was decided by."""

    outcomes: Sequence[NodeOutcome]
    facts: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)


def grow_after(round_: Round, outcomes: Sequence[NodeOutcome]) -> Grown:
    """Insert what is to follow those nodes of the outcomes that end well.

    An outcome whose growth is at fault is replaced by a failure. The caller carries out the
    outcomes next, in the same transaction. Raises FragmentsTakeLong.
    """
    faults = _expand(round_, [each for each in outcomes if _may_grow(each, "expand")])
    repeated = [each for each in outcomes if _may_grow(each, "repeat")]
    found = {each.node.pk: outcome_of(round_, each) for each in repeated}
    if repeated:
        following = passes_to_come(repeated, found)
        faults |= pass_faults(round_, following)
        insert_passes(round_, [each for each in following if each.node.pk not in faults])
    if not faults and not found:
        return Grown(outcomes)
    return Grown(
        [_failed(each, faults.get(each.node.pk, "")) for each in outcomes],
        {pk: {FACT: outcome} for pk, outcome in found.items() if pk not in faults},
    )


def _may_grow(outcome: NodeOutcome, feature: str) -> bool:
    return outcome.decision.next in _GOOD_ENDS and feature in (outcome.node.features or {})


def _failed(outcome: NodeOutcome, fault: str) -> NodeOutcome:
    if not fault:
        return outcome
    node = outcome.node
    attempt = Attempt(features_of(node.features), node.max_retries - node.retry_number)
    decision = after_failed_growth(attempt)
    return NodeOutcome(node, decision, fault, NodeCause.GROWTH, outcome.has_jobs)


def _expand(round_: Round, outcomes: Sequence[NodeOutcome]) -> dict[int, str]:
    """Insert the fragments that these nodes returned; why some cannot be, by node.

    A node that runs again after it was followed has its fragment already.
    """
    faults: dict[int, str] = {}
    if not outcomes:
        return faults
    rows = Growth.objects.filter(node__in=[each.node.pk for each in outcomes])
    followed = set(rows.values_list("node_id", flat=True))
    for count, each in enumerate(outcomes):
        if count and round_.reads_until_s and time.monotonic() > round_.reads_until_s:
            raise FragmentsTakeLong(count)
        if each.node.pk not in followed:
            try:
                _expand_one(round_, each)
            except PilotageError as error:
                faults[each.node.pk] = f"the DAG cannot grow: {error}"[:_MOST_TOLD]
    return faults


def _expand_one(round_: Round, outcome: NodeOutcome) -> None:
    node, dag = outcome.node, round_.dag
    before = arcs_to_hand_over(node, has_joins=dag.has_joins)
    path = features_of(node.features).expand
    fragment = read_fragment(dag, path, node.directory, arcs_around=len(before))
    place = Place([node.pk], 1, before, takes_over=True)
    insert_fragment(round_, fragment, place, kind=GrowthKind.FRAGMENT, node=node)
