"""Testbed of a simulation: a user, a site and a queue, whose pilots run every job.

Also workspaces of simulated DAGs, and the match of a DAG with the site.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from wms.core.actors import Actor
from wms.core.models import Role, User
from wms.dags import lifecycle
from wms.dags.models import Dag, MatchRecord
from wms.dags.simulation.site_offer import PLAIN_SITE_OFFER, SiteOffer
from wms.jobs.content.blobs import store_bytes
from wms.jobs.models import Workspace
from wms.jobs.operations import create_workspace
from wms.sites.models import Site
from wms.sites.services import QueueSpec, SiteSpec, configure_site

NAME = "simulation"
_ACTOR = Actor.system(NAME)
_QUEUE = QueueSpec(
    name=NAME,
    element="host",
    max_pilots=1,
    cores=100_000,
    memory_mb=2**30,
    gpus=10_000,
    wall_time_s=2**31 - 1,
)


@dataclass(frozen=True, slots=True)
class SimulationTestbed:
    """Owner of the simulated DAGs, the site where they run, and its offer."""

    owner: User
    site: Site
    offer: SiteOffer

    def workspace(self, files: Mapping[str, bytes]) -> Workspace:
        """New workspace with these files."""
        blobs = {content: store_bytes(content) for content in set(files.values())}
        return create_workspace(
            self.owner, {path: blobs[content] for path, content in files.items()}
        )

    def bind(self, dag: Dag, *, now: datetime) -> None:
        """Match a DAG with the site, as a negotiation cycle does."""
        lifecycle.apply_to_dags(
            "match",
            [dag.pk],
            actor=_ACTOR,
            site_id=self.site.pk,
            matched_at=now,
            match_attributes={"Name": NAME, **self.offer.attributes},
            environment={"USER": NAME, "PATH": "/usr/bin:/bin", **self.offer.environment},
        )
        MatchRecord.objects.create(dag=dag, site=self.site, matched_at=now)
        dag.refresh_from_db()


def create_testbed(offer: SiteOffer = PLAIN_SITE_OFFER) -> SimulationTestbed:
    """Testbed in the database; the caller rolls its transaction back."""
    owner = User.objects.create(username=NAME, role=Role.USER, password="!")
    queue = replace(_QUEUE, tags=offer.tags, setup=offer.setup, submit_pool=offer.submit_pool)
    site = configure_site(SiteSpec(name=NAME), [queue], actor=_ACTOR)
    return SimulationTestbed(owner, site, offer)
