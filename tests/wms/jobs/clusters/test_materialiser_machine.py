"""Random clusters under kills, holds, releases and changed limits: each row becomes one job."""

from __future__ import annotations

from collections import Counter

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from tests import factories
from tests.wms.jobs.clusters.samples import SYSTEM, cycle, submit
from wms.core.actors import Actor
from wms.jobs import lifecycle
from wms.jobs.clusters import making, materialiser, services
from wms.jobs.clusters.states import CLUSTER_ALIVE, CLUSTER_TERMINAL
from wms.jobs.models import Cluster, ClusterFault, Job
from wms.jobs.states import TERMINAL
from wms.taskqueues import operations as taskqueues
from wms.taskqueues.models import WaitingJob

WHY = {"actor": SYSTEM, "reason": "test"}
_END = {"complete": "done", "fail": "failed"}


class _Killed(Exception):
    """The materialiser is killed at a statement."""


class Materialiser(RuleBasedStateMachine):
    """One cluster, some of whose rows are faulty, and whose jobs end as they are told."""

    @initialize(
        rows=st.lists(st.integers(0, 9), min_size=1, max_size=14),
        per_row=st.integers(1, 2),
        idle=st.integers(1, 6),
        most=st.integers(1, 8),
    )
    def submit(self, rows: list[int], per_row: int, idle: int, most: int) -> None:
        # A job with no memory that is a number cannot be made; it is seen when its turn comes.
        self.rows = [f"{number}" if number else "x" for number in rows]
        self.owner = factories.person("alice")
        text = (
            "executable = /bin/true\nrequest_memory = $(m)\narguments = $(Process) $(m)\n"
            f"queue {per_row} m from t\n"
        )
        limits = {"max_idle": idle, "max_materialize": most, "eager": False}
        table = "".join(f"{'1' if row == 'x' else row}\n" for row in self.rows)
        self.cluster = submit(self.owner, text, {"t": table}, options=limits).cluster
        stored = self.cluster.tables.get()
        stored.items, stored.content, stored.offsets = self.rows, None, None
        stored.save()
        self.wanted = [
            None if row == "x" else [str(at * per_row + step), row]
            for at, row in enumerate(self.rows)
            for step in range(per_row)
        ]
        self.ended: Counter[str] = Counter()

    @rule()
    def cycle(self) -> None:
        cycle(self.cluster)

    @rule(place=st.integers(0, 40))
    def crash(self, place: int) -> None:
        seen = iter(range(10**6))

        def kill(execute, sql, params, many, context):  # type: ignore[no-untyped-def]
            if next(seen) >= place:
                raise _Killed
            return execute(sql, params, many, context)

        try:
            with transaction.atomic(), connection.execute_wrapper(kill):
                materialiser.advance(self.cluster.pk)
                raise _Killed
        except _Killed:
            pass

    @rule(choice=st.integers(0, 100), event=st.sampled_from(["complete", "fail", "kill"]))
    def end_a_job(self, choice: int, event: str) -> None:
        alive = Job.objects.exclude(state__in=TERMINAL).exclude(state="held")
        jobs = list(alive.filter(cluster_id=self.cluster.pk).order_by("pk"))
        if not jobs:
            return
        pk = jobs[choice % len(jobs)].pk
        taskqueues.withdraw([pk])
        lifecycle.apply("match", [pk], actor=SYSTEM, attempt_number=1)
        lifecycle.apply(event, [pk], **WHY)

    @rule(event=st.sampled_from(["hold", "release"]))
    def steer(self, event: str) -> None:
        service = {"hold": services.hold_clusters, "release": services.release_clusters}[event]
        service([self.cluster.pk], actor=Actor.person(self.owner), reason="test")

    @rule(chance=st.integers(0, 9))
    def remove(self, chance: int) -> None:
        if not chance:
            services.remove_clusters(
                [self.cluster.pk], actor=Actor.person(self.owner), reason="test"
            )

    @rule(idle=st.integers(1, 6), most=st.integers(1, 8))
    def limit(self, idle: int, most: int) -> None:
        self.cluster.refresh_from_db()
        if self.cluster.state in CLUSTER_ALIVE:
            services.change_limits(
                self.cluster.pk, max_idle=idle, max_materialize=most,
                actor=Actor.person(self.owner), reason="test",
            )  # fmt: skip

    @rule(priority=st.integers(0, 10))
    def prioritise(self, priority: int) -> None:
        services.prioritise_clusters(
            [self.cluster.pk], priority=priority, actor=Actor.person(self.owner), reason="test"
        )

    @invariant()
    def each_row_is_one_job_at_most(self) -> None:
        if not hasattr(self, "cluster"):
            return
        cluster = Cluster.objects.get(pk=self.cluster.pk)
        jobs = list(Job.objects.filter(cluster_id=cluster.pk).order_by("process"))
        faulty = {fault.process for fault in ClusterFault.objects.filter(cluster=cluster)}
        made = sorted([*(job.process for job in jobs), *faulty])
        assert made == list(range(cluster.next_process))
        assert {
            at for at, row in enumerate(self.wanted[: cluster.next_process]) if not row
        } == faulty
        assert all(job.arguments == self.wanted[job.process] for job in jobs)
        assert cluster.faulty_count == len(faulty)
        waiting = set(WaitingJob.objects.values_list("job_id", flat=True))
        assert waiting == {job.pk for job in jobs if job.state == "waiting"}

    def teardown(self) -> None:
        """At the end everything is brought to its end, and the counts are those of the jobs."""
        if not hasattr(self, "cluster"):
            return
        self.limit(idle=6, most=8)
        services.release_clusters([self.cluster.pk], actor=Actor.person(self.owner))
        for _ in range(200):
            cluster = cycle(self.cluster)
            if cluster.state in CLUSTER_TERMINAL and not cluster.live_count:
                break
            self.end_a_job(0, "complete")
        states = Counter(Job.objects.filter(cluster_id=cluster.pk).values_list("state", flat=True))
        assert cluster.state in CLUSTER_TERMINAL
        assert (cluster.done_count, cluster.failed_count, cluster.killed_count) == tuple(
            states[state] for state in ("done", "failed", "killed")
        )
        total = states.total() + cluster.faulty_count + cluster.never_made_count
        assert total == cluster.size == len(self.wanted)
        assert cluster.look_at is None


@pytest.mark.slow
@pytest.mark.django_db
def test_each_row_becomes_one_job_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "BATCH", 3)

    class Case(Materialiser):
        def __init__(self) -> None:
            self._atomic = transaction.atomic()
            self._atomic.__enter__()
            super().__init__()

        def teardown(self) -> None:
            try:
                super().teardown()
            finally:
                transaction.set_rollback(True)
                self._atomic.__exit__(None, None, None)

    run_state_machine_as_test(
        Case,
        settings=settings(
            max_examples=12,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
