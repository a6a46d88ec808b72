"""Whatever happens in whatever order, a DAG's rows, jobs and log agree, and it comes to its end."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.wms.dags.driving import assert_log_agrees, claim_one, end
from wms.core.actors import Actor
from wms.dags.engine import cycle as engine
from wms.dags.models import Dag, MatchRecord, Node
from wms.dags.negotiation import cycle as negotiation
from wms.dags.negotiation import rematch as rematching
from wms.dags.services.dags import hold_dags, release_dags, rematch_dags
from wms.dags.states import DAG_TERMINAL
from wms.jobs.attempts.rescheduling import reschedule_jobs
from wms.jobs.models import Attempt, Job
from wms.jobs.states import TERMINAL
from wms.sites.models import Site
from wms.taskqueues.models import WaitingJob

#: A and B, then C and D, then E; failures are tried again once.
TEXT = "\n".join(
    [
        *(f"JOB {name} step.sub\nRETRY {name} 1" for name in "ABCDE"),
        "PARENT A B CHILD C D",
        "PARENT C D CHILD E",
    ]
)
SYSTEM = Actor.system("test")
WHY = {"actor": SYSTEM, "reason": "test"}


class _Walk:
    """One DAG, two sites, and everything that can be done to them."""

    def __init__(self, dag: Dag, seed: int) -> None:
        self.dag = dag
        self.random = random.Random(seed)
        self.steps: dict[str, Callable[[], object]] = {
            "negotiate": lambda: negotiation.run_cycle(timezone.now()),
            "advance": self.advance,
            "claim": self.claim,
            "succeed": lambda: self.finish(0),
            "fail": lambda: self.finish(1),
            "lose": self.lose,
            "rematch": lambda: rematch_dags([dag.pk], avoid_s=0, **WHY),
            "rematch and let finish": self.let_finish,
            "rematch by policy": lambda: rematching.run_cycle(timezone.now()),
            "hold": lambda: hold_dags([dag.pk], **WHY),
            "release": lambda: release_dags([dag.pk], actor=SYSTEM),
            "close a site": self.close_a_site,
        }

    def advance(self) -> None:
        engine.run_cycle(timezone.now())
        self.check()

    def claim(self) -> None:
        claim_one(self.random.choice(["site-a", "site-b"]), pilot_id=self.random.randrange(10**9))

    def attempt(self) -> Attempt | None:
        opened = list(Attempt.objects.filter(outcome="").order_by("pk"))
        return self.random.choice(opened) if opened else None

    def finish(self, exit_code: int) -> None:
        if (attempt := self.attempt()) is not None:
            end(attempt, exit_code)

    def lose(self) -> None:
        if (attempt := self.attempt()) is not None:
            outcome = Attempt.Outcome.LOST
            reschedule_jobs([attempt.job_id], outcome=outcome, **WHY)

    def let_finish(self) -> None:
        rematch_dags([self.dag.pk], avoid_s=0, lets_finish=True, **WHY)

    def close_a_site(self) -> None:
        closed = self.random.choice(["site-a", "site-b"])
        Site.objects.filter(name=closed).update(is_enabled=False)
        Site.objects.exclude(name=closed).update(is_enabled=True)

    def check(self) -> None:
        """What holds whenever the engine has seen everything."""
        self.dag.refresh_from_db()
        assert_log_agrees(self.dag)
        alive = set(Job.objects.exclude(state__in=TERMINAL).values_list("pk", flat=True))
        submitted = Node.objects.filter(dag=self.dag, state="submitted")
        assert set(submitted.values_list("job_id", flat=True)) == alive
        sites = {
            site
            for job in Job.objects.filter(pk__in=WaitingJob.objects.values("job_id"))
            for site in job.needs["sites"]
        }
        here = self.dag.site.name if self.dag.site else ""
        assert sites <= ({here} if self.dag.state == "running" else set())
        is_bound = self.dag.site is not None and self.dag.state not in DAG_TERMINAL
        assert MatchRecord.objects.filter(ended_at=None).count() == int(is_bound)

    def to_the_end(self) -> None:
        Dag.objects.update(rematch_expression="")
        release_dags([self.dag.pk], actor=SYSTEM)
        for _ in range(50):
            negotiation.run_cycle(timezone.now())
            self.advance()
            if self.dag.state in DAG_TERMINAL:
                return
            for site in ("site-a", "site-b"):
                claim_one(site)
            for attempt in Attempt.objects.filter(outcome=""):
                end(attempt)
        raise AssertionError(f"the DAG does not end: {self.dag.state}")


@pytest.mark.slow
@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_every_walk_keeps_the_books_and_comes_to_an_end(
    submit, make_site, data: st.DataObject, seed: int
) -> None:
    with transaction.atomic():
        for name in ("site-a", "site-b"):
            make_site(name, max_matches=10)
        dag = submit(TEXT)
        Dag.objects.update(rematch_expression="NodesQueued == 3 || NodesFailedHere > 0")
        walk = _Walk(dag, seed)

        for step in data.draw(st.lists(st.sampled_from(sorted(walk.steps)), max_size=40)):
            walk.steps[step]()
        walk.to_the_end()

        done = Attempt.objects.filter(outcome="done")
        assert done.count() == dag.done_count
        assert done.values("job__name").distinct().count() == dag.done_count
        assert dag.state == ("completed" if dag.done_count == 5 else "failed")
        transaction.set_rollback(True)


pytestmark = pytest.mark.django_db
