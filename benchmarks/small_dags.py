"""Benchmark of many small DAGs at once: ends of jobs that the engine takes in a second.

DAGs of 40 nodes, in layers with two parents each, are all active. Cycles of the engine alternate
with the ends of all jobs that wait at that time; only the cycles are timed. `ends_per_s` is
measured with one process, `two_ends_per_s` with two side by side on the same DAGs; `by_active` is
the rate of one process by the number of DAGs. `reference` is a read of one row and a transaction
of one row in the same run, to compare machines by.
"""

from __future__ import annotations

import io
import multiprocessing
import random
import time
from multiprocessing.pool import Pool
from typing import Any

from benchmarks import base, dag

_NODES = 40
_LAYER = 8
_WARM_UP = 5


def measure(is_quick: bool) -> dict[str, Any]:
    """Measure each number of DAGs in processes of its own, one after the other."""
    base.in_a_process(dag.migrate)
    counts, usual = ((10, 20), 20) if is_quick else ((100, 1_000, 10_000), 1_000)
    by_active = {count: _measure(count, 1) for count in counts}
    return {
        "dags": usual,
        "nodes": _NODES,
        "ends_per_s": by_active[usual],
        "two_ends_per_s": _measure(usual, 2),
        "by_active": by_active,
        "reference": base.reference_ms(),
    }


def _measure(dags: int, processes: int) -> int:
    base.in_a_process(_furnish, dags)
    engine_s, ended = 0.0, 0
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        pool.map(_load, range(_WARM_UP * processes))
        while True:
            engine_s += _seconds_of_cycles(pool, processes)
            number = base.in_a_process(_end_all_jobs)
            if not number:
                break
            ended += number
    if ended != dags * _NODES or base.in_a_process(_count_completed) != dags:
        raise SystemExit(f"{ended} of {dags * _NODES} nodes have run")
    return round(ended / engine_s)


def _seconds_of_cycles(pool: Pool, processes: int) -> float:
    began_s = time.perf_counter()
    for cycle in [pool.apply_async(_empty_inbox) for _ in range(processes)]:
        cycle.get()
    return time.perf_counter() - began_s


def _load(_: int) -> None:
    base.load_django()
    from wms.dags.engine import cycle  # noqa: F401 - its import is not to be timed


def _furnish(dags: int) -> None:
    base.load_django()
    from wms.dags.submission.checking import check_dag
    from wms.dags.submission.runs import RunRequest, store_run

    owner = dag.prepare()
    files = {
        "case.dag": io.BytesIO(_text().encode()),
        "n.sub": io.BytesIO(dag.SUBMIT_FILE.encode()),
    }
    checked = check_dag(["case.dag"], files=files, owner=owner)
    if checked.findings:
        raise SystemExit("; ".join(map(str, checked.findings[:5])))
    for _ in range(dags):
        request = RunRequest(workspace=dag.workspace(owner), owner=owner, dag_files=["case.dag"])
        dag.bind(store_run(request, checked, actor=dag.actor()).pk)
    dag.vacuum()


def _text() -> str:
    lines = [f'JOB n{number} n.sub\nVARS n{number} number="{number}"' for number in range(_NODES)]
    draw = random.Random(_NODES)
    for number in range(_LAYER, _NODES):
        before = (number // _LAYER - 1) * _LAYER
        first, second = draw.sample(range(_LAYER), 2)
        lines.append(f"PARENT n{before + first} n{before + second} CHILD n{number}")
    return "\n".join([*lines, "RETRY ALL_NODES 2"]) + "\n"


def _empty_inbox() -> None:
    """Cycles until nothing is left that no other process is at."""
    from django.utils import timezone

    from wms.dags.engine.cycle import run_cycle

    while run_cycle(timezone.now()).get("dags"):
        pass


def _end_all_jobs() -> int:
    """Number of the jobs that waited, all of which run now and end well."""
    base.load_django()
    from wms.jobs.models import Job

    waiting = Job.objects.filter(state="waiting").order_by("pk")
    return dag.end_jobs(list(waiting.values_list("pk", flat=True)))


def _count_completed() -> int:
    base.load_django()
    from wms.dags.models import Dag

    return Dag.objects.filter(state="completed").count()


if __name__ == "__main__":
    base.main("small_dags", measure, __doc__)
