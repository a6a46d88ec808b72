"""Driving a DAG in tests: the negotiator and the engine for real, pilots' reports by hand."""

from __future__ import annotations

from datetime import UTC, datetime

from matching.resources import Resource
from wms.core.actors import Actor
from wms.dags import engine, negotiation
from wms.dags.models import Dag, Node
from wms.dags.rebuild import rebuild_dag
from wms.jobs.attempts import PayloadEnd, end_attempt
from wms.jobs.models import Attempt
from wms.jobs.services import bind_to_pilot
from wms.taskqueues.services import claim

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
PILOT = Actor.pilot("test")
ANYTHING = {"cpu_time_s": 10**6, "cores": 64, "memory_mb": 10**6}


def match(dag: Dag) -> Dag:
    """One cycle of the negotiator and one of the engine."""
    negotiation.run_cycle(NOW)
    return advance(dag)


def advance(dag: Dag) -> Dag:
    engine.run_cycle(NOW)
    dag.refresh_from_db()
    return dag


def claim_one(site: str = "site-a", *, pilot_id: int = 1) -> Attempt | None:
    claimed = claim(Resource(site=site, **ANYTHING))
    if claimed is None:
        return None
    return bind_to_pilot(
        claimed, pilot_id=pilot_id, site_name=site, host="node1", free_cores=1, actor=PILOT
    )


def end(attempt: Attempt, exit_code: int = 0) -> None:
    end_attempt(
        attempt.job_id,
        attempt.number,
        pilot_id=attempt.pilot_id,
        end=PayloadEnd(exit_code=exit_code),
        actor=PILOT,
        now=NOW,
    )


def run_one(name: str, exit_code: int = 0) -> None:
    """Claim the next job, which must be that of the node `name`, and end it."""
    attempt = claim_one()
    assert attempt is not None, f"no job is waiting, expected {name}"
    assert attempt.job.name == name
    end(attempt, exit_code)


def states(dag: Dag) -> dict[str, str]:
    return dict(Node.objects.filter(dag=dag).order_by("ordinal").values_list("name", "state"))


def assert_log_agrees(dag: Dag) -> None:
    assert rebuild_dag(dag.pk).differences == ()
