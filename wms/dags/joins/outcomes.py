"""Outcome of a node that has ended, as conditions of arcs see it: code, state, attempts, values.

The values are what the node returned: literals in `NAME.outcome`, a file of the workspace, as it is
when the node ends. An output of its job may be called so, and its POST script may write it. The
outcome goes into the event of the node's end, so that the log tells why an arc held.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from matching.ads.ad_cost import check_cost
from matching.ads.classads import AdError, build_ad, literal_values, parse_lines
from wms.core.errors import PilotageError
from wms.dags.engine.node_features import features_of
from wms.dags.engine.node_work import work_of
from wms.dags.engine.round import NodeOutcome, Round
from wms.dags.engine.settling.decisions import Next
from wms.dags.models import Condition, Node
from wms.dags.states import NodeState
from wms.dags.submission.workspaces import read_file

#: The fact of an event that has the outcome.
FACT = "outcome"
#: What stands in the file: so many bytes and names.
MOST_BYTES, MOST_NAMES = 4096, 20
_MOST_STEPS = 4096
#: The attributes that the engine sets; of these, what a file says does not count.
OWN_ATTRIBUTES = ("ExitCode", "State", "Attempts", "JobCount", "JobsFailed", "Pass")
#: Why there are no values, for the reasons of arcs.
FAULT = "OutcomeFault"
_OWN = frozenset(name.lower() for name in (*OWN_ATTRIBUTES, FAULT))
_STATES = {
    Next.SUCCEED: NodeState.DONE,
    Next.SKIP: NodeState.DONE,
    Next.FAIL: NodeState.FAILED,
}


def facts_of_outcomes(
    round_: Round,
    outcomes: Sequence[NodeOutcome],
    known: Mapping[int, Mapping[str, Any]] = MappingProxyType({}),
) -> Mapping[int, Mapping[str, Any]]:
    """Facts for the events of those nodes that end now and have arcs with conditions, by node.

    `known` are facts of some of them that were found already; they are among the result.
    """
    ended = {v.node.pk: v for v in outcomes if v.decision.next in _STATES}
    if not round_.dag.has_joins or not ended:
        return known
    asked = Condition.objects.filter(parent__in=list(ended.keys() - known.keys()))
    parents = asked.values_list("parent_id", flat=True).distinct()
    return {**known, **{pk: {FACT: outcome_of(round_, ended[pk])} for pk in parents}}


def file_of(node: Node) -> str:
    """Path of the file in the workspace that has the values of a node."""
    return posixpath.join(node.directory, f"{node.name}.outcome")


def outcome_by_hand(state: str) -> dict[str, Any]:
    """Outcome of a node that was marked by somebody or something, without having run."""
    return {"State": state, **({"ExitCode": 0} if state == NodeState.DONE else {})}


def outcome_of(round_: Round, outcome: NodeOutcome) -> dict[str, Any]:
    """Outcome of a node that ends now, by the decision about it."""
    node, state = outcome.node, _STATES[outcome.decision.next]
    work, repeat = work_of(node), features_of(node.features).repeat
    return {
        **_returned(round_, node),
        "ExitCode": outcome.decision.code if state is NodeState.FAILED else 0,
        "State": state.value,
        "Attempts": node.retry_number + 1,
        "JobCount": work.job_count if outcome.has_jobs and node.job_id is not None else 0,
        "JobsFailed": work.jobs_failed,
        **({"Pass": repeat.pass_number} if repeat is not None else {}),
    }


def _returned(round_: Round, node: Node) -> dict[str, Any]:
    path = file_of(node)
    try:
        content = read_file(round_.dag.workspace_id, path, limit_bytes=MOST_BYTES)
        return {} if content is None else read_values(content)
    except (PilotageError, AdError, UnicodeDecodeError) as error:
        return {FAULT: f"{path}: {error}"[:500].replace("\0", "")}


def read_values(content: bytes) -> dict[str, Any]:
    """Values that a file of a node gives, without those that the engine sets.

    Raises AdError, UnicodeDecodeError.
    """
    attributes = parse_lines(content.decode("utf-8-sig"))
    if len(attributes) > MOST_NAMES:
        raise AdError(f"more than {MOST_NAMES} attributes")
    check_cost(attributes, most_steps=_MOST_STEPS)
    values = literal_values(build_ad(attributes))
    return {
        name: value
        for name, value in values.items()
        if name.lower() not in _OWN and not (isinstance(value, str) and "\0" in value)
    }
