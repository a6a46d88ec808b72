"""Benchmark of short jobs per second, by pilots in a real Slurm and by pilots of the host element.

Each way has servers and a portal of its own, one DAG of 2,000 nodes that do nothing, and eight
pilots of one core. Installs Slurm from Debian's packages if it is not there and this is root.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import base
from benchmarks.loops import SLOTS, client_of, submit_short_jobs
from portal.cli.child import ChildPortal
from portal.cli.state_directory import StateDirectory
from tests.batch_systems import slurm

NODES = 2000
QUICK_NODES = 200
_LIMIT_S = 900.0
_POLL_S = 0.2


def measure(is_quick: bool) -> dict[str, Any]:
    """Run the DAG through both, one after the other."""
    number = QUICK_NODES if is_quick else NODES
    with tempfile.TemporaryDirectory(prefix="slurm-", dir="/tmp") as folder:
        controller = slurm.start(Path(folder))
        settings = {
            "log_directory": f"{folder}/pilots",
            "slurm_conf": str(controller.configuration),
        }
        try:
            through_slurm = base.in_a_process(_run, number, "slurm", settings)
        finally:
            slurm.stop(controller.folder)
    through_host = base.in_a_process(_run, number, "host", {})
    return {"nodes": number, "pilots": SLOTS, "slurm": through_slurm, "host": through_host}


def _run(number: int, element: str, settings: dict[str, str]) -> dict[str, float]:
    """Jobs per second: `whole` from the submission on, `steady` while all pilots run."""
    with base.scratch_servers(), tempfile.TemporaryDirectory() as folder:
        place = StateDirectory.from_environment()
        with ChildPortal(place) as portal:
            client = client_of(place, portal, slots=SLOTS, element=element, settings=settings)
            began_s = time.monotonic()
            dag_id = submit_short_jobs(client, Path(folder), number)
            _await_end(dag_id)
            whole_s = time.monotonic() - began_s
            steady = _steady_rate()
        base.close_connections()
    return {"whole_per_s": round(number / whole_s, 1), "steady_per_s": round(steady, 1)}


def _await_end(dag_id: int) -> None:
    from wms.dags.models import Dag

    until_s = time.monotonic() + _LIMIT_S
    while Dag.objects.filter(pk=dag_id, ended_at=None).exists():
        if time.monotonic() > until_s:
            raise SystemExit("the DAG did not end in time")
        time.sleep(_POLL_S)
    state = Dag.objects.values_list("state", flat=True).get(pk=dag_id)
    if state != "completed":
        raise SystemExit(f"the DAG is {state}")


def _steady_rate() -> float:
    """Ends per second between the 20th and the 80th in a hundred."""
    from wms.jobs.models import Attempt

    ends = sorted(Attempt.objects.values_list("ended_at", flat=True))
    first, last = len(ends) // 5, len(ends) * 4 // 5
    return float((last - first) / (ends[last] - ends[first]).total_seconds())


if __name__ == "__main__":
    base.main("throughput", measure, __doc__)
