"""Registry of the kinds of objects with actions, by the names of their lists."""

from __future__ import annotations

from wms.actions.dags import DAGS
from wms.actions.jobs import JOBS
from wms.actions.kinds import Kind
from wms.actions.sites_and_pilots import PILOTS, PLACEMENTS, SITES
from wms.core.errors import NotFound

KINDS = {kind.name: kind for kind in (DAGS, JOBS, PILOTS, PLACEMENTS, SITES)}


def find_kind(name: str) -> Kind:
    """Kind by the name of its list. Raises NotFound."""
    if name not in KINDS:
        known = ", ".join(KINDS)
        raise NotFound(f"Nothing can be done in bulk with {name!r}; there are {known}.")
    return KINDS[name]
