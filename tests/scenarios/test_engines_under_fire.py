"""Two engine workers on hosts of their own, killed and cut off at random under load.

Many small DAGs run meanwhile. At the end every node has run once, and what the rows of each DAG say
is what its events say. How long the load lasts is said by `--engine-seconds`.
"""

from __future__ import annotations

import io
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, F, Q
from django.utils import timezone

from tests.scenarios.engine_hosts import WorkerHost, worker_hosts
from tests.scenarios.namespaces import why_not
from tests.scenarios.running_demo import wait_for
from wms.core.actors import Actor
from wms.core.models import InboxEntry, Role, User
from wms.core.statemachine import Increment
from wms.dags.engine.rebuild import rebuild_dag
from wms.dags.lifecycle import TOPICS
from wms.dags.models import Dag, Node, NodeEvent
from wms.dags.negotiation import cycle as negotiation
from wms.dags.submission.submit import DagSubmission, submit_dag
from wms.jobs import lifecycle as jobs
from wms.jobs.models import Job
from wms.sites.services import QueueSpec, SiteSpec, configure_site
from wms.taskqueues import operations as taskqueues

pytestmark = [pytest.mark.scenario, pytest.mark.slow, pytest.mark.apart]

#: DAGs at any time, and jobs that end together.
ACTIVE, AT_ONCE = 30, 40
#: How long a worker is away, or cut off; now and then so long that its connections are given up.
AWAY_S, LONG_AWAY_S = (0.2, 3.0), (7.0, 9.0)
PAUSE_S = (0.5, 2.0)
END_LIMIT_S = 240
PILOTS = Actor.system("test")
#: Two layers, which all meet in one node, and a chain behind it.
NODES = ["A", *(f"B{n}" for n in range(4)), *(f"C{n}" for n in range(4)), "D", "E"]
DAG = "\n".join(
    [
        *(f"JOB {name} step.sub" for name in NODES),
        "PARENT A CHILD B0 B1 B2 B3",
        "PARENT B0 B1 B2 B3 CHILD C0 C1 C2 C3",
        "PARENT C0 C1 C2 C3 CHILD D",
        "PARENT D CHILD E",
    ]
)
STEP = b"executable = /bin/true\narguments = $(JOB)\nqueue\n"


class Trouble(threading.Thread):
    """Kills a worker and starts it again, or cuts its host off for a while, one after the other."""

    def __init__(self, hosts: Sequence[WorkerHost], draw: random.Random) -> None:
        super().__init__(daemon=True)
        self._hosts = hosts
        self._draw = draw
        self._over = threading.Event()
        self.made: Counter[str] = Counter()
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._over.wait(self._draw.uniform(*PAUSE_S)):
                self._make(self._draw.choice(self._hosts))
        except BaseException as error:
            # Told by the test, which would go on without trouble.
            self.error = error
            raise

    def _make(self, host: WorkerHost) -> None:
        kind = self._draw.choice(["kill", "cut", "cut and kill"])
        away_s = self._draw.uniform(*(LONG_AWAY_S if self._draw.random() < 0.2 else AWAY_S))
        self.made[kind] += 1
        if "cut" in kind:
            host.cut()
        if "kill" in kind:
            host.kill()
        self._over.wait(away_s)
        if "cut" in kind:
            host.mend()
        if "kill" in kind:
            host.start()

    def stop(self) -> None:
        """Make no more; both workers are there again."""
        self._over.set()
        self.join(timeout=60)
        assert self.error is None


def submit(owner: User, count: int) -> None:
    for _ in range(count):
        submit_dag(
            DagSubmission(dag_name="test.dag", dag_text=DAG, files={"step.sub": io.BytesIO(STEP)}),
            owner=owner,
            actor=Actor.person(owner),
        )


def run_jobs() -> int:
    """Number of waiting jobs that run now and end well, as by many pilots at once."""
    waiting = Job.objects.filter(state="waiting").order_by("pk").values_list("pk", flat=True)
    ids = list(waiting[:AT_ONCE])
    if ids:
        with transaction.atomic():
            taskqueues.withdraw(ids)
            jobs.apply("match", ids, actor=PILOTS, attempt_number=Increment())
            jobs.apply("complete", ids, actor=PILOTS)
    return len(ids)


def carry_on() -> int:
    """Match idle DAGs and run waiting jobs; the number of DAGs that have not ended."""
    if Dag.objects.filter(state="idle").exists():
        negotiation.run_cycle(timezone.now())
    run_jobs()
    return Dag.objects.filter(ended_at=None).count()


@pytest.mark.django_db(transaction=True)
def test_every_node_runs_once_while_engines_are_killed_and_cut_off(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    if reason := why_not():
        pytest.skip(reason)
    load_s = pytestconfig.getoption("--engine-seconds")
    seed = random.randrange(10**6)
    sys.stderr.write(f"\nseed of the trouble: {seed}\n")
    alice = User.objects.create_user("alice", role=Role.USER)
    queues = [QueueSpec(name="main", element="host", settings={"slots": 1}, max_pilots=2)]
    configure_site(SiteSpec(name="lab", max_matches=10 * ACTIVE), queues, actor=PILOTS)

    with worker_hosts(tmp_path, connection.settings_dict, settings.REDIS_URL) as hosts:
        for host in hosts:
            host.start()
        submit(alice, ACTIVE)
        wait_for("the engine begins", lambda: (carry_on(), has_begun())[1], timeout_s=120)
        trouble = Trouble(hosts, random.Random(seed))
        trouble.start()
        until_s = time.monotonic() + load_s
        while time.monotonic() < until_s:
            submit(alice, ACTIVE - carry_on())
        trouble.stop()
        wait_for("all DAGs end", lambda: not carry_on(), timeout_s=END_LIMIT_S)

    sys.stderr.write(f"{Dag.objects.count()} DAGs, {dict(trouble.made)}\n")
    assert sum(trouble.made.values()) > 1
    assert_each_node_ran_once()
    assert_rows_are_what_the_events_say()


def has_begun() -> bool:
    return Node.objects.filter(state="done").exists()


def assert_each_node_ran_once() -> None:
    dags = Dag.objects.count()
    assert set(Dag.objects.values_list("state", flat=True)) == {"completed"}
    assert Node.objects.filter(state="done").count() == Node.objects.count() == dags * len(NODES)
    assert Job.objects.filter(state="done").count() == Job.objects.count() == dags * len(NODES)
    told = NodeEvent.objects.values("node_id", "event").annotate(number=Count("pk"))
    assert [each for each in told if each["number"] > 1] == []


def assert_rows_are_what_the_events_say() -> None:
    others = ("ready_count", "submitted_count", "failed_count", "futile_count", "skipped_count")
    wrong = Q(*((f"{name}__gt", 0) for name in others), _connector=Q.OR)
    wrong |= ~Q(done_count=F("node_count")) | ~Q(node_count=len(NODES))
    assert list(Dag.objects.filter(wrong).values_list("pk", "done_count", *others)) == []
    assert not InboxEntry.objects.filter(topic__in=TOPICS).exists()
    for pk in Dag.objects.values_list("pk", flat=True):
        assert rebuild_dag(pk).differences == (), pk
