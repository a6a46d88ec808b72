"""Benchmark of storage: bytes on disk per finished job and node, and the speed of writing jobs.

A million `/bin/true` are submitted by the real writer, ten thousand at a time, and go through their
life by the state machine's own statements: matched in a random order, started, ended. What the
claim and the reports write of an attempt is written for a thousand at once; some jobs go through
the real operations one by one, and their rows are compared with the others (`same_shape`). As many
nodes are submitted as DAGs and advanced by the engine. Then everything is vacuumed, as autovacuum
does it: nothing is rebuilt. `bytes_per_job` and `bytes_per_node` count all tables that grew, with
their indexes; `wal_per_job` is what went to the log. `submit_s` is the submission of the first
hundred thousand jobs, in one call.
"""

from __future__ import annotations

import io
import itertools
import random
import secrets
import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any

from benchmarks import base

FULL, QUICK = 1_000_000, 20_000
_EAGER = 100_000
#: Jobs that are submitted together, and those that begin and end together.
_SUBMITTED, _STEP = 10_000, 1_000
#: So many steps pass between the match of a job and its start, and between that and its end.
_LATENCY = 3
_REALLY_RUN = 50
_NODES_OF_DAG = 10_000
_PILOTS = 1_000
_SITE = "bench"
_END = {"exit_code": 0, "wall_s": 61.204, "cpu_s": 59.873, "max_rss_mb": 41.2}
#: What the agent of a pilot reports.
_USAGE = {
    "wall_s": 61.204, "cpu_s": 59.873, "memory_mb": 41.2, "disk_mb": 0.1, "files": 4,
    "processes": 1, "read_mb": 0.352, "written_mb": 0.004,
}  # fmt: skip
#: Autovacuum comes when a fifth of a table is dead, and each job leaves three dead rows of itself.
_VACUUMED_AFTER = 0.2 / 3


def measure(is_quick: bool) -> dict[str, Any]:
    """Fill two databases in turn, one with jobs and one with nodes, and weigh them."""
    rows = QUICK if is_quick else FULL
    base.in_a_process(_migrate)
    found = {
        "jobs": base.in_a_process(_measure_jobs, rows),
        "nodes": base.in_a_process(_measure_nodes, rows),
    }
    return {"rows": rows, **found, "reference": base.reference_ms()}


def _migrate() -> None:
    base.load_django()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def _measure_jobs(rows: int) -> dict[str, Any]:
    base.load_django()
    world = _World()
    before, log = _sizes(), _log_position()
    eager = min(rows, _EAGER)
    began_s = time.perf_counter()
    waiting = world.submit(eager)
    submit_s = time.perf_counter() - began_s
    really = world.really_run(waiting[:_REALLY_RUN])
    for start in range(_REALLY_RUN, eager, _SUBMITTED):
        world.live(waiting[start : start + _SUBMITTED])
    for _ in range((rows - eager) // _SUBMITTED):
        world.live(world.submit(_SUBMITTED))
    written = _log_position() - log
    _vacuum()
    same = _shape(really) == _shape(waiting[-_REALLY_RUN:])
    return {
        f"submit_{eager}_s": round(submit_s, 2),
        "same_shape": same,
        "bytes_per_job": _total(before, rows),
        "wal_per_job": round(written / rows),
        "by_table": _by_table(before, rows),
    }


def _measure_nodes(rows: int) -> dict[str, Any]:
    base.load_django()
    world = _World()
    _vacuum()
    before, log = _sizes(), _log_position()
    for number in range(max(1, rows // _NODES_OF_DAG)):
        world.run_dag(number, min(rows, _NODES_OF_DAG))
    written = _log_position() - log
    _vacuum()
    return {
        "bytes_per_node": _total(before, rows),
        "wal_per_node": round(written / rows),
        "by_table": _by_table(before, rows),
    }


class _World:
    """A site with pilots, and a user who submits."""

    def __init__(self) -> None:
        from django.utils import timezone

        from wms.core.accounts import ensure_account
        from wms.core.actors import Actor
        from wms.core.models import Role
        from wms.jobs.operations import create_workspace
        from wms.pilots.models import Pilot
        from wms.sites.models import Queue
        from wms.sites.services import QueueSpec, SiteSpec, configure_site

        self.system = Actor.system("benchmark")
        queue = QueueSpec(name="host", element="host", cores=64, memory_mb=10**6)
        configure_site(SiteSpec(name=_SITE, max_matches=1000), [queue], actor=self.system)
        self.owner = ensure_account(
            "bench", password="a password for measuring", role=Role.USER, actor=self.system
        )
        self.workspace = create_workspace(self.owner, {})
        self._random = random.Random(17)
        self._lived = self._vacuumed = 0
        offered = Queue.objects.get()
        if not Pilot.objects.exists():
            Pilot.objects.bulk_create(
                Pilot(
                    queue=offered,
                    state="running",
                    batch="b",
                    secret_sha256="0" * 64,
                    registered_at=timezone.now(),
                    token_sha256="0" * 64,
                )
                for _ in range(_PILOTS)
            )
        self._pilots = itertools.cycle(Pilot.objects.order_by("pk"))

    def submit(self, count: int) -> list[int]:
        """Jobs that differ in their names and one argument."""
        from matching.task_queues.needs import Needs
        from wms.jobs.clusters.lifecycle import MATERIALISER
        from wms.jobs.operations import submission
        from wms.jobs.specs import JobSpec, SharedValues

        needs = Needs.of("bench", cpu_time_s=500, memory_mb=100)
        common: dict[str, Any] = {
            "executable": "/bin/true", "needs": needs, "environment": {"MODE": "measure"},
            "attributes": {"Campaign": '"benchmark"', "Phase": '"one"'},
        }  # fmt: skip
        shared = SharedValues.of(common)
        with submission(
            owner=self.owner, workspace=self.workspace, actor=MATERIALISER, expected=count
        ) as add:
            return list(
                add(
                    [
                        JobSpec(name="true", arguments=(str(n),), shared=shared, **common)
                        for n in range(count)
                    ]
                )
            )

    def live(self, job_ids: Sequence[int]) -> None:
        """The life of waiting jobs, step by step in turn, as of those that overlap in time."""
        order = list(job_ids)
        self._random.shuffle(order)
        steps = [order[start : start + _STEP] for start in range(0, len(order), _STEP)]
        pilots = [next(self._pilots) for _ in steps]
        for now in range(len(steps) + 2 * _LATENCY):
            for each, act in ((now, self._match), (now - _LATENCY, self._start),
                              (now - 2 * _LATENCY, self._end)):  # fmt: skip
                if 0 <= each < len(steps):
                    act(steps[each], pilots[each])
        self._lived += len(job_ids)
        if self._lived - self._vacuumed > _VACUUMED_AFTER * self._lived:
            self._vacuumed = self._lived
            _vacuum()

    def _match(self, ids: Collection[int], pilot: Any) -> None:
        from django.db import connection, transaction

        from wms.core.database.actor_field import stored_actor
        from wms.core.database.hex_field import stored_key
        from wms.core.statemachine import Increment
        from wms.jobs import lifecycle
        from wms.pilots.protocol.registration import pilot_actor
        from wms.taskqueues import operations as taskqueues

        actor = pilot_actor(pilot)
        with transaction.atomic(), connection.cursor() as cursor:
            taskqueues.withdraw(ids)
            events = lifecycle.apply_told(
                "match", ids, actor=actor, attempt_number=Increment(), site_name=_SITE
            )
            cursor.execute(
                """
                INSERT INTO jobs_attempt (job_id, number, pilot_id, site_name, host, claim_key,
                    cores, memory_mb, outcome, reason, job_type, owner_group, gpus, actor,
                    match_event)
                SELECT id, 1, %s, %s, 'node1', key, 1, 100, '', '', '', '', 0, %s, event
                FROM unnest(%s::bigint[], %s::bigint[], %s::text[]) AS matched(id, event, key)
                """,
                [
                    pilot.pk,
                    _SITE,
                    stored_actor(actor.name),
                    list(events),
                    list(events.values()),
                    [stored_key(secrets.token_hex(16)) for _ in events],
                ],
            )

    def _start(self, ids: Collection[int], pilot: Any) -> None:
        from django.db import connection, transaction

        from wms.jobs import lifecycle
        from wms.pilots.protocol.registration import pilot_actor

        with transaction.atomic(), connection.cursor() as cursor:
            events = lifecycle.apply_told("start", ids, actor=pilot_actor(pilot))
            cursor.execute(
                """
                UPDATE jobs_attempt AS attempt
                SET started_at = statement_timestamp(), start_event = started.event
                FROM unnest(%s::bigint[], %s::bigint[]) AS started(id, event)
                WHERE attempt.job_id = started.id
                """,
                [list(events), list(events.values())],
            )

    def _end(self, ids: Collection[int], pilot: Any) -> None:
        from django.db import transaction
        from django.db.models.functions import Now

        from wms.jobs import lifecycle
        from wms.jobs.accounting import account_attempts, note_ends
        from wms.jobs.attempts.ending import PayloadEnd
        from wms.jobs.models import Attempt
        from wms.pilots.protocol.registration import pilot_actor

        end = PayloadEnd(usage=_USAGE, **_END)
        with transaction.atomic():
            note_ends(ids)
            Attempt.objects.filter(job_id__in=ids).update(
                ended_at=Now(), outcome="done", usage=end.usage_besides(), **_END
            )
            facts = {pk: end.facts() for pk in ids}
            lifecycle.apply("complete", ids, actor=pilot_actor(pilot), facts=facts)
        while account_attempts():
            pass

    def really_run(self, ids: Sequence[int]) -> list[int]:
        """Jobs that go through the operations of a claim and of a pilot's reports."""
        from django.db import transaction
        from django.utils import timezone

        from matching.task_queues.needs import Needs
        from wms.jobs.accounting import account_attempts
        from wms.jobs.attempts.ending import PayloadEnd, end_attempt
        from wms.jobs.attempts.progress import start_attempt
        from wms.jobs.operations import bind_to_pilot
        from wms.pilots.protocol.registration import pilot_actor
        from wms.taskqueues import operations as taskqueues

        needs = Needs.of("bench", cpu_time_s=500, memory_mb=100)
        for job_id in ids:
            pilot = next(self._pilots)
            actor = pilot_actor(pilot)
            about = {"pilot_id": pilot.pk, "actor": actor}
            with transaction.atomic():
                taskqueues.withdraw([job_id])
                bind_to_pilot(
                    taskqueues.Claimed(job_id, needs), site_name=_SITE, host="node1", free_cores=1,
                    claim_key=f"{job_id:032x}", **about,
                )  # fmt: skip
            start_attempt(job_id, 1, **about)
            end = PayloadEnd(usage=_USAGE, **_END)
            end_attempt(job_id, 1, end=end, now=timezone.now() + timedelta(seconds=70), **about)
        while account_attempts():
            pass
        return list(ids)

    def run_dag(self, number: int, nodes: int) -> None:
        """A DAG without arcs from its submission to its end, by the engine."""
        from django.utils import timezone

        from wms.core.models import InboxEntry
        from wms.dags import lifecycle
        from wms.dags.engine.cycle import advance
        from wms.dags.models import Dag
        from wms.dags.submission.checking import check_dag
        from wms.dags.submission.runs import RunRequest, store_run
        from wms.jobs.content.blobs import store_bytes
        from wms.jobs.models import Job
        from wms.jobs.operations import create_workspace
        from wms.sites.models import Site

        submit_file = (
            b"executable = /bin/true\narguments = $(number)\nrequest_memory = 100\nqueue\n"
        )
        lines = [f'JOB n{n} n.sub\nVARS n{n} number="{n}"' for n in range(nodes)]
        files = {
            "case.dag": io.BytesIO("\n".join(lines).encode()),
            "n.sub": io.BytesIO(submit_file),
        }
        checked = check_dag(["case.dag"], files=files, owner=self.owner)
        space = create_workspace(self.owner, {"n.sub": store_bytes(submit_file)})
        request = RunRequest(workspace=space, owner=self.owner, dag_files=["case.dag"])
        dag = store_run(request, checked, actor=self.system)
        Dag.objects.filter(pk=dag.pk).update(site=Site.objects.get(), matched_at=timezone.now())
        lifecycle.apply_to_dags("match", [dag.pk], actor=self.system)
        jobs = Job.objects.filter(topic_key=dag.pk, state="waiting", topic="dag-jobs")
        while True:
            while InboxEntry.objects.filter(key=dag.pk).exists():
                advance(dag.pk, now=timezone.now())
            if not (ids := list(jobs.order_by("pk").values_list("pk", flat=True))):
                break
            self.live(ids)
        dag.refresh_from_db()
        if dag.state != "completed":
            raise SystemExit(f"DAG {number} is {dag.state}: {dag.state_reason}")


def _shape(ids: Sequence[int]) -> set[str]:
    """The rows of jobs, without what identifies them and without times."""
    from wms.jobs.models import Attempt, Job, LoggedJobEvent

    shapes = set()
    for job_id in ids:
        rows = [
            *Job.objects.filter(pk=job_id).values(),
            *Attempt.objects.filter(job_id=job_id).values(),
            *LoggedJobEvent.objects.filter(job_id=job_id).order_by("pk").values(),
        ]
        shapes.add(
            repr([{name: _kind(name, value) for name, value in each.items()} for each in rows])
        )
    return shapes


def _kind(name: str, value: Any) -> Any:
    own = ("id", "_at", "_event", "since", "actor", "claim_key", "process")
    if name == "own" or value is None or not (name.endswith(own) or name == "facts"):
        return sorted(value) if name == "own" and value else value
    return sorted(value) if isinstance(value, dict) else type(value).__name__


def _vacuum() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def _log_position() -> int:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_wal_lsn() - '0/0'")
        return int(cursor.fetchone()[0])


def _sizes() -> Mapping[tuple[str, str], int]:
    """Bytes by table and part: its heap with what lies beside it, and each index."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT relname, 'heap', pg_table_size(oid) FROM pg_class
            WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
            UNION ALL
            SELECT owner.relname, part.relname, pg_relation_size(part.oid)
            FROM pg_index JOIN pg_class AS part ON part.oid = indexrelid
            JOIN pg_class AS owner ON owner.oid = indrelid
            WHERE owner.relnamespace = 'public'::regnamespace
            """
        )
        return {(table, part): size for table, part, size in cursor.fetchall()}


def _grown(before: Mapping[tuple[str, str], int]) -> dict[tuple[str, str], int]:
    return {key: size - before.get(key, 0) for key, size in _sizes().items()}


def _total(before: Mapping[tuple[str, str], int], rows: int) -> int:
    return round(sum(_grown(before).values()) / rows)


def _by_table(before: Mapping[tuple[str, str], int], rows: int) -> dict[str, dict[str, float]]:
    """Bytes of a row by table and part, where it is at least one."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for (table, part), size in sorted(_grown(before).items()):
        if size >= rows:
            found[table][part] = round(size / rows, 1)
    return dict(found)


if __name__ == "__main__":
    base.main("storage", measure, __doc__)
