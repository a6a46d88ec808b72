"""Clusters while two do the same at once: one cluster for a key, one job for a row."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone

from tests.wms.jobs.clusters.samples import PLAIN, SYSTEM, processes, submit
from wms.accounting.models import Quota
from wms.accounting.services import save_quota
from wms.core.errors import Conflict, QuotaExceeded
from wms.core.idempotency_models import IdempotencyKey
from wms.core.models import User
from wms.jobs.clusters import materialiser
from wms.jobs.clusters.rerun import rerun_cluster
from wms.jobs.clusters.services import remove_clusters
from wms.jobs.models import Cluster, Job
from wms.jobs.services import kill_jobs


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """What each call returned; they begin together."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        barrier.wait()
        try:
            return call()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def test_the_same_key_and_content_give_the_same_cluster(alice: User) -> None:
    first = submit(alice, f"{PLAIN}queue 2\n", {"a": "1"}, idempotency_key="k")
    again = submit(alice, f"{PLAIN}queue 2\n", {"a": "1"}, idempotency_key="k")

    assert (first.is_new, again.is_new) == (True, False)
    assert again.cluster == first.cluster
    assert Job.objects.count() == 2


@pytest.mark.parametrize(
    ("text", "file"), [("queue 3\n", "1"), ("queue 2\n", "2")], ids=["description", "file"]
)
def test_the_same_key_with_another_content_is_a_conflict(alice: User, text: str, file: str) -> None:
    submit(alice, f"{PLAIN}queue 2\n", {"a": "1"}, idempotency_key="k")

    with pytest.raises(Conflict):
        submit(alice, PLAIN + text, {"a": file}, idempotency_key="k")
    assert Cluster.objects.count() == 1


def test_a_key_is_free_again_after_a_day_and_for_others_at_once(alice: User, charlie: User) -> None:
    submit(alice, f"{PLAIN}queue\n", idempotency_key="k")
    assert submit(charlie, f"{PLAIN}queue\n", idempotency_key="k").is_new
    IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(hours=25))

    assert submit(alice, f"{PLAIN}queue 2\n", idempotency_key="k").is_new


@pytest.mark.django_db(transaction=True)
def test_one_submission_that_is_sent_twice_at_once_is_stored_once() -> None:
    alice = User.objects.create_user("alice", role="user")

    def send() -> Cluster:
        return submit(alice, f"{PLAIN}queue 5\n", idempotency_key="k").cluster

    made = at_once(send, send, send)

    assert len({cluster.pk for cluster in made}) == 1
    assert (Cluster.objects.count(), Job.objects.count()) == (1, 5)


@pytest.mark.django_db(transaction=True)
def test_one_submission_that_is_sent_twice_at_once_takes_the_last_of_a_quota_once() -> None:
    alice = User.objects.create_user("alice", role="user")
    save_quota(Quota(user=alice, max_clusters=1), actor=SYSTEM)

    def send() -> Cluster:
        return submit(alice, f"{PLAIN}queue\n", idempotency_key="k").cluster

    made = at_once(send, send, send)

    assert len({cluster.pk for cluster in made}) == 1
    with pytest.raises(QuotaExceeded):
        submit(alice, f"{PLAIN}queue\n", idempotency_key="another")


@pytest.mark.django_db(transaction=True)
def test_failed_jobs_that_two_run_again_at_once_run_once() -> None:
    alice = User.objects.create_user("alice", role="user")
    cluster = submit(alice, f"{PLAIN}queue 2\n").cluster
    jobs = list(Job.objects.filter(cluster_id=cluster.pk).values_list("pk", flat=True))
    kill_jobs(jobs, actor=SYSTEM, reason="x")

    def rerun() -> Cluster | None:
        try:
            return rerun_cluster(cluster.pk, actor=SYSTEM, reason="x", with_killed=True)
        except Conflict:
            return None

    made = at_once(rerun, rerun)

    [again] = [each for each in made if each is not None]
    remove_clusters([again.pk], actor=SYSTEM, reason="x")
    assert rerun() is not None


@pytest.mark.django_db(transaction=True)
def test_two_materialisers_at_once_make_each_row_once() -> None:
    alice = User.objects.create_user("alice", role="user")
    options = {"max_idle": 300, "max_materialize": 300, "eager": False}
    clusters = [submit(alice, f"{PLAIN}queue 300\n", options=options).cluster for _ in range(3)]

    def work() -> None:
        for _ in range(5):
            materialiser.run_cycle(timezone.now())

    assert at_once(work, work) == [None, None]
    for cluster in clusters:
        cluster.refresh_from_db()
        assert processes(cluster) == list(range(300))
        assert cluster.next_process == 300
