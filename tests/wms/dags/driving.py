"""Driver of a DAG in tests: the negotiator and the engine for real, pilots' reports by hand.

Cycles of both, claims, ends of jobs and scripts, states of nodes; `run_all` goes on to the end.
"""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import transaction

from matching.task_queues.resources import Resource
from wms.core.actors import Actor
from wms.core.models import InboxEntry
from wms.dags.engine import cycle as engine
from wms.dags.engine import timers
from wms.dags.engine.rebuild import rebuild_dag
from wms.dags.lifecycle import TOPICS
from wms.dags.models import Dag, Node, ScriptRun
from wms.dags.negotiation import cycle as negotiation
from wms.dags.scripts.run_leases import end_run
from wms.jobs.attempts.ending import PayloadEnd, end_attempt
from wms.jobs.models import Attempt, Job
from wms.jobs.operations import bind_to_pilot
from wms.taskqueues.operations import claim

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


def tell_and_advance(dag: Dag) -> Dag:
    """A cycle of the timers and one of the engine."""
    timers.run_cycle(NOW)
    return advance(dag)


def end_script(dag: Dag, name: str, kind: str, code: int = 0) -> ScriptRun:
    """End the script of a node that may run now, as its service would."""
    run = ScriptRun.objects.get(dag=dag, node__name=name, kind=kind, state="granted")
    ScriptRun.objects.filter(pk=run.pk).update(state="running", lease="test", started_at=NOW)
    assert end_run(run.pk, "test", exit_code=code, now=NOW)
    run.refresh_from_db()
    return run


def run_all(dag: Dag, codes: dict[str, int] | None = None) -> Dag:
    """Let everything of a DAG and the DAGs inside of it end, jobs by their nodes' codes."""
    for _ in range(60):
        for _ in range(20):
            engine.run_cycle(NOW)
            if not InboxEntry.objects.filter(topic__in=TOPICS).exists():
                break
        else:
            raise AssertionError("the engine does not come to rest")
        dags = [dag.pk, *Dag.objects.filter(root=dag).values_list("pk", flat=True)]
        waiting = Job.objects.filter(topic_key__in=dags, state="waiting").order_by("pk").first()
        granted = ScriptRun.objects.filter(dag_id__in=dags, state="granted").first()
        if waiting is not None:
            run_one(waiting.name, (codes or {}).get(waiting.name, 0))
        elif granted is not None:
            end_script(granted.dag, granted.node.name, granted.kind)
        else:
            break
    dag.refresh_from_db()
    return dag
