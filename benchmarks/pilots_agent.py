"""Benchmark of the pilot agent: time between two payloads of a slot, and time that the fence adds.

`agent_gap_ms` is the median time between the starts of two payloads that do next to nothing, one
after the other in one slot, with a real portal on the loopback address: the end of the one, its
results and its report, the claim of the next, its start behind the node's best fence. `fence_ms` is
what bubblewrap adds to a payload, from its start to its end: the difference of the medians.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import base
from portal.cli.child import ChildPortal
from portal.cli.state_directory import StateDirectory
from wms.pilots.agent.control import Control
from wms.pilots.agent.fence.base import Fence
from wms.pilots.agent.files.job_directories import JobDirectories
from wms.pilots.agent.payload.execution import run_payload
from wms.pilots.agent.payload.meter import Meter
from wms.pilots.agent.resources.limits import Limits
from wms.pilots.agent.session.fence_selection import best_fence

_PAYLOADS = 40
_LIMIT_S = 300.0


def measure(is_quick: bool) -> dict[str, Any]:
    """Both figures, and the name of the fence."""
    number = 10 if is_quick else _PAYLOADS
    with tempfile.TemporaryDirectory() as folder:
        name = best_fence(Path(folder)).name
    gap_ms = agent_gap_ms(number)
    return {"fence": name, "agent_gap_ms": gap_ms, "fence_ms": fence_ms(number)}


def fence_ms(number: int = _PAYLOADS) -> float | None:
    """What the fence adds to one payload, in ms; None where none works."""
    with tempfile.TemporaryDirectory() as folder:
        work_dir = Path(folder)
        fence = best_fence(work_dir)
        if fence.name == "none":
            return None
        # In turns, so that what else the host does weighs the same on both.
        pairs = [
            (_run_once(Fence(), work_dir / f"a{n}"), _run_once(fence, work_dir / f"b{n}"))
            for n in range(number)
        ]
    plain_s, fenced_s = (statistics.median(each) for each in zip(*pairs, strict=True))
    return round((fenced_s - plain_s) * 1000, 1)


def _run_once(fence: Fence, home: Path) -> float:
    directories = JobDirectories(home)
    directories.make()
    control, limits = Control(), Limits()
    began_s = time.perf_counter()
    enclosure = fence.enclose(directories)
    enclosure.enter()
    outcome = run_payload(
        enclosure.plan(["/bin/true"], {}, limits),
        stdout=home / "stdout",
        stderr=home / "stderr",
        limits=limits,
        meter=Meter(enclosure, [], limits),
        attempt=(1, 1),
        control=control,
        waker=control.waker,
    )
    enclosure.leave([])
    enclosure.close()
    took_s = time.perf_counter() - began_s
    if outcome.exit_code != 0:
        raise SystemExit(f"/bin/true did not run: {outcome}")
    return took_s


def agent_gap_ms(number: int = _PAYLOADS) -> float:
    """The median time from the start of one payload to the start of the next, in ms."""
    return float(base.in_a_process(_measure_gap, number))


def _measure_gap(number: int) -> float:
    with ChildPortal(StateDirectory.from_environment()):
        base.load_django()
        _submit(number)
        _wait_for_jobs()
        starts = _starts(number)
        base.close_connections()
    gaps = [later - earlier for earlier, later in itertools.pairwise(starts)]
    return round(statistics.median(gaps) * 1000, 1)


def _submit(number: int) -> None:
    """A queue of this host with one slot, and jobs for it."""
    from matching.task_queues.needs import Needs
    from wms.core.accounts import ensure_account
    from wms.core.actors import Actor
    from wms.core.loops import wake
    from wms.core.models import Role
    from wms.jobs.operations import create_workspace, submit_jobs
    from wms.jobs.specs import JobSpec
    from wms.pilots.pressure.director import DIRECT_TASK
    from wms.sites.services import QueueSpec, SiteSpec, configure_site

    actor = Actor.system("benchmark")
    owner = ensure_account("gap", password="a password for measuring", role=Role.USER, actor=actor)
    queue = QueueSpec(name="q", element="host", cores=1, max_pilots=1, max_queued_pilots=1)
    configure_site(SiteSpec(name="gap"), [queue], actor=actor)
    needs = Needs.of("gap")
    specs = [
        JobSpec(name="date", executable="/bin/date", arguments=("+%s.%N",), needs=needs)
        for _ in range(number)
    ]
    submit_jobs(specs, owner=owner, workspace=create_workspace(owner, {}), actor=actor)
    wake(DIRECT_TASK)


def _wait_for_jobs() -> None:
    from wms.jobs.models import Job

    left = Job.objects.exclude(state__in=["done", "failed"])
    began_s = time.monotonic()
    while left.exists():
        if time.monotonic() - began_s > _LIMIT_S:
            raise SystemExit(f"{left.count()} jobs did not end in time")
        time.sleep(0.2)


def _starts(number: int) -> list[float]:
    """When each payload ran, by its own clock, in their order."""
    from wms.jobs.content import blobs
    from wms.jobs.models import AttemptFile

    starts = []
    for file in AttemptFile.objects.filter(kind="stdout"):
        with blobs.open_blob(file.blob_id) as content:
            starts.append(float(content.read()))
    if len(starts) != number:
        raise SystemExit(f"{len(starts)} of {number} payloads told their time")
    return sorted(starts)


if __name__ == "__main__":
    base.main("pilots_agent", measure, __doc__)
