"""Sites that accept a DAG whose jobs are bound at the claim, as the last negotiation found them."""

from __future__ import annotations

from wms.dags.models import Dag
from wms.jobs.binding.scopes import sites_of


def accepting_sites(dag: Dag) -> list[str] | None:
    """Names of the sites where pilots draw the DAG's jobs; None where the DAG has its own site."""
    if dag.scope_id is None:
        return None
    return list(sites_of([dag.scope_id]).get(dag.scope_id, ())) if dag.is_placed else []
