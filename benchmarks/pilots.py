"""Benchmark of pilots against a real portal: a fleet of simulated ones, short jobs in real ones.

The fleet (`benchmarks.fleet`) lives in a process of its own: 5,000 pilots send heartbeats for ten
minutes and 50 claims are made in a second; every claimed job is carried to its end. `lost` are jobs
whose end the server accepted and does not show, `doubled` jobs that two claims got or that ran
twice. `large_fleet` are 20,000 pilots that hardly do more than send heartbeats. `server_growth_mb`
is by how much the web server's memory grew after the first fifth.

It runs the measurements of `benchmarks.pilots_director` and `benchmarks.pilots_agent` too.
`true_jobs_per_s` is a thousand `/bin/true` from the submission to the last one's end, through eight
slots of this host; `single_job_s` a single one, when a pilot is there already.
"""

from __future__ import annotations

import os
import statistics
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks import base, fleet, pilots_agent, pilots_director
from benchmarks.true_jobs import true_jobs
from portal.cli.child import ChildPortal
from portal.cli.state_directory import StateDirectory

#: What the server asks of pilots that live long: a beat a minute.
_HEARTBEAT_S = 60.0
_SERVER = {
    "PILOTAGE_AGENT_HEARTBEAT_S": str(_HEARTBEAT_S),
    "PILOTAGE_PILOT_STALLED_AFTER_S": str(5 * _HEARTBEAT_S),
}
_MARGIN = 1.3


@dataclass(frozen=True, slots=True)
class Size:
    """The fleet, and how many short jobs."""

    pilots: int = 5000
    minutes: float = 10.0
    claims_per_s: float = 50.0
    payload_s: float = 20.0
    true_jobs: int = 1000


#: Pilots that hardly do more than send heartbeats.
LARGE = Size(pilots=20_000, minutes=5.0, claims_per_s=1.0)
QUICK = Size(pilots=100, minutes=0.4, claims_per_s=10.0, payload_s=2.0, true_jobs=40)


def measure(is_quick: bool) -> dict[str, Any]:
    """Measure one part after the other, each on servers that have nothing of the others."""
    size = QUICK if is_quick else Size()
    found: dict[str, Any] = {}
    with base.scratch_servers():
        found |= true_jobs(size.true_jobs)
    with base.scratch_servers():
        found["agent_gap_ms"] = pilots_agent.agent_gap_ms()
    found["fence_ms"] = pilots_agent.fence_ms()
    with base.scratch_servers():
        found |= _fleet(size)
    with base.scratch_servers():
        found["large_fleet"] = _fleet(QUICK if is_quick else LARGE)
    with base.scratch_servers():
        found["director_cycle_s"] = pilots_director.director_cycle_s(is_quick=is_quick)
    return found


def _fleet(size: Size) -> dict[str, Any]:
    place = StateDirectory.from_environment()
    with _environment(_SERVER), ChildPortal(place) as portal:
        base.load_django()
        jobs = int(size.minutes * 60 * size.claims_per_s * _MARGIN)
        credentials = prepare(size.pilots, jobs)
        plan = fleet.Plan(
            portal.local_url, credentials, size.minutes * 60, _HEARTBEAT_S, size.claims_per_s,
            size.payload_s,
        )  # fmt: skip
        with _ServerMemory(place) as memory:
            seen = base.in_a_process(fleet.run, plan)
        judged = _judge(seen)
    base.close_connections()
    return {
        "pilots": size.pilots,
        "minutes": size.minutes,
        "registrations_per_s": round(seen["registered"] / seen["register_s"], 1),
        "heartbeats": len(seen["heartbeats_s"]),
        "heartbeat_median_s": round(statistics.median(seen["heartbeats_s"]), 3),
        "heartbeat_p99_s": round(_p99(seen["heartbeats_s"]), 3),
        "claims_per_s": round(len(seen["claims_s"]) / seen["claiming_s"], 1),
        "claim_p99_s": round(_p99(seen["claims_s"]), 3),
        "fruitless_claims": seen["fruitless"],
        "failed_requests": seen["failed_requests"],
        **judged,
        "server_mb": memory.last_mb,
        "server_growth_mb": memory.growth_mb,
    }


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ |= values
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _p99(values: list[float]) -> float:
    return sorted(values)[int(0.99 * (len(values) - 1))]


def prepare(pilots: int, jobs: int) -> list[tuple[str, str]]:
    """A queue with so many pilots that have been submitted, uuid and secret of each, and jobs."""
    from matching.task_queues.needs import Needs
    from wms.core.accounts import ensure_account
    from wms.core.actors import Actor
    from wms.core.models import Role
    from wms.jobs.operations import create_workspace, submit_jobs
    from wms.jobs.specs import JobSpec
    from wms.pilots.models import Pilot
    from wms.pilots.protocol.registration import secret_digest
    from wms.sites.models import Queue
    from wms.sites.services import QueueSpec, SiteSpec, configure_site

    actor = Actor.system("benchmark")
    owner = ensure_account(
        "bench", password="a password for measuring", role=Role.USER, actor=actor
    )
    spec = QueueSpec(
        name="q", element="host", settings={"slots": 1}, max_pilots=pilots, memory_mb=2000
    )
    configure_site(SiteSpec(name="bench"), [spec], actor=actor)
    # No pilot is sent beside the fleet.
    Queue.objects.update(is_enabled=False)
    queue = Queue.objects.get(site__name="bench")
    secrets = [f"secret-of-{number:06d}" for number in range(pilots)]
    sent = Pilot.objects.bulk_create(
        [Pilot(queue=queue, batch="fleet", secret_sha256=secret_digest(each)) for each in secrets],
        batch_size=1000,
    )
    needs = Needs.of("bench")
    specs = [JobSpec(name=f"n{n}", executable="/bin/true", needs=needs) for n in range(jobs)]
    submit_jobs(specs, owner=owner, workspace=create_workspace(owner, {}), actor=actor)
    return [(str(pilot.uuid), secret) for pilot, secret in zip(sent, secrets, strict=True)]


def _judge(seen: dict[str, Any]) -> dict[str, int]:
    """Compare what the fleet was told with what the server knows."""
    from wms.jobs.models import Attempt, Job

    done = set(Job.objects.filter(state="done").values_list("pk", flat=True))
    ended = {job for job, _ in seen["ended"]}
    given = Counter(job for job, _ in seen["claimed"])
    twice = {job for job, times in given.items() if times > 1}
    ran = Counter(Attempt.objects.filter(outcome="done").values_list("job_id", flat=True))
    twice |= {job for job, times in ran.items() if times > 1}
    return {"jobs": len(given), "lost": len(ended - done), "doubled": len(twice)}


class _ServerMemory:
    """Samples the memory of the web server's processes while a block runs."""

    def __init__(self, place: StateDirectory) -> None:
        self._folder = place.run
        self._samples: list[float] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    @property
    def last_mb(self) -> int:
        return round(self._samples[-1])

    @property
    def growth_mb(self) -> float:
        return round(self._samples[-1] - self._samples[len(self._samples) // 5], 1)

    def __enter__(self) -> _ServerMemory:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()
        self._samples.append(self._now_mb())

    def _sample(self) -> None:
        while not self._over.wait(2.0):
            self._samples.append(self._now_mb())

    def _now_mb(self) -> float:
        supervisor = psutil.Process(int(Path(self._folder, "supervisord.pid").read_text()))
        total = 0
        for process in supervisor.children(recursive=True):
            # One that has just ended is none of the server's any more.
            with suppress(psutil.NoSuchProcess):
                if "gunicorn" in " ".join(process.cmdline()):
                    total += process.memory_full_info().pss
        return total / 2**20


if __name__ == "__main__":
    base.main("pilots", measure, __doc__)
