"""The materialiser: jobs are made a few ahead of what waits, and each row once."""

from __future__ import annotations

import pytest

from tests.wms.jobs.clusters.samples import PLAIN, SYSTEM, cycle, go_on, processes, submit
from wms.core.actors import Actor
from wms.core.models import InboxEntry, User
from wms.jobs import lifecycle, operations
from wms.jobs.clusters import services
from wms.jobs.clusters.rerun import rerun_cluster
from wms.jobs.models import Cluster, ClusterFault, Job
from wms.jobs.states import JobState
from wms.taskqueues.models import WaitingJob
from wms.taskqueues.operations import withdraw


def large(owner: User, size: int = 10, **options: int) -> Cluster:
    """A cluster whose jobs are made later, few at once."""
    limits = {"max_idle": 4, "max_materialize": 6, **options}
    return submit(owner, f"{PLAIN}queue {size}\n", options=limits).cluster


def take(cluster: Cluster, count: int) -> list[int]:
    """Have jobs of the cluster that wait run."""
    waiting = Job.objects.filter(cluster_id=cluster.pk, state=JobState.WAITING).order_by("process")
    ids = list(waiting.values_list("pk", flat=True)[:count])
    withdraw(ids)
    lifecycle.apply("match", ids, actor=SYSTEM, attempt_number=1)
    return ids


def test_no_more_jobs_wait_than_max_idle(alice: User) -> None:
    cluster = go_on(large(alice))

    assert processes(cluster) == [0, 1, 2, 3]
    assert cluster.next_process == 4
    assert WaitingJob.objects.count() == 4


def test_no_more_jobs_are_there_than_max_materialize(alice: User) -> None:
    cluster = go_on(large(alice))
    take(cluster, 4)
    cycle(cluster)

    assert processes(cluster) == [0, 1, 2, 3, 4, 5]


def test_ended_jobs_are_counted_and_make_room(alice: User) -> None:
    cluster = go_on(large(alice, size=5))
    [first, second, *_] = take(cluster, 3)
    lifecycle.apply("complete", [first], actor=SYSTEM)
    lifecycle.apply("fail", [second], actor=SYSTEM, reason="x")
    cluster = cycle(cluster)

    assert (cluster.done_count, cluster.failed_count, cluster.next_process) == (1, 1, 5)
    assert not InboxEntry.objects.filter(topic="cluster").exists()


def test_a_cluster_is_completed_when_all_its_jobs_have_ended(alice: User) -> None:
    cluster = submit(alice, f"{PLAIN}queue 2\n").cluster
    operations.kill_jobs(take(cluster, 2), actor=SYSTEM, reason="x")
    cluster = cycle(cluster)

    assert (cluster.state, cluster.killed_count) == ("completed", 2)


def test_a_held_cluster_makes_none_and_its_waiting_jobs_are_held_with_it(alice: User) -> None:
    cluster = go_on(large(alice))
    [own] = Job.objects.filter(cluster_id=cluster.pk, process=0)
    operations.hold_jobs([own.pk], actor=SYSTEM, reason="x")
    take(cluster, 1)
    services.hold_clusters([cluster.pk], actor=Actor.person(alice), reason="stop")
    cluster = cycle(cluster)

    assert processes(cluster, state=JobState.HELD, state_cause="cluster_held") == [2, 3]
    assert processes(cluster, state=JobState.MATCHED) == [1]
    assert cluster.next_process == 4

    services.release_clusters([cluster.pk], actor=Actor.person(alice))
    cluster = cycle(cluster)

    assert processes(cluster, state=JobState.HELD) == [0]
    assert processes(cluster, state=JobState.WAITING) == [2, 3, 4, 5]


def test_of_a_removed_cluster_no_more_are_made_and_all_are_killed(alice: User) -> None:
    cluster = go_on(large(alice))
    services.remove_clusters([cluster.pk], actor=Actor.person(alice), reason="stop")
    cluster = cycle(cycle(cluster))

    assert (cluster.killed_count, cluster.never_made_count, cluster.state) == (4, 6, "removed")
    assert processes(cluster, state=JobState.KILLED) == [0, 1, 2, 3]
    assert not WaitingJob.objects.exists()


@pytest.mark.slow
def test_a_row_that_no_job_can_be_made_of_is_counted_and_blocks_none(alice: User) -> None:
    text = "executable = /bin/true\narguments = \"'$(a)'\"\nrequest_memory = $(a)\nqueue a from t\n"
    rows = [str(n) for n in range(5000)]
    rows[3501] = "x1"
    cluster = submit(alice, text, {"t": "\n".join(rows)}).cluster
    Cluster.objects.filter(pk=cluster.pk).update(max_idle=10_000)
    cluster = go_on(cluster)

    assert (cluster.next_process, cluster.faulty_count) == (5000, 1)
    [fault] = ClusterFault.objects.all()
    assert (fault.process, Job.objects.count()) == (3501, 4999)


def test_changes_reach_jobs_that_wait_and_those_to_come(alice: User) -> None:
    cluster = go_on(large(alice))
    changes = {"priority": 7, "sites": ["A"], "memory_mb": 5}
    services.change_clusters([cluster.pk], actor=Actor.person(alice), reason="x", **changes)
    Cluster.objects.update(max_idle=20, max_materialize=20)
    cluster = cycle(cluster)

    jobs = Job.objects.filter(cluster_id=cluster.pk)
    assert {job.priority for job in jobs} == {7}
    assert {(*job.needs["sites"], job.needs["memory_mb"]) for job in jobs} == {("A", 5)}
    assert cluster.pending_changes is None
    assert len(processes(cluster)) == 10


def test_failed_jobs_run_again_as_a_new_cluster_with_their_numbers(alice: User) -> None:
    cluster = go_on(large(alice, size=6, max_idle=6))
    ids = take(cluster, 6)
    lifecycle.apply("complete", ids[:3], actor=SYSTEM)
    lifecycle.apply("fail", ids[3:5], actor=SYSTEM, reason="x")
    cycle(cluster)
    again = rerun_cluster(cluster.pk, actor=Actor.person(alice), reason="x", memory_mb=9)
    again = cycle(again)

    assert processes(again) == [3, 4]
    [job, _] = Job.objects.filter(cluster_id=again.pk).order_by("process")
    assert (job.arguments, job.needs["memory_mb"]) == (["3"], 9)
    assert (again.size, again.next_process, again.previous_id) == (2, 2, cluster.pk)
