"""Life of a sweep, for `benchmarks.sweep`: its jobs are made and run while processes are killed.

The materialiser is one process. Clients are pilots: they claim and end jobs by the operations of
the pilot protocol, without HTTP and payload; each fiftieth payload fails. At random moments the
materialiser, or a client, gets SIGKILL and is started again; the pilot of a killed client has
failed, so that its job waits again, as when the batch system tells of it. When a third has ended,
the cluster is removed. Then each row is accounted for, by the cluster, its jobs and their events.
The rates count from the start of the first process, and all kills are in them.
"""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

from benchmarks import base
from benchmarks.claim_load import keep_house

CLIENTS = 4
_SPAWN = multiprocessing.get_context("spawn")
_SITE = "bench"
#: Seconds between two kills, at least and at most; a process needs some to begin.
_PAUSE_S = (5.0, 30.0)
#: So many kills come at random counts of ended jobs before the third, so that small runs have some.
_LEAST_KILLS = 2
#: A part of the rows waits at most, so that some are not made yet when a small one is removed.
_WAITING_PART, _MOST_WAITING = 8, 2_000
_POLL_S = 0.05
_FAILS_EVERY = 50
_ENDS = {"complete": "done", "fail": "failed", "kill": "killed"}


def live_sweep(rows: int, clients: int = CLIENTS) -> dict[str, Any]:
    """Submit a sweep, have it made and run under kills, removed at a third, and account for it."""
    base.load_django()
    try:
        return _Sweep.live(rows, clients)
    finally:
        base.close_connections()


def _materialise() -> None:
    base.load_django()
    from django.utils import timezone

    from wms.jobs.clusters.materialiser import DEEDS, run_cycle

    while True:
        report = run_cycle(timezone.now())
        if not any(report.get(deed) for deed in DEEDS):
            time.sleep(_POLL_S)


def _run_jobs(pilot_id: int, place: int, ends: Any) -> None:
    """Claim and end jobs; `ends` counts at this place what was acknowledged."""
    base.load_django()
    from django.utils import timezone

    from matching.task_queues.resources import Resource
    from wms.jobs.attempts.ending import PayloadEnd, end_attempt
    from wms.jobs.attempts.guard import AttemptSuperseded
    from wms.pilots.models import Pilot
    from wms.pilots.protocol.claims import claim_job
    from wms.pilots.protocol.registration import pilot_actor

    pilot = Pilot.objects.select_related("queue__site").get(pk=pilot_id)
    actor = pilot_actor(pilot)
    resource = Resource(_SITE, cpu_time_s=10**6, cores=1, memory_mb=2000, queue=f"{_SITE}/host")
    number = 0
    while True:
        number += 1
        answer = claim_job(
            pilot, resource, claim_key=f"{number:032x}", now=timezone.now(), is_called=True
        )
        if answer.work is None:
            time.sleep(_POLL_S)
            continue
        ref = answer.work.attempt
        end = PayloadEnd(exit_code=int(number % _FAILS_EVERY == 0), wall_s=0.01, cpu_s=0.01)
        try:
            end_attempt(
                ref.job_id, ref.number, pilot_id=pilot_id, end=end, actor=actor, now=timezone.now()
            )
        except AttemptSuperseded:
            continue
        ends[place] += 1


class _Sweep:
    """A cluster that lives: its processes, and those that were killed."""

    def __init__(self, rows: int, clients: int) -> None:
        from wms.core.actors import Actor
        from wms.core.models import User
        from wms.jobs.clusters.submit import ClusterSubmission, submit_cluster
        from wms.sites.models import Queue
        from wms.sites.services import QueueSpec, SiteSpec, configure_site

        self.rows, self.clients = rows, clients
        self.actor = Actor.system("benchmark")
        queue = QueueSpec(name="host", element="host", wall_time_s=10**6)
        configure_site(SiteSpec(name=_SITE), [queue], actor=self.actor)
        self._queue = Queue.objects.get(site__name=_SITE)
        self._random = random.Random(17)
        self._counts = sorted(self._random.randrange(rows // 3) for _ in range(_LEAST_KILLS))
        #: One writer each, and no lock that a killed one could keep.
        self._ends = _SPAWN.RawArray("q", clients)
        self._pilots = [0] * clients
        self._clients = [self._begin_client(place) for place in range(clients)]
        self._materialiser = self._begin(_materialise)
        self._over = _SPAWN.Event()
        running = _SPAWN.Barrier(2)
        self._keeper = self._begin(keep_house, None, running, self._over)
        running.wait()
        self.kills = {"materialiser": 0, "client": 0}
        owner = User.objects.get(username="sweeper")
        submission = ClusterSubmission(
            f"executable = /bin/true\nqueue {rows}\n",
            options={"eager": False, "max_idle": min(_MOST_WAITING, rows // _WAITING_PART)},
        )
        began_s = time.perf_counter()
        person = Actor.person(owner)
        self.cluster = submit_cluster(submission, owner=owner, actor=person).cluster
        self.submit_s = round(time.perf_counter() - began_s, 3)

    @classmethod
    def live(cls, rows: int, clients: int) -> dict[str, Any]:
        """Live through it; what was found."""
        sweep = cls(rows, clients)
        try:
            began_s = time.perf_counter()
            sweep.go_on(lambda cluster: 3 * cluster.ended_count >= rows)
            third_s = time.perf_counter() - began_s
            made, ended = sweep.cluster.made_count, sweep.cluster.ended_count
            began_s = time.perf_counter()
            sweep.remove()
            sweep.go_on(lambda cluster: not cluster.live_count)
            removed_s = time.perf_counter() - began_s
        finally:
            sweep.stop()
        return {
            "jobs": rows,
            "clients": clients,
            "submit_s": sweep.submit_s,
            "made_per_s": round(made / third_s),
            "ended_per_s": round(ended / third_s),
            "third_s": round(third_s, 1),
            "removed_s": round(removed_s, 1),
            "kills": sweep.kills,
            **sweep.account(),
        }

    def go_on(self, is_over: Callable[[Any], bool]) -> None:
        """Kill and start again until it is so."""
        next_s = time.monotonic() + self._random.uniform(*_PAUSE_S) / 4
        while True:
            self.cluster.refresh_from_db()
            if is_over(self.cluster):
                return
            if time.monotonic() >= next_s or self._is_counted():
                self._kill_one()
                next_s = time.monotonic() + self._random.uniform(*_PAUSE_S)
            self._check_alive()
            time.sleep(_POLL_S)

    def _is_counted(self) -> bool:
        """True once for each of the counts that were drawn."""
        is_due = bool(self._counts) and self.cluster.ended_count > self._counts[0]
        if is_due:
            del self._counts[0]
        return is_due

    def remove(self) -> None:
        from wms.jobs.clusters.services import remove_clusters

        remove_clusters([self.cluster.pk], actor=self.actor, reason="a third has ended")

    def stop(self) -> None:
        for process in (*self._clients, self._materialiser):
            process.kill()
            process.join()
        self._over.set()
        self._keeper.join()

    def account(self) -> dict[str, Any]:
        """Number of rows by their ends. Leaves with an error where two of the accounts differ."""
        from django.db.models import Count, Max

        from wms.jobs.models import Job, LoggedJobEvent

        self.cluster.refresh_from_db()
        cluster = self.cluster
        told = {name: getattr(cluster, f"{name}_count") for name in _ENDS.values()}
        jobs = Job.objects.filter(cluster_id=cluster.pk)
        by_state = dict(jobs.values_list("state").annotate(count=Count("pk")).order_by())
        events = LoggedJobEvent.objects.filter(job__cluster_id=cluster.pk).order_by()
        by_event = dict(events.values_list("event").annotate(count=Count("pk")))
        numbers = jobs.aggregate(
            different=Count("process", distinct=True), all=Count("pk"), last=Max("process")
        )
        never_made = cluster.never_made_count
        checks = {
            "rows": sum(told.values()) + cluster.faulty_count + never_made == self.rows,
            "states": by_state == {name: count for name, count in told.items() if count},
            "ends": {name: by_event.get(event, 0) for event, name in _ENDS.items()} == told,
            "made": by_event.get("enqueue", 0) == cluster.made_count == numbers["all"],
            "numbers": numbers["different"] == numbers["all"] == numbers["last"] + 1,
            # A client that was killed behind its commit has told of one less.
            "acknowledged": 0
            <= told["done"] + told["failed"] - sum(self._ends)
            <= self.kills["client"] + self.clients,
        }
        if wrong := [name for name, is_right in checks.items() if not is_right]:
            raise SystemExit(
                f"the accounts differ in {wrong}: {told}, {by_state}, {by_event}, {numbers},"
                f" {never_made} never made, {sum(self._ends)} acknowledged"
            )
        lost = {"run_again": by_event.get("reschedule", 0)}
        return {**told, "never_made": never_made, **lost, "accounts_agree": sorted(checks)}

    def _kill_one(self) -> None:
        # First the one, then the other, so that both are killed in a small run too.
        if self.kills["materialiser"] <= self.kills["client"]:
            self._end(self._materialiser)
            self._materialiser = self._begin(_materialise)
            self.kills["materialiser"] += 1
        else:
            place = self._random.randrange(self.clients)
            self._end(self._clients[place])
            self._fail_pilot(self._pilots[place])
            self._clients[place] = self._begin_client(place)
            self.kills["client"] += 1

    @staticmethod
    def _end(process: BaseProcess) -> None:
        process.kill()
        process.join()

    def _fail_pilot(self, pilot_id: int) -> None:
        """End of a pilot, as the monitor has it once the batch system says that it is over."""
        from django.db import transaction

        from wms.jobs.attempts.rescheduling import reschedule_jobs_of_pilots
        from wms.jobs.models import Attempt
        from wms.jobs.states import JobCause
        from wms.pilots import lifecycle

        with transaction.atomic():
            lifecycle.apply("fail", [pilot_id], actor=self.actor, reason="it was killed")
            reschedule_jobs_of_pilots(
                [pilot_id],
                outcome=Attempt.Outcome.LOST,
                actor=self.actor,
                reason="the pilot was killed",
                cause=JobCause.PILOT_FAILED,
                is_at_fault=False,
            )

    def _check_alive(self) -> None:
        for process in (*self._clients, self._materialiser, self._keeper):
            if not process.is_alive():
                raise SystemExit(f"{process.name} has ended with {process.exitcode}")

    def _begin_client(self, place: int) -> BaseProcess:
        from wms.pilots.models import Pilot
        from wms.pilots.states import PilotState

        pilot = Pilot.objects.create(
            queue=self._queue, state=PilotState.RUNNING, token_sha256="x", batch="b"
        )
        self._pilots[place] = pilot.pk
        return self._begin(_run_jobs, pilot.pk, place, self._ends)

    @staticmethod
    def _begin(work: Any, *arguments: Any) -> BaseProcess:
        process = _SPAWN.Process(target=work, args=arguments, name=work.__name__, daemon=True)
        process.start()
        return process
