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


def _submitter() -> Any:
    from matching.task_queues.needs import Needs
    from wms.core.accounts import ensure_account
    from wms.core.actors import Actor
    from wms.core.models import Role
    from wms.jobs.operations import create_workspace, submit_jobs
    from wms.jobs.specs import JobSpec
    from wms.sites.services import QueueSpec, SiteSpec, configure_site

    actor = Actor.system("benchmark")
    owner = ensure_account("true", password="a password for measuring", role=Role.USER, actor=actor)
    queue = QueueSpec(
        name="host", element="host", cores=1, max_pilots=SLOTS, max_queued_pilots=SLOTS
    )
    configure_site(SiteSpec(name="here"), [queue], actor=actor)
    workspace = create_workspace(owner, {})
    needs = Needs.of("true")

    def submit(number: int) -> list[int]:
        specs = [JobSpec(name="true", executable="/bin/true", needs=needs) for _ in range(number)]
        return submit_jobs(specs, owner=owner, workspace=workspace, actor=actor)

    return submit


def _time(submit: Any, number: int) -> float:
    """The seconds from the submission to the last end."""
    from wms.core.loops import wake_loop
    from wms.jobs.models import Job
    from wms.pilots.pressure.director import DIRECT_TASK

    began_s = time.monotonic()
    ids = submit(number)
    wake_loop(DIRECT_TASK)
    left = Job.objects.filter(pk__gte=ids[0], pk__lte=ids[-1]).exclude(state="done")
    while left.exists():
        if time.monotonic() - began_s > _LIMIT_S:
            raise SystemExit(f"{left.count()} of {number} jobs did not end in time")
        time.sleep(_POLL_S)
    return time.monotonic() - began_s
