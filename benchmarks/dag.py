"""Benchmark of DAGs with up to a million nodes: parse, check, store, advance; and engine latency.

A layered DAG has 1,000 nodes in a layer, each with two parents; in a wide one a single node comes
before all others. Rounds of the engine alternate with the ends of all jobs that wait at that time;
only the rounds are timed (`advance_nodes_per_s`): reading the events, moving nodes, making jobs of
those that are ready and putting them into their TaskQueues. Each scenario is measured in a process
of its own, so that its peak of memory (`peak_mb`) is its own; `advance_growth_mb` is by how much
the memory of the advancing process grew from its first quarter to its end.

The latency is measured with a real worker: chains of nodes in many DAGs, all active, whose jobs are
ended one after another at a steady rate; it is the time from a job's end to when its child's job
waits, by the database's clock.
"""

from __future__ import annotations

import io
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks import base

_LAYER = 1000
_ANALYSE_EVERY = 20
SUBMIT_FILE = """\
executable = /bin/true
arguments = $(JOB) $(number)
request_memory = 512
queue
"""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A DAG of some shape."""

    shape: str
    nodes: int


FULL = (
    Scenario("layered", 10_000),
    Scenario("layered", 200_000),
    Scenario("wide", 10_000),
    Scenario("wide", 200_000),
    Scenario("layered", 1_000_000),
)
QUICK = (Scenario("layered", 3_000), Scenario("wide", 2_000))


@dataclass(frozen=True, slots=True)
class Load:
    """DAGs that are active at once, the length of each, and how many jobs end in a second."""

    dags: int = 50
    chain: int = 40
    ends_per_s: float = 20.0


def measure(is_quick: bool) -> dict[str, Any]:
    """Run all scenarios, one after another, then the latency."""
    base.in_a_process(migrate)
    scenarios = [_run(each) for each in (QUICK if is_quick else FULL)]
    load = Load(dags=5, chain=4) if is_quick else Load()
    return {
        "scenarios": scenarios,
        "latency": base.in_a_process(_measure_latency, load),
        "reference": base.reference_ms(),
    }


def _run(scenario: Scenario) -> dict[str, Any]:
    dag_id, stored = base.in_a_process(_store, scenario)
    return {**stored, **base.in_a_process(_advance, dag_id)}


def migrate() -> None:
    base.load_django()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def dag_text(scenario: Scenario) -> str:
    """The DAG file: a JOB and a VARS line for each node, RETRY for all."""
    lines = [f"JOB n{number} n.sub" for number in range(scenario.nodes)]
    lines += [f'VARS n{number} number="{number}"' for number in range(scenario.nodes)]
    lines.append("RETRY ALL_NODES 2")
    if scenario.shape == "wide":
        lines += [f"PARENT n0 CHILD n{number}" for number in range(1, scenario.nodes)]
    else:
        draw = random.Random(scenario.nodes)
        for number in range(_LAYER, scenario.nodes):
            before = (number // _LAYER - 1) * _LAYER
            first, second = draw.sample(range(_LAYER), 2)
            lines.append(f"PARENT n{before + first} n{before + second} CHILD n{number}")
    return "\n".join(lines) + "\n"


def _store(scenario: Scenario) -> tuple[int, dict[str, Any]]:
    """Parse, check and store a DAG in an empty database."""
    base.load_django()
    from wms.dags.submission.checking import check_dag
    from wms.dags.submission.runs import RunRequest, store_run

    owner = prepare()
    files = {
        "case.dag": io.BytesIO(dag_text(scenario).encode()),
        "n.sub": io.BytesIO(SUBMIT_FILE.encode()),
    }
    began_s = time.perf_counter()
    checked = check_dag(["case.dag"], files=files, owner=owner)
    parse_s = time.perf_counter() - began_s
    if checked.findings:
        raise SystemExit("; ".join(map(str, checked.findings[:5])))
    request = RunRequest(workspace=workspace(owner), owner=owner, dag_files=["case.dag"])
    began_s = time.perf_counter()
    dag = store_run(request, checked, actor=actor())
    store_s = time.perf_counter() - began_s
    return dag.pk, {
        "shape": scenario.shape,
        "nodes": scenario.nodes,
        "arcs": len(checked.dag.arcs),
        "parse_s": round(parse_s, 2),
        "store_s": round(store_s, 2),
        "peak_mb": _peak_mb(),
    }


def _advance(dag_id: int) -> dict[str, Any]:
    """Advance a DAG to its end, all jobs completing at once; only the engine is timed."""
    base.load_django()
    from django.db import connection
    from django.utils import timezone

    from wms.core.models import InboxEntry
    from wms.dags.engine.cycle import advance
    from wms.dags.models import Dag

    vacuum()
    bind(dag_id)
    engine_s, rounds, rates, memory = 0.0, 0, [], []
    nodes = Dag.objects.values_list("node_count", flat=True).get(pk=dag_id)
    done = 0
    while True:
        began_s = time.perf_counter()
        while InboxEntry.objects.filter(key=dag_id).exists():
            advance(dag_id, now=timezone.now())
            rounds += 1
        took_s = time.perf_counter() - began_s
        engine_s += took_s
        ended = _end_all_jobs(dag_id)
        memory.append(_now_mb())
        if not ended:
            break
        done += ended
        rates.append(ended / took_s)
        if len(rates) % _ANALYSE_EVERY == 1:
            # As autovacuum does, of which a run of seconds sees nothing.
            with connection.cursor() as cursor:
                cursor.execute("ANALYZE dags_node, dags_edge, jobs_job, jobs_jobevent")
    state = Dag.objects.values_list("state", flat=True).get(pk=dag_id)
    if state != "completed" or done != nodes:
        raise SystemExit(f"the DAG is {state} with {done} of {nodes} nodes run")
    return {
        "advance_nodes_per_s": round(nodes / engine_s),
        "advance_median_nodes_per_s": round(statistics.median(rates)),
        "advance_rounds": rounds,
        "advance_peak_mb": _peak_mb(),
        "advance_growth_mb": round(memory[-1] - memory[len(memory) // 4], 1),
    }


def vacuum() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def bind(dag_id: int) -> None:
    """The DAG is at a site, as after a match."""
    from django.utils import timezone

    from wms.dags import lifecycle
    from wms.dags.models import Dag
    from wms.sites.models import Site

    site = Site.objects.get(name="bench")
    Dag.objects.filter(pk=dag_id).update(site=site, matched_at=timezone.now())
    lifecycle.apply_to_dags("match", [dag_id], actor=actor())


def _end_all_jobs(dag_id: int) -> int:
    """Let every waiting job of the DAG run and end well, as pilots would have it; how many."""
    from wms.jobs.models import Job

    waiting = Job.objects.filter(topic="dag-jobs", topic_key=dag_id, state="waiting")
    return end_jobs(list(waiting.order_by("pk").values_list("pk", flat=True)))


def end_jobs(ids: list[int]) -> int:
    """Number of these waiting jobs, all of which run now and end well."""
    from django.db import transaction

    from wms.core.statemachine import Increment
    from wms.jobs import lifecycle
    from wms.taskqueues import operations as taskqueues

    for start in range(0, len(ids), 5000):
        batch = ids[start : start + 5000]
        with transaction.atomic():
            taskqueues.withdraw(batch)
            lifecycle.apply("match", batch, actor=actor(), attempt_number=Increment())
            lifecycle.apply("complete", batch, actor=actor())
    return len(ids)


def _peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _owner() -> Any:
    from wms.core.accounts import ensure_account
    from wms.core.models import Role

    return ensure_account(
        "bench", password="a password for measuring", role=Role.USER, actor=actor()
    )


def actor() -> Any:
    from wms.core.actors import Actor

    return Actor.system("benchmark")


def workspace(owner: Any) -> Any:
    from wms.jobs.content.blobs import store_bytes
    from wms.jobs.operations import create_workspace

    return create_workspace(owner, {"n.sub": store_bytes(SUBMIT_FILE.encode())})


def _now_mb() -> float:
    """The resident memory of this process."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def prepare() -> Any:
    """An empty database with one site, and the user whose DAGs these are."""
    from django.db import connection

    from wms.sites.services import QueueSpec, SiteSpec, configure_site

    with connection.cursor() as cursor:
        cursor.execute(
            "TRUNCATE dags_dag, dags_node, dags_edge, dags_nodeevent, dags_submitdescription, "
            "jobs_workspace, jobs_job, jobs_jobevent, core_inboxentry, taskqueues_taskqueue, "
            "taskqueues_waitingjob, taskqueues_tally CASCADE"
        )
    queue = QueueSpec(name="host", element="host", cores=64, memory_mb=10**6)
    configure_site(SiteSpec(name="bench", max_matches=1000), [queue], actor=actor())
    return _owner()


def _measure_latency(load: Load) -> dict[str, Any]:
    """Chains in many DAGs at once, advanced by a worker; jobs end one after another."""
    base.load_django()
    owner = prepare()
    dag_ids = [_chain(owner, load.chain) for _ in range(load.dags)]
    with _worker():
        for dag_id in dag_ids:
            bind(dag_id)
        _wait_until_active(load.dags)
        _end_jobs_steadily(load)
        return {"dags": load.dags, "ends_per_s": load.ends_per_s, **_latencies()}


def _chain(owner: Any, length: int) -> int:
    from wms.dags.submission.checking import check_dag
    from wms.dags.submission.runs import RunRequest, store_run

    lines = [f'JOB n{number} n.sub\nVARS n{number} number="{number}"' for number in range(length)]
    lines += [f"PARENT n{number - 1} CHILD n{number}" for number in range(1, length)]
    files = {
        "case.dag": io.BytesIO("\n".join(lines).encode()),
        "n.sub": io.BytesIO(SUBMIT_FILE.encode()),
    }
    checked = check_dag(["case.dag"], files=files, owner=owner)
    request = RunRequest(workspace=workspace(owner), owner=owner, dag_files=["case.dag"])
    return int(store_run(request, checked, actor=actor()).pk)


@contextmanager
def _worker() -> Iterator[None]:
    """A Celery worker with beat, as an installation has it."""
    command = [
        sys.executable, "-m", "celery", "--app", "portal", "worker", "--beat", "--concurrency", "2",
        "--queues", "celery,engine", "--pidfile", "", "--loglevel", "ERROR",
        "--without-gossip", "--without-mingle",
    ]  # fmt: skip
    # Its greeting would stand before the results.
    worker = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        worker.terminate()
        worker.wait(timeout=60)


def _wait_until_active(dags: int) -> None:
    """Until the worker has started and every DAG has its first job waiting."""
    from wms.jobs.models import Job

    until_s = time.monotonic() + 60
    while Job.objects.filter(state="waiting").count() < dags:
        if time.monotonic() > until_s:
            raise SystemExit("the DAGs did not begin in time")
        time.sleep(0.1)


def _end_jobs_steadily(load: Load) -> None:
    """End a waiting job of one DAG after the other, at the rate of the load, until none is left."""
    from django.db import close_old_connections, transaction

    from wms.core.statemachine import Increment
    from wms.jobs import lifecycle
    from wms.jobs.models import Job
    from wms.taskqueues import operations as taskqueues

    left, next_s = load.dags * load.chain, time.monotonic()
    until_s = next_s + 60 + 3 * left / load.ends_per_s
    while left and time.monotonic() < until_s:
        job_id = (
            Job.objects.filter(state="waiting").order_by("pk").values_list("pk", flat=True).first()
        )
        if job_id is None:
            time.sleep(0.02)
            continue
        next_s = max(next_s + 1 / load.ends_per_s, time.monotonic() - 1)
        time.sleep(max(0.0, next_s - time.monotonic()))
        with transaction.atomic():
            taskqueues.withdraw([job_id])
            lifecycle.apply("match", [job_id], actor=actor(), attempt_number=Increment())
            lifecycle.apply("complete", [job_id], actor=actor())
        left -= 1
    close_old_connections()
    if left:
        raise SystemExit(f"{left} jobs were not submitted in time")


def _latencies() -> dict[str, float]:
    """From each job's end to when its child's job waits, by the events of both."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT extract(epoch FROM begun.created_at - ended.created_at)
            FROM dags_edge AS edge
            JOIN dags_node AS parent ON parent.id = edge.parent_id
            JOIN dags_node AS child ON child.id = edge.child_id
            JOIN jobs_jobevent AS ended ON ended.job_id = parent.job_id AND ended.event = 'complete'
            JOIN jobs_loggedjobevent AS begun
                ON begun.job_id = child.job_id AND begun.event = 'enqueue'
            """
        )
        found = sorted(float(row[0]) for row in cursor.fetchall())
    return {
        "samples": len(found),
        "median_s": round(statistics.median(found), 3),
        "p99_s": round(found[int(0.99 * (len(found) - 1))], 3),
    }


if __name__ == "__main__":
    base.main("dag", measure, __doc__)
