"""Registry of the kinds of objects that people act on, by name (`ALL_KINDS`).

Also those of which many can be chosen for a bulk action (`KINDS`), and the look-up of one of these.
"""

from __future__ import annotations

from wms.actions.allocations import ALLOCATIONS
from wms.actions.archives import ARCHIVES
from wms.actions.clusters import CLUSTERS
from wms.actions.dags import DAGS
from wms.actions.failures import FAILURES
from wms.actions.jobs import JOBS
from wms.actions.kinds import Kind
from wms.actions.queues import QUEUES
from wms.actions.schedules import SCHEDULES
from wms.actions.sites_and_pilots import PILOTS, PLACEMENTS, SITES, SUSPECTED_NODES
from wms.core.errors import NotFound

#: Kinds of which many can be chosen in a list.
KINDS = {kind.name: kind for kind in (DAGS, CLUSTERS, JOBS, SCHEDULES, PILOTS, PLACEMENTS, SITES)}
ALL_KINDS = {
    **KINDS,
    **{kind.name: kind for kind in (ALLOCATIONS, ARCHIVES, FAILURES, SUSPECTED_NODES, QUEUES)},
}


def find_kind(name: str) -> Kind:
    """Kind of the objects of this list. Raises NotFound."""
    if name not in KINDS:
        known = ", ".join(KINDS)
        raise NotFound(f"Nothing can be done in bulk with {name!r}; there are {known}.")
    return KINDS[name]
