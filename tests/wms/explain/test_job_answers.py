"""Answers why a job or a TaskQueue waits: fitting queues, closed queues, pilots."""

from __future__ import annotations

from datetime import timedelta

from matching.negotiation.explanation import MatchVerdict
from tests import factories
from tests.wms.dags.driving import NOW, claim_one, match, run_one
from wms.core.conf import conf
from wms.core.models import User
from wms.explain.answers import answer_for_job, answer_for_task_queue
from wms.jobs.models import Job
from wms.taskqueues.models import TaskQueue, WaitingJob

NODE = "JOB A step.sub"


def test_a_job_that_waits_is_told_which_queues_could_run_it(submit, make_site, alice: User) -> None:
    make_site("site-a")
    make_site("site-b", queue={"cores": 2})
    dag = match(submit(NODE))
    job = Job.objects.get()

    answer = answer_for_job(alice, job.pk, now=NOW)

    assert answer.verdict is MatchVerdict.WAITING
    fitting, refusing = answer.queues.queues
    assert (fitting.site, fitting.refusal) == (dag.site.name, "")
    assert dag.site.name in refusing.refusal
    of_queue = answer_for_task_queue(alice, TaskQueue.objects.get().pk, now=NOW)
    assert of_queue.verdict is MatchVerdict.WAITING
    assert of_queue.queues == answer.queues


def test_a_job_that_avoids_worker_nodes_names_them(submit, make_site, alice: User) -> None:
    make_site("site-a")
    match(submit(NODE))
    job = Job.objects.get()
    before = answer_for_job(alice, job.pk, now=NOW).summary
    WaitingJob.objects.update(avoided_hosts=["wn07"])

    after = answer_for_job(alice, job.pk, now=NOW).summary

    assert after.startswith(before)
    assert "wn07" in after.removeprefix(before)


def test_a_job_that_has_waited_long_avoids_no_worker_node_any_more(
    submit, make_site, alice: User
) -> None:
    make_site("site-a")
    match(submit(NODE))
    WaitingJob.objects.update(
        avoided_hosts=["wn07"], enqueued_at=NOW - timedelta(seconds=conf().retry_patience_s + 1)
    )

    assert answer_for_job(alice, Job.objects.get().pk, now=NOW).avoided_hosts == ()


def test_a_job_whose_site_was_closed_is_not_now(submit, make_site, alice: User) -> None:
    make_site("site-a")
    match(submit(NODE))
    make_site("site-a", is_enabled=False)

    answer = answer_for_job(alice, Job.objects.get().pk, now=NOW)

    assert answer.verdict is MatchVerdict.NOT_NOW
    [fit] = answer.queues.queues
    assert (fit.site, fit.queue) == ("site-a", "main")
    assert (fit.is_shut, fit.is_off, fit.is_limited) == (True, True, False)


def test_a_job_at_a_closed_site_may_still_be_taken_by_a_pilot_that_runs_there(
    submit, make_site, alice: User
) -> None:
    site = make_site("site-a")
    match(submit(NODE))
    factories.pilot(site.queues.get())
    make_site("site-a", is_enabled=False)

    answer = answer_for_job(alice, Job.objects.get().pk, now=NOW)

    assert answer.verdict is MatchVerdict.WAITING
    [fit] = answer.queues.queues
    assert (fit.is_shut, fit.running_pilots) == (True, 1)


def test_a_job_that_no_pilot_waits_for_any_more_says_what_became_of_it(
    submit, make_site, alice: User
) -> None:
    make_site("site-a")
    match(submit("JOB A step.sub\nJOB B step.sub"))
    run_one("A")
    claim_one()

    verdicts = [
        answer_for_job(alice, job.pk, now=NOW).verdict for job in Job.objects.order_by("pk")
    ]

    assert verdicts == [MatchVerdict.ENDED, MatchVerdict.BOUND]
