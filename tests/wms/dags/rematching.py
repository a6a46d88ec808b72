"""Helpers for tests of rematches: a DAG half done at a site, its move to another, lost pilots.

`at_once` calls functions in threads that start together.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from django.db import connections

from tests.wms.dags.driving import (
    advance,
    claim_of,
    claim_one,
    end,
    match,
    run_one,
)
from wms.core.actors import Actor
from wms.dags.models import Dag
from wms.jobs.attempts.rescheduling import reschedule_jobs
from wms.jobs.models import Attempt
from wms.sites.models import Site

#: A is done first; then B and C are side by side, and D waits for both.
DIAMOND = "\n".join(
    [*(f"JOB {name} step.sub" for name in "ABCD"), "PARENT A CHILD B C", "PARENT B C CHILD D"]
)


def half_done(submit) -> tuple[Dag, Attempt]:
    """A DAG at site-a: A is done, the job of B runs, that of C waits."""
    dag = match(submit(DIAMOND))
    run_one("A")
    advance(dag)
    return dag, claim_of("B")


def move_to(dag: Dag, site: str) -> Dag:
    """Have the negotiator bind the DAG to this site: the others are switched off."""
    Site.objects.exclude(name=site).update(is_enabled=False)
    Site.objects.filter(name=site).update(is_enabled=True)
    return match(dag)


def lose(attempt: Attempt) -> None:
    """The pilot is gone; its job waits again."""
    reschedule_jobs(
        [attempt.job_id],
        outcome=Attempt.Outcome.LOST,
        actor=Actor.system("test"),
        reason="its pilot is lost",
    )


def finish(dag: Dag, site: str) -> Dag:
    while (attempt := claim_one(site)) is not None:
        end(attempt)
        advance(dag)
    return dag


def at_once(*works: Callable[[], object]) -> None:
    """Do all of this in threads that start together."""
    start = threading.Barrier(len(works))

    def run(work: Callable[[], object]) -> None:
        start.wait()
        try:
            work()
        finally:
            connections["default"].close()

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
