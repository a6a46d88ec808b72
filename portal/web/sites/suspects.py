"""Lines of suspected worker nodes for pages: each with the failure group of its latest failure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from wms.core.models import User
from wms.failures.models import FailureGroup
from wms.failures.selectors import groups_of_jobs
from wms.pilots.suspect_models import SuspectedNode


@dataclass(frozen=True, slots=True)
class SuspectLine:
    """A suspected node, and the group of its latest failure if it has one."""

    node: SuspectedNode
    group: FailureGroup | None

    @property
    def jobs(self) -> str:
        """Filter of the job list for the jobs that failed there."""
        return ",".join(map(str, self.node.failed_jobs))


def suspect_lines(user: User, nodes: Iterable[SuspectedNode]) -> list[SuspectLine]:
    """A line for each node. One query besides that of the nodes, if there are any."""
    rows = list(nodes)
    latest = [row.failed_jobs[0] for row in rows if row.failed_jobs]
    groups = groups_of_jobs(user, latest) if latest else {}
    return [SuspectLine(row, groups.get(next(iter(row.failed_jobs), 0))) for row in rows]
