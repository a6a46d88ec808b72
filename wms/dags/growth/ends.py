"""Growth after nodes that end well: what is to follow them is inserted before they have ended.

Their children thus find what they have to wait for when the ends are counted. A node whose growth
is at fault has failed, and nothing else is changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wms.dags.engine.decisions import Attempt, Next, after_failed_growth
from wms.dags.engine.node_features import features_of
from wms.dags.engine.round import NodeOutcome, Round
from wms.dags.growth.passes import insert_passes, pass_faults, passes_to_come
from wms.dags.joins.outcomes import FACT, outcome_of
from wms.dags.states import NodeCause

_GOOD_ENDS = (Next.SUCCEED, Next.SKIP)


@dataclass(frozen=True, slots=True)
class Grown:
    """Outcomes of nodes after the DAG has grown, and the facts that this was decided by."""

    outcomes: Sequence[NodeOutcome]
    facts: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)


def grow_after(round_: Round, outcomes: Sequence[NodeOutcome]) -> Grown:
    """Insert what is to follow those nodes of the outcomes that end well.

    An outcome whose growth is at fault is replaced by a failure. The caller carries out the
    outcomes next, in the same transaction.
    """
    repeated = [each for each in outcomes if _may_grow(each, "repeat")]
    if not repeated:
        return Grown(outcomes)
    found = {each.node.pk: outcome_of(round_, each) for each in repeated}
    following = passes_to_come(repeated, found)
    faults = pass_faults(round_, following)
    insert_passes(round_, [each for each in following if each.node.pk not in faults])
    return Grown(
        [_failed(round_, each, faults.get(each.node.pk, "")) for each in outcomes],
        {pk: {FACT: outcome} for pk, outcome in found.items() if pk not in faults},
    )


def _may_grow(outcome: NodeOutcome, feature: str) -> bool:
    return outcome.decision.next in _GOOD_ENDS and feature in (outcome.node.features or {})


def _failed(round_: Round, outcome: NodeOutcome, fault: str) -> NodeOutcome:
    if not fault:
        return outcome
    node = outcome.node
    attempt = Attempt(features_of(node.features), node.max_retries - node.retry_number)
    return NodeOutcome(
        node, after_failed_growth(attempt), fault, NodeCause.GROWTH, outcome.has_jobs
    )
