"""Benchmark of `/bin/true` through real pilots on this host: jobs per second, time of a single job.

`true_jobs` is a part of `benchmarks.pilots`; it shows what the system itself costs.
"""

from __future__ import annotations

import time
from typing import Any

from benchmarks import base
from portal.cli.child import ChildPortal
from portal.cli.state_directory import StateDirectory

SLOTS = 8
_LIMIT_S = 600.0
_POLL_S = 0.02


def true_jobs(number: int) -> dict[str, float]:
    """`/bin/true` so many times through eight slots, and once more when a pilot waits for work."""
    return dict(base.in_a_process(_measure, number))


def _measure(number: int) -> dict[str, float]:
    place = StateDirectory.from_environment()
    with ChildPortal(place):
        base.load_django()
        submit = _submitter()
        together_s = _time(submit, number)
        # The pilots of the many are still there.
        single_s = min(_time(submit, 1) for _ in range(5))
        base.close_connections()
    return {"true_jobs_per_s": round(number / together_s, 1), "single_job_s": round(single_s, 3)}


def job_owner(slots: int) -> tuple[Any, Any, Any]:
    """The owner of jobs, a workspace for them, and who submits: to a site that is this host."""
    from wms.core.accounts import ensure_account
    from wms.core.actors import Actor
    from wms.core.models import Role
    from wms.jobs.operations import create_workspace
    from wms.sites.services import QueueSpec, SiteSpec, configure_site

    actor = Actor.system("benchmark")
    owner = ensure_account("true", password="a password for measuring", role=Role.USER, actor=actor)
    queue = QueueSpec(
        name="host", element="host", cores=1, max_pilots=slots, max_queued_pilots=slots
    )
    configure_site(SiteSpec(name="here"), [queue], actor=actor)
    return owner, create_workspace(owner, {}), actor


def _submitter() -> Any:
    owner, workspace, actor = job_owner(SLOTS)
    from matching.task_queues.needs import Needs
    from wms.jobs.operations import submit_jobs
    from wms.jobs.specs import JobSpec

    needs = Needs.of("true")

    def submit(number: int) -> list[int]:
        specs = [JobSpec(name="true", executable="/bin/true", needs=needs) for _ in range(number)]
        return submit_jobs(specs, owner=owner, workspace=workspace, actor=actor)

    return submit


def _time(submit: Any, number: int) -> float:
    """The seconds from the submission to the last end."""
    began_s = time.monotonic()
    wait_for_jobs(submit(number))
    return time.monotonic() - began_s


def wait_for_jobs(ids: list[int]) -> None:
    """Have pilots sent for jobs, and wait until all are done."""
    from wms.core.loops import wake_loop
    from wms.jobs.models import Job
    from wms.pilots.pressure.director import DIRECT_TASK

    began_s = time.monotonic()
    wake_loop(DIRECT_TASK)
    left = Job.objects.filter(pk__gte=ids[0], pk__lte=ids[-1]).exclude(state="done")
    while left.exists():
        if time.monotonic() - began_s > _LIMIT_S:
            raise SystemExit(f"{left.count()} of {len(ids)} jobs did not end in time")
        time.sleep(_POLL_S)
