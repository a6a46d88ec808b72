"""What a simulated DAG needs around it: an owner, a site that takes everything, a workspace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from wms.core.actors import Actor
from wms.core.models import Role, User
from wms.dags import lifecycle
from wms.dags.models import Dag, MatchRecord
from wms.jobs.blobs import store_bytes
from wms.jobs.models import Workspace
from wms.jobs.services import create_workspace
from wms.sites.models import Site
from wms.sites.services import QueueSpec, SiteSpec, configure_site

NAME = "simulation"
_ACTOR = Actor.system(NAME)
_QUEUE = QueueSpec(
    name=NAME,
    element="local",
    max_pilots=1,
    cores=100_000,
    memory_mb=2**30,
    gpus=10_000,
    wall_time_s=2**31 - 1,
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """An owner of DAGs, and the site where they run."""

    owner: User
    site: Site

    def workspace(self, files: Mapping[str, bytes]) -> Workspace:
        """A workspace with these files."""
        blobs = {content: store_bytes(content) for content in set(files.values())}
        return create_workspace(
            self.owner, {path: blobs[content] for path, content in files.items()}
        )

    def bind(self, dag: Dag, *, now: datetime) -> None:
        """Match a DAG with the site, as a negotiation does."""
        lifecycle.apply_to_dags("match", [dag.pk], actor=_ACTOR, site=self.site, matched_at=now)
        MatchRecord.objects.create(dag=dag, site=self.site, matched_at=now)
        dag.refresh_from_db()


def make_surroundings() -> Surroundings:
    """Make them; the caller's transaction is to be rolled back."""
    owner = User.objects.create(username=NAME, role=Role.USER, password="!")
    site = configure_site(SiteSpec(name=NAME), [_QUEUE], actor=_ACTOR)
    return Surroundings(owner, site)
