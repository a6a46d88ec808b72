"""Data of one DAG that several tabs of its page share, each read once per request.

The row with policy and subscription, states of nodes, levels, counts, and shared limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from portal.shared.drawings import counts_of, states_of
from wms.core.models import User
from wms.dags.models import Dag, MatchmakingPolicy, SharedLimit
from wms.dags.reading.drawing_states import States, Version, version_with, with_version
from wms.dags.reading.obstacles import room_now
from wms.dags.reading.run_selectors import shared_limits_of
from wms.dags.reading.selectors import (
    Levels,
    NodeCounts,
    counts_by_state,
    dag_among,
    detailed_dags,
    levels_of,
)
from wms.dags.services.policies import policy_with, with_policy
from wms.notices.selectors import with_told

#: Up to so many nodes are drawn as marks, level by level.
_NODES_DRAWN = 400
#: From so many nodes on, counting them is worth remembering, and a page that looks at all of them
#: is refreshed less often.
LARGE = 20_000


class DagReading:
    """Lazily read data of one DAG while one request is answered.

    One statement reads the DAG with its one-to-one data: the outer DAG, the policy in force, the
    event up to which node states are known, the user's subscription.
    """

    def __init__(self, user: User, dag_id: int) -> None:
        """Read the DAG. Raises NotFound."""
        dags = with_policy(with_version(with_told(detailed_dags(user), user)))
        self.dag: Dag = dag_among(dags, dag_id)

    @property
    def is_told(self) -> bool:
        """Whether the user has subscribed to the DAG."""
        known: Any = self.dag
        return bool(known.is_told)

    @property
    def is_large(self) -> bool:
        """True when reading every node takes noticeable time."""
        return self.dag.node_count >= LARGE

    @cached_property
    def policy(self) -> MatchmakingPolicy:
        """Policy that operators have set for all DAGs."""
        return policy_with(self.dag)

    @property
    def version(self) -> Version:
        """Id of the event up to which the node states were known when the DAG was read."""
        return version_with(self.dag)

    @cached_property
    def states(self) -> States:
        """State of every node, in the drawing's codes."""
        return states_of(self.dag, self.version)

    @cached_property
    def levels(self) -> Levels | None:
        """Nodes by level, one by one; None if there are too many."""
        return levels_of(self.dag) if self.dag.node_count <= _NODES_DRAWN else None

    @cached_property
    def counts(self) -> NodeCounts:
        """Number of nodes by state, for a page that does not read every node."""
        return counts_of(self.dag, self.version) if self.is_large else counts_by_state(self.dag)

    @cached_property
    def limits(self) -> Sequence[SharedLimit]:
        """Shared limits of the DAG, each with the number of submitted nodes."""
        return list(shared_limits_of(self.dag))

    @property
    def kept_back(self) -> Sequence[str]:
        """Limits that keep ready nodes from being submitted now."""
        if not self.dag.ready_count:
            return ()
        limited_by = room_now(self.dag, self.limits)
        if limited_by is None:
            return ()
        full = [
            limited_by.reasons[name] for name, left in limited_by.categories.items() if not left
        ]
        return [*([limited_by.reason] if not limited_by.nodes else []), *full]
