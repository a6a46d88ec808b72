"""Benchmark of many small DAGs at once: ends of jobs that the engine takes in a second.

DAGs of 40 nodes, in layers with two parents each, are all active. Cycles of the engine alternate
with the ends of all jobs that wait at that time; only the cycles are timed. Each scenario has a
number of DAGs, and of processes side by side that take part: the sweep over the numbers of DAGs
tells whether an end costs more where more are active (`cpu_us_per_end` and `statements_per_end`
do not depend on what else the machine does). `reference` is a read of one row and a transaction of
one row in the same run, to compare machines by.
"""

from __future__ import annotations

import io
import multiprocessing
import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from multiprocessing.pool import Pool
from typing import Any, NamedTuple

from benchmarks import base, dag

_NODES = 40
_LAYER = 8
_WARM_UP = 5


@dataclass(frozen=True, slots=True)
class Scenario:
    """DAGs that are active at once, and processes that advance them side by side."""

    dags: int
    processes: int = 1


FULL = (Scenario(100), Scenario(1_000), Scenario(10_000), Scenario(1_000, processes=2))
QUICK = (Scenario(10), Scenario(20), Scenario(20, processes=2))


class Cost(NamedTuple):
    """Cost of the cycles of one process."""

    cpu_s: float
    statements: int


def measure(is_quick: bool) -> dict[str, Any]:
    """Measure each scenario in processes of its own, one after the other."""
    base.in_a_process(dag.migrate)
    return {
        "nodes": _NODES,
        "scenarios": [_measure(each) for each in (QUICK if is_quick else FULL)],
        "reference": base.reference_ms(),
    }


def _measure(scenario: Scenario) -> dict[str, Any]:
    dags, processes = scenario.dags, scenario.processes
    base.in_a_process(_furnish, dags)
    engine_s, ended = 0.0, 0
    costs: list[Cost] = []
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        pool.map(_load, range(_WARM_UP * processes))
        while True:
            began_s = time.perf_counter()
            costs += _cycles(pool, processes)
            engine_s += time.perf_counter() - began_s
            number = base.in_a_process(_end_all_jobs)
            if not number:
                break
            ended += number
    if ended != dags * _NODES or base.in_a_process(_count_completed) != dags:
        raise SystemExit(f"{ended} of {dags * _NODES} nodes have run")
    return {
        **asdict(scenario),
        "ends_per_s": round(ended / engine_s),
        "cpu_us_per_end": round(1e6 * sum(cost.cpu_s for cost in costs) / ended),
        "statements_per_end": round(sum(cost.statements for cost in costs) / ended, 3),
    }


def _cycles(pool: Pool, processes: int) -> list[Cost]:
    running = [pool.apply_async(_empty_inbox) for _ in range(processes)]
    return [cycle.get() for cycle in running]


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


def _empty_inbox() -> Cost:
    """Cycles until nothing is left that no other process is at."""
    from django.db import connection
    from django.utils import timezone

    from wms.dags.engine.cycle import run_cycle

    statements = 0

    def count(execute: Callable[..., Any], *arguments: Any) -> Any:
        nonlocal statements
        statements += 1
        return execute(*arguments)

    began_s = time.process_time()
    with connection.execute_wrapper(count):
        while run_cycle(timezone.now()).get("dags"):
            pass
    return Cost(time.process_time() - began_s, statements)


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
