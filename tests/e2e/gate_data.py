"""A DAG that decides, for the walk through the pages: conditions, a join, and a gate that waits."""

from __future__ import annotations

from tests import factories
from wms.core.models import User
from wms.dags.models import Dag
from wms.sites.services import QueueSpec, SiteSpec, configure_site


def deciding_dag(owner: User) -> Dag:
    """A running DAG with conditions, a join and a gate, at a site that takes no other DAG."""
    site = SiteSpec(
        name="T2-Gates",
        max_matches=1,
        environment="SiteWorkingArea=/work",
        requirements=f'CurMatches < MaxMatches && TARGET.Owner =?= "{owner.get_username()}"',
    )
    queues = [QueueSpec(name="short", element="host", memory_mb=4000)]
    configure_site(site, queues, actor=factories.SYSTEM)
    return factories.deciding_dag(owner)
