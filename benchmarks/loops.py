"""Benchmark of the control loops: the largest gap of each while a DAG of 2,000 short jobs runs.

A loop keeps its period when its largest gap is at most twice the period plus the time that the
loop itself took. Gaps are those between starts, of loops with a period of ten seconds or less.
Other benchmarks use `submit_short_jobs`, and `client_of`, which makes a site and an API client.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks import base
from portal.cli.child import ChildPortal
from portal.cli.client import Client, Part
from portal.cli.state_directory import StateDirectory

NODES = 2000
QUICK_NODES = 200
SLOTS = 8
_LONGEST_PERIOD_S = 10.0
_LIMIT_S = 900.0
_POLL_S = 0.1
_DESCRIPTION = "executable = /bin/true\nqueue\n"


@dataclass(slots=True)
class Watched:
    """The starts of a loop that were seen, and the longest of its cycles."""

    period_s: float
    starts: list[datetime] = field(default_factory=list)
    longest_s: float = 0.0

    def see(self, started_at: datetime, duration_s: float) -> None:
        """Take in what the row of the loop says now."""
        if not self.starts or started_at != self.starts[-1]:
            self.starts.append(started_at)
        self.longest_s = max(self.longest_s, duration_s)

    def told(self, until: datetime) -> dict[str, float]:
        """The largest gap, also that to `until`, and what it may be."""
        pairs = zip(self.starts, [*self.starts[1:], until], strict=True)
        gap_s = max((b - a).total_seconds() for a, b in pairs)
        return {
            "period_s": self.period_s,
            "largest_gap_s": round(gap_s, 2),
            "longest_cycle_s": round(self.longest_s, 2),
            "allowed_s": round(2 * self.period_s + self.longest_s, 2),
        }


def measure(is_quick: bool) -> dict[str, Any]:
    """Run the DAG on a portal of its own and look at the loops' rows all the while."""
    place = StateDirectory.from_environment()
    number = QUICK_NODES if is_quick else NODES
    with ChildPortal(place) as portal, tempfile.TemporaryDirectory() as folder:
        client = client_of(place, portal, slots=SLOTS)
        began_s = time.monotonic()
        dag_id = submit_short_jobs(client, Path(folder), number)
        loops, late_share = _watch(client, dag_id)
        total_s = time.monotonic() - began_s
    base.close_connections()
    late = sorted(n for n, told in loops.items() if told["largest_gap_s"] > told["allowed_s"])
    return {
        "nodes": number,
        "total_s": round(total_s, 1),
        "jobs_per_s": round(number / total_s, 1),
        "late_share": round(late_share, 3),
        "late": late,
        "loops": loops,
    }


def submit_short_jobs(client: Client, folder: Path, number: int) -> int:
    """Submit a DAG of so many nodes that wait for nothing and do nothing; return its id."""
    dag = folder / f"short-{number}.dag"
    dag.write_text("".join(f"JOB N{at} short.sub\n" for at in range(number)))
    dag.with_name("short.sub").write_text(_DESCRIPTION)
    parts = [Part("dag", dag), Part("file", dag.with_name("short.sub"))]
    return int(client.post_files("dags/", parts, key=dag.name)["id"])


def client_of(
    place: StateDirectory,
    portal: ChildPortal,
    *,
    slots: int,
    element: str = "host",
    settings: Mapping[str, Any] | None = None,
) -> Client:
    """Client of an operator, on a portal with one queue: of this host, or as told."""
    base.load_django()
    from portal.cli.demo_site import prepare_operator
    from wms.core.actors import Actor
    from wms.sites.services import QueueSpec, SiteSpec, configure_site

    actor = Actor.system("benchmark")
    queue = QueueSpec(
        name=element,
        element=element,
        settings=dict(settings or {}),
        cores=1,
        max_pilots=slots,
        max_queued_pilots=slots,
    )
    configure_site(SiteSpec(name="here"), [queue], actor=actor)
    return Client(portal.local_url, prepare_operator(place, actor=actor).token)


def _watch(client: Client, dag_id: int) -> tuple[dict[str, dict[str, float]], float]:
    """The loops by name, and in which part of the time at least one of them was late."""
    from django.utils import timezone

    from wms.core.models import ControlLoop
    from wms.core.selectors import LoopHealth, loop_statuses
    from wms.dags.models import Dag

    watched: dict[str, Watched] = {}
    polls = late_polls = 0
    until_s = time.monotonic() + _LIMIT_S
    while Dag.objects.filter(pk=dag_id, ended_at=None).exists():
        if time.monotonic() > until_s:
            raise SystemExit("the DAG did not end in time")
        rows = ControlLoop.objects.filter(period_s__lte=_LONGEST_PERIOD_S, started_at__isnull=False)
        for row in rows:
            each = watched.setdefault(row.name, Watched(row.period_s))
            each.see(row.started_at, row.duration_s or 0.0)
        statuses = loop_statuses(now=timezone.now())
        late_polls += any(status.health == LoopHealth.LATE for status in statuses)
        polls += 1
        time.sleep(_POLL_S)
    state = Dag.objects.values_list("state", flat=True).get(pk=dag_id)
    if state != "completed":
        raise SystemExit(f"the DAG is {state}")
    told = {name: each.told(timezone.now()) for name, each in sorted(watched.items())}
    return told, late_polls / max(polls, 1)


if __name__ == "__main__":
    base.main("loops", measure, __doc__)
