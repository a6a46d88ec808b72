"""Sample clusters for tests of sandboxes: jobs taken by pilots, files sent, ends reported."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils import timezone

from matching.task_queues.resources import Resource
from tests.wms.jobs.clusters.samples import go_on, submit
from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs.attempts.ending import PayloadEnd, end_attempt
from wms.jobs.attempts.progress import add_attempt_file
from wms.jobs.content.blobs import store_bytes
from wms.jobs.models import Attempt, Cluster, Job
from wms.jobs.operations import bind_to_pilot
from wms.taskqueues.operations import claim

PILOT = Actor.pilot("p")
WRITES = "executable = /bin/true\ntransfer_output_files = out.root\noutput = out.$(Process).log\n"


def cluster_of(owner: User, jobs: int, description: str = WRITES) -> Cluster:
    return go_on(submit(owner, f"{description}queue {jobs}\n").cluster)


def job_of(cluster: Cluster, process: int) -> Job:
    return Job.objects.get(cluster_id=cluster.pk, process=process)


def take_next() -> Attempt:
    """A pilot takes the next job that waits."""
    claimed = claim(Resource("site-a", cpu_time_s=10**6))
    assert claimed is not None
    attempt = bind_to_pilot(
        claimed, pilot_id=1, site_name="site-a", host="n", free_cores=1, actor=PILOT
    )
    assert attempt is not None
    return attempt


def send(attempt: Attempt, files: Mapping[str, bytes], *, log: bytes | None = None) -> None:
    """The pilot sends files of its attempt."""
    for path, content in files.items():
        add_attempt_file(attempt, kind="output", path=path, blob=store_bytes(content))
    if log is not None:
        add_attempt_file(attempt, kind="stdout", path="stdout", blob=store_bytes(log))


def end(attempt: Attempt, exit_code: int = 0) -> Job:
    """The pilot reports the end; the job as it is then."""
    end_attempt(
        attempt.job_id,
        attempt.number,
        pilot_id=1,
        end=PayloadEnd(exit_code),
        actor=PILOT,
        now=timezone.now(),
    )
    return Job.objects.get(pk=attempt.job_id)


def ended_cluster(owner: User, jobs: int = 3) -> Cluster:
    """A cluster all of whose jobs have sent an output of the same name, and are done."""
    cluster = cluster_of(owner, jobs)
    for _ in range(jobs):
        attempt = take_next()
        send(attempt, {"out.root": b"of %d" % attempt.job.process})
        end(attempt)
    return go_on(cluster)
