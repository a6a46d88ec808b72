"""Benchmark of the example production through the whole portal: jobs per second, time per phase.

With --quick every part simulates few events, so that the time is the portal's own.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks import base
from portal.cli.child import ChildPortal
from portal.cli.client import Client
from portal.cli.demo import ENDS, EXAMPLE, example_parts
from portal.cli.state_directory import StateDirectory

QUICK_EVENTS = 2000
LIMIT_S = 15 * 60


def measure(is_quick: bool) -> dict[str, Any]:
    """Run one production on a portal of its own and read the phases from the events' times."""
    place = StateDirectory.from_environment()
    began = time.monotonic()
    with ChildPortal(place) as portal, tempfile.TemporaryDirectory() as folder:
        start_s = time.monotonic() - began
        client = _client(place, portal)
        parts = example_parts(_few_events(Path(folder)) if is_quick else EXAMPLE)
        began = time.monotonic()
        dag_id = int(client.post_files("dags/", parts, key="benchmark")["id"])
        submit_s = time.monotonic() - began
        _wait(client, dag_id, portal)
        phases = {"start_s": start_s, "submit_s": submit_s} | _phases(dag_id)
    base.close_connections()
    return {name: round(value, 3) for name, value in phases.items()}


def _client(place: StateDirectory, portal: ChildPortal) -> Client:
    base.load_django()
    from portal.cli.demo_site import prepare_operator, prepare_sites
    from wms.core.actors import Actor

    actor = Actor.system("benchmark")
    prepare_sites(place, actor=actor)
    return Client(portal.local_url, prepare_operator(place, actor=actor).token)


def _few_events(folder: Path) -> Path:
    copy = folder / EXAMPLE.name
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    dag = copy / "montecarlo.dag"
    text = dag.read_text(encoding="utf-8")
    dag.write_text(re.sub(r'events="\d+"', f'events="{QUICK_EVENTS}"', text), encoding="utf-8")
    return copy


def _wait(client: Client, dag_id: int, portal: ChildPortal) -> None:
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        portal.check()
        state = client.get(f"dags/{dag_id}/")["state"]
        if state == "completed":
            return
        if state in ENDS:
            raise SystemExit(f"the production is {state}")
        time.sleep(0.5)
    raise SystemExit(f"the production did not end within {LIMIT_S} s")


def _phases(dag_id: int) -> dict[str, float]:
    from django.db.models import Count, Max, Min, Sum

    from wms.dags.models import Dag
    from wms.jobs.models import Attempt

    dag = Dag.objects.get(pk=dag_id)
    ran = Attempt.objects.filter(job__workspace=dag.workspace_id).aggregate(
        count=Count("pk"),
        first=Min("started_at"),
        last=Max("ended_at"),
        wall_s=Sum("wall_s"),
        pilots=Count("pilot_id", distinct=True),
    )
    total_s = _seconds(dag.created_at, dag.ended_at)
    return {
        "negotiate_s": _seconds(dag.created_at, dag.matched_at),
        "first_job_s": _seconds(dag.matched_at, ran["first"]),
        "run_s": _seconds(ran["first"], ran["last"]),
        "finish_s": _seconds(ran["last"], dag.ended_at),
        "total_s": total_s,
        "nodes": dag.node_count,
        "attempts": ran["count"],
        "pilots": ran["pilots"],
        "payload_wall_s": ran["wall_s"] or 0.0,
        "jobs_per_s": dag.node_count / total_s,
    }


def _seconds(begin: datetime | None, end: datetime | None) -> float:
    assert begin is not None
    assert end is not None
    return (end - begin).total_seconds()


if __name__ == "__main__":
    base.main("production", measure, __doc__)
