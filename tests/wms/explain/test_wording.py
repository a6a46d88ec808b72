"""Wording of the answers that users read most; other tests assert verdicts, counts and sites."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from matching.task_queues.needs import Needs
from tests import factories
from tests.wms.dags.driving import NOW, match
from wms.core.actors import Actor
from wms.core.models import User
from wms.dags.models import Dag, MatchRecord
from wms.dags.services.dags import hold_dags
from wms.explain.answers import answer_for_dag, answer_for_job, answer_for_task_queue
from wms.explain.needs import explain_needs
from wms.jobs.models import Job
from wms.sites.ads import publish_ads
from wms.sites.models import Site
from wms.taskqueues.models import TaskQueue

NODE = "JOB A step.sub"

Submit = Callable[..., Dag]


@pytest.fixture
def site(make_site: Any) -> Site:
    return make_site("site-a")


def test_a_held_dag(submit: Submit, site: Site, alice: User) -> None:
    dag = submit(NODE)
    hold_dags([dag.pk], actor=Actor.person(alice), reason="wait for data")

    assert answer_for_dag(alice, dag.pk, now=NOW).summary == "The DAG is held: wait for data"


def test_a_dag_that_no_cycle_has_looked_at(submit: Submit, site: Site, alice: User) -> None:
    publish_ads({}, now=NOW)
    dag = submit(NODE)

    summary = answer_for_dag(alice, dag.pk, now=NOW).summary

    assert summary.startswith("No negotiation has looked at it yet. It would go to site-a")


def test_a_dag_that_avoids_its_last_site(submit: Submit, site: Site, alice: User) -> None:
    dag = submit(NODE)
    MatchRecord.objects.create(
        dag=dag, site=site, matched_at=NOW, ended_at=NOW, end="rematch", reason="disk full",
        avoided_until=NOW + timedelta(hours=1),
    )  # fmt: skip
    publish_ads({}, now=NOW)

    assert answer_for_dag(alice, dag.pk, now=NOW).summary.endswith(
        "It left site-a: disk full. It avoids site-a until 2026-11-20 13:00 UTC."
    )


def test_a_waiting_job_and_its_task_queue(submit: Submit, site: Site, alice: User) -> None:
    match(submit(NODE))
    factories.pilot(site.queues.get())

    summary = answer_for_job(alice, Job.objects.get().pk, now=NOW).summary

    assert summary == (
        "1 of 1 queue can run it; there 1 pilot runs and 0 wait to start. It is taken when one "
        "of them is free and draws it."
    )
    of_queue = answer_for_task_queue(alice, TaskQueue.objects.get().pk, now=NOW)
    assert of_queue.summary == f"1 job waits. {summary}"


def test_a_job_at_a_closed_site(submit: Submit, make_site: Any, site: Site, alice: User) -> None:
    match(submit(NODE))
    factories.pilot(site.queues.get())
    make_site("site-a", is_enabled=False)

    assert answer_for_job(alice, Job.objects.get().pk, now=NOW).summary == (
        "site-a/main is closed: switched off in its configuration. No new pilot is sent, but 1 "
        "that runs there may still take it."
    )


def test_needs_that_no_queue_meets(site: Site) -> None:
    summary = explain_needs(Needs.of("alice", tags=["gpu"]), now=NOW).summary

    assert summary == "No queue can run it: needs the tags gpu."
