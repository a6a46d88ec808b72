"""The example that fills a portal: what it makes holds together as if it had really happened."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from django.db import connection
from django.db.models import Count, F, Q
from django.test import Client
from django.utils import timezone

from examples.load.accounts_and_sites import SHIFTER
from examples.load.loading import load
from examples.load.scale import Scale
from examples.load.simulation import Life, play_all
from tests import factories
from wms.core.models import InboxEntry, User
from wms.dags.engine.rebuild import rebuild_dag
from wms.dags.models import Dag, Edge, Node
from wms.failures.models import Failure, FailureBin, FailureGroup
from wms.history.models import Bin
from wms.jobs.models import Attempt, Job, LoggedJobEvent
from wms.jobs.states import TRANSITIONS
from wms.pilots.models import Pilot
from wms.taskqueues.models import Tally, WaitingJob

JOBS = 1500


@pytest.fixture(scope="module")
def loaded(module_rows: None) -> Scale:
    scale = Scale.of_jobs(JOBS)
    load(scale, password=factories.PASSWORD, now=timezone.now())
    # Else it would be done at the end of each test.
    connection.check_constraints()
    return scale


@pytest.mark.slow
@pytest.mark.django_db
def test_everything_that_was_asked_for_is_there_and_holds_together(loaded: Scale) -> None:
    assert Job.objects.count() == JOBS
    assert Dag.objects.count() == loaded.dags
    assert Pilot.objects.count() == loaded.pilots
    assert Dag.objects.order_by("-node_count")[0].node_count >= loaded.large * 0.9
    _check_dags()
    _check_jobs()
    _check_failures()


def _check_dags() -> None:
    """Rows and counters are what the log of events tells."""
    found = {dag.pk: rebuild_dag(dag.pk).differences for dag in Dag.objects.all()}
    assert {pk: told for pk, told in found.items() if told} == {}
    assert len(set(Dag.objects.values_list("state", flat=True))) >= 4
    assert Edge.objects.exists()


def _check_jobs() -> None:
    states: dict[int, str] = {}
    for job_id, event, before, after in LoggedJobEvent.objects.order_by("pk").values_list(
        "job_id", "event", "from_state", "to_state"
    ):
        assert before in TRANSITIONS[event].sources
        assert before == states.get(job_id, "received")
        states[job_id] = after
    assert states == dict(Job.objects.values_list("pk", "state"))
    times = list(LoggedJobEvent.objects.order_by("pk").values_list("created_at", flat=True))
    assert times == sorted(times)
    made = list(Job.objects.order_by("pk").values_list("created_at", flat=True))
    assert made == sorted(made)

    tried = Job.objects.annotate(tries=Count("attempts"))
    assert not tried.exclude(tries=F("attempt_number")).exists()
    is_open, has_pilot = Q(outcome=""), Q(job__state__in=["matched", "running", "stalled"])
    assert not Attempt.objects.filter(is_open & ~has_pilot).exists()
    latest = Attempt.objects.filter(number=F("job__attempt_number"))
    assert not latest.exclude(site_name=F("job__site_name")).exists()
    pilots = Pilot.objects.in_bulk()
    for attempt in Attempt.objects.exclude(outcome=""):
        pilot = pilots[attempt.pilot_id]
        assert pilot.registered_at <= attempt.matched_at
        assert pilot.ended_at is None or attempt.ended_at <= pilot.ended_at

    waiting = set(Job.objects.filter(state="waiting").values_list("pk", flat=True))
    assert set(WaitingJob.objects.values_list("job_id", flat=True)) == waiting
    assert sum(Tally.objects.values_list("jobs", flat=True)) == len(waiting)
    of_nodes = Counter(Node.objects.exclude(job=None).values_list("state", "job__state"))
    assert not {pair for pair in of_nodes if (pair[0] == "done") != (pair[1] == "done")}


def _check_failures() -> None:
    """What failed was put into groups by the code that always does that."""
    assert not InboxEntry.objects.filter(topic__startswith="failed-").exists()
    totals = sum(FailureGroup.objects.values_list("total", flat=True))
    assert 0 < totals == Failure.objects.count()
    assert FailureBin.objects.exists()
    assert Bin.objects.filter(series__name="jobs.running", archive=2).count() > 24
    assert Bin.objects.filter(series__name="throughput.done", archive=2).exists()


def test_the_same_number_makes_the_same_production() -> None:
    def played(seed: int) -> list[tuple[str, int, list[Life]]]:
        weights, now_s = [1.0] * 6, 1_800_000_000.0
        flows = play_all(Scale.of_jobs(JOBS), weights, 3, random.Random(seed), now_s)
        return [(flow.state, flow.nodes, flow.lives) for flow in flows]

    assert played(1) == played(1)
    assert played(1) != played(2)


@pytest.mark.slow
@pytest.mark.django_db
def test_the_pages_open(loaded: Scale) -> None:
    client = Client()
    client.force_login(User.objects.get(username=SHIFTER))
    dag = Dag.objects.order_by("-node_count")[0]
    job, site = Job.objects.filter(state="failed")[0], Dag.objects.exclude(site=None)[0].site

    for path in (
        "/", "/jobs/", f"/jobs/?site={site.name}&state=failed", f"/jobs/{job.pk}/", "/dags/",
        f"/dags/{dag.pk}/?tab=levels", "/pilots/", "/sites/", f"/sites/{site.name}/", "/errors/",
        "/history/", "/history/jobs.json?range=1d",
    ):  # fmt: skip
        assert client.get(path).status_code == 200, path
