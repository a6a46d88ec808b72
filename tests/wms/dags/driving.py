"""Driving a DAG in tests: the negotiator and the engine for real, pilots' reports by hand."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import transaction

from matching.resources import Resource
from wms.core.actors import Actor
from wms.dags import engine, negotiation
from wms.dags.models import Dag, Node
from wms.dags.rebuild import rebuild_dag
from wms.jobs.attempts import PayloadEnd, end_attempt
from wms.jobs.models import Attempt, Job
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


def claim_of(name: str, site: str = "site-a") -> Attempt:
    """Claim until the job of the node `name` is drawn; the others wait as before."""
    assert Job.objects.filter(name=name, state="waiting").exists(), f"no job of {name} is waiting"
    while True:
        with transaction.atomic():
            attempt = claim_one(site)
            assert attempt is not None, f"{site} cannot run the job of {name}"
            if attempt.job.name == name:
                return attempt
            transaction.set_rollback(True)


def run_one(name: str, exit_code: int = 0) -> None:
    """Claim the job of the node `name`, and end it."""
    end(claim_of(name), exit_code)


def states(dag: Dag) -> dict[str, str]:
    return dict(Node.objects.filter(dag=dag).order_by("ordinal").values_list("name", "state"))


def assert_log_agrees(dag: Dag) -> None:
    assert rebuild_dag(dag.pk).differences == ()
