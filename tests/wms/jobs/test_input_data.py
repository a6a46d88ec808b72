"""Jobs wait in TaskQueues of the sites near their input data, and follow when these change."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from matching.task_queues.needs import Needs
from matching.task_queues.resources import Resource
from tests import factories
from tests.wms.placement.replicas import bring_near, lose, replica, storage
from wms.core.actors import Actor
from wms.core.models import User
from wms.explain.answers import answer_for_job
from wms.jobs import operations
from wms.jobs.attempts.rescheduling import MOST_FREE_ATTEMPTS
from wms.jobs.binding.scopes import NOWHERE
from wms.jobs.input_data import refreshing
from wms.jobs.input_data.returning import wait_for_inputs
from wms.jobs.models import InputChange, InputSet, Job
from wms.jobs.operations import create_workspace, submit_jobs
from wms.jobs.specs import JobSpec
from wms.taskqueues import operations as taskqueues
from wms.taskqueues.models import WaitingJob

pytestmark = pytest.mark.django_db
SYSTEM = Actor.system("test")
ANYTHING = {"cpu_time_s": 10**6, "cores": 64, "memory_mb": 10**6}


@pytest.fixture
def alice(db: None) -> User:
    """Alice, sites UW, CERN and FNAL, and a storage near each."""
    for name in ("UW", "CERN", "FNAL"):
        factories.site(name)
        storage(f"se-{name.lower()}", name)
    return factories.person("alice")


def submitted(owner: User, *names: str, count: int = 1, **how: object) -> list[int]:
    """Jobs whose pilots fetch these files."""
    needs = Needs.of(owner.username, sites=how.pop("sites", ()))
    urls = {name.rpartition("/")[2]: f"lfn:{name}" for name in names}
    directives = {"input_urls": urls, **how} if names else None
    spec = JobSpec(name="j", executable="/bin/true", needs=needs, directives=directives)
    return submit_jobs(
        [spec] * count, owner=owner, workspace=create_workspace(owner, {}), actor=SYSTEM
    )


def sites_of(job_ids: Collection[int]) -> set[tuple[str, ...]]:
    """Sites of the TaskQueues in which these jobs wait; all do."""
    waiting = WaitingJob.objects.filter(pk__in=job_ids)
    assert waiting.count() == len(job_ids)
    return {tuple(each) for each in waiting.values_list("task_queue__sites", flat=True)}


def refresh() -> dict[str, int]:
    return refreshing.run_cycle(timezone.now())


def test_a_job_waits_for_pilots_near_its_inputs_alone(alice: User) -> None:
    replica(alice, "/x", "se-uw")
    [job_id] = submitted(alice, "/x")

    assert sites_of([job_id]) == {("UW",)}
    assert taskqueues.claim(Resource(site="CERN", **ANYTHING)) is None
    claimed = taskqueues.claim(Resource(site="UW", **ANYTHING))
    assert claimed is not None
    assert claimed.job_id == job_id


def test_jobs_with_inputs_near_the_same_sites_share_a_task_queue(alice: User) -> None:
    for name, at in (("/x", "se-uw"), ("/y", "se-uw"), ("/z", "se-cern")):
        replica(alice, name, at)

    ids = [submitted(alice, name)[0] for name in ("/x", "/y", "/z")]

    queues = [WaitingJob.objects.get(pk=pk).task_queue_id for pk in ids]
    assert queues[0] == queues[1] != queues[2]


def test_jobs_that_want_the_same_share_a_set(alice: User) -> None:
    replica(alice, "/x", "se-uw")

    ids = submitted(alice, "/x", count=3) + submitted(alice, "/x")

    found = set(WaitingJob.objects.filter(pk__in=ids).values_list("input_set_id", flat=True))
    assert found == {InputSet.objects.get().pk}


def test_names_that_a_payload_reads_by_itself_count_too(alice: User) -> None:
    replica(alice, "/x", "se-uw")
    spec = JobSpec(
        name="j", executable="/bin/true", needs=Needs.of("alice"),
        directives={"input_data": ["lfn:/x"]},
    )  # fmt: skip

    ids = submit_jobs([spec], owner=alice, workspace=create_workspace(alice, {}), actor=SYSTEM)

    assert sites_of(ids) == {("UW",)}


def test_sites_that_the_description_names_count_besides(alice: User) -> None:
    replica(alice, "/x", "se-uw")
    replica(alice, "/x", "se-cern")

    assert sites_of(submitted(alice, "/x", sites=["CERN", "FNAL"])) == {("CERN",)}
    assert sites_of(submitted(alice, "/x", sites=["FNAL"])) == {NOWHERE}


def test_a_job_that_may_fetch_from_afar_may_run_anywhere(alice: User) -> None:
    replica(alice, "/x", "se-uw")

    assert sites_of(submitted(alice, "/x", data_access="anywhere")) == {()}


def test_jobs_without_logical_names_have_no_set(alice: User) -> None:
    assert sites_of(submitted(alice)) == {()}
    assert not InputSet.objects.exists()


def test_a_job_follows_a_replica_that_comes_and_one_that_goes(alice: User) -> None:
    replica(alice, "/x", "se-uw")
    others = submitted(alice)
    ids = submitted(alice, "/x", count=3)
    refresh()

    replica(alice, "/x", "se-cern")
    assert refresh()["moved"] == 3
    assert sites_of(ids) == {("CERN", "UW")}

    lose("/x", "se-uw")
    refresh()
    assert sites_of(ids) == {("CERN",)}
    assert sites_of(others) == {()}
    assert not InputChange.objects.exists()


def test_a_job_whose_last_replica_went_waits_and_goes_on_when_there_is_one(alice: User) -> None:
    replica(alice, "/x", "se-uw")
    [job_id] = submitted(alice, "/x")
    lose("/x", "se-uw")
    refresh()

    assert sites_of([job_id]) == {NOWHERE}
    assert taskqueues.claim(Resource(site="UW", **ANYTHING)) is None
    answer = answer_for_job(alice, job_id, now=timezone.now())
    assert answer.inputs is not None
    assert (answer.verdict, answer.inputs.cause) == ("not now", "missing")
    assert "lfn:/x" in answer.summary

    replica(alice, "/x", "se-fnal")
    refresh()
    assert sites_of([job_id]) == {("FNAL",)}
    assert Job.objects.get(pk=job_id).state == "waiting"


def test_a_job_follows_what_storages_are_near(alice: User) -> None:
    replica(alice, "/x", "se-uw")
    ids = submitted(alice, "/x")

    bring_near("se-uw", "UW", "FNAL")
    refresh()
    assert sites_of(ids) == {("FNAL", "UW")}

    bring_near("se-uw", "UW", is_enabled=False)
    refresh()
    assert sites_of(ids) == {NOWHERE}


def test_other_jobs_are_left_alone(alice: User) -> None:
    replica(alice, "/x", "se-uw")
    replica(alice, "/y", "se-uw")
    submitted(alice, "/x")
    submitted(alice, "/y")
    refresh()

    replica(alice, "/y", "se-cern")

    assert refresh()["told"] == 1
    rows = InputSet.objects.values_list("names", "version")
    versions = {name: version for [name], version in rows}
    assert versions == {"/x": 1, "/y": 2}


def test_a_job_that_waits_again_is_near_its_inputs(alice: User) -> None:
    replica(alice, "/x", "se-uw")
    [job_id] = submitted(alice, "/x")
    operations.hold_jobs([job_id], actor=SYSTEM, reason="test")
    lose("/x", "se-uw")
    replica(alice, "/x", "se-cern")
    refresh()

    operations.release_jobs([job_id], actor=SYSTEM)

    assert sites_of([job_id]) == {("CERN",)}


def test_a_change_of_which_many_sets_hear_is_followed_in_parts(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refreshing, "_SETS_TOLD", 2)
    monkeypatch.setattr(refreshing, "_RESOLVED_AT_ONCE", 2)
    monkeypatch.setattr(refreshing, "_MOVED_AT_ONCE", 2)
    replica(alice, "/common", "se-uw")
    for number in range(5):
        replica(alice, f"/{number}", "se-uw")
        replica(alice, f"/{number}", "se-cern")
    ids = [pk for number in range(5) for pk in submitted(alice, "/common", f"/{number}")]
    refresh()
    replica(alice, "/common", "se-cern")

    refreshing.tell_sets()
    assert InputChange.objects.exclude(name="").get().after > 0
    refreshing.run_cycle(timezone.now(), limit_s=-1.0)
    for _ in range(10):
        refresh()

    assert sites_of(ids) == {("CERN", "UW")}
    assert not InputChange.objects.exists()


def test_sets_are_resolved_by_no_more_names_at_once_than_fit(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refreshing, "_NAMES_AT_ONCE", 3)
    for number in range(3):
        submitted(alice, "/common", f"/{number}")
    submitted(alice, *(f"/of/many/{number}" for number in range(10)))

    assert [refreshing.resolve_sets() for _ in range(4)] == [2, 2, 0, 0]
    assert not InputChange.objects.filter(input_set_id__isnull=False).exists()


def test_sets_that_no_job_waits_by_are_removed_after_a_time(alice: User) -> None:
    replica(alice, "/x", "se-uw")
    replica(alice, "/y", "se-uw")
    submitted(alice, "/x")
    claimed = submitted(alice, "/y")
    operations.kill_jobs(claimed, actor=SYSTEM, reason="test")

    refreshing.run_cycle(timezone.now() + refreshing.RENEWED_AFTER / 2)
    assert InputSet.objects.count() == 2
    refreshing.run_cycle(timezone.now() + refreshing.RENEWED_AFTER + timedelta(seconds=1))

    assert [each.names for each in InputSet.objects.all()] == [["/x"]]


def returned_as(job_id: int, attempt_number: int) -> int:
    """How many attempts a job may have after one of this number was not run for want of inputs."""
    Job.objects.filter(pk=job_id).update(attempt_number=attempt_number - 1, max_attempts=2000)
    claimed = taskqueues.claim(Resource(site="UW", **ANYTHING))
    assert claimed is not None
    attempt = operations.bind_to_pilot(
        claimed, pilot_id=1, site_name="UW", host="h", free_cores=1, actor=SYSTEM
    )
    assert attempt is not None
    lose("/x", "se-uw")
    wait_for_inputs(attempt, actor=SYSTEM, reason="test")
    return Job.objects.get(pk=job_id, state="waiting").max_attempts


def test_a_job_whose_inputs_went_pays_no_attempt_but_after_very_many(alice: User) -> None:
    replica(alice, "/x", "se-uw")
    [job_id] = submitted(alice, "/x")

    assert returned_as(job_id, 1) == 2001

    replica(alice, "/x", "se-uw")
    refresh()
    assert returned_as(job_id, MOST_FREE_ATTEMPTS) == 2000


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_two_at_once_and_a_submission_beside_them_lose_nothing(alice: User) -> None:
    replica(alice, "/x", "se-uw")
    ids = submitted(alice, "/x", count=20)
    refresh()
    lose("/x", "se-uw")
    replica(alice, "/x", "se-cern")

    def apart(_number: int) -> None:
        try:
            refresh()
        finally:
            connection.close()

    with transaction.atomic():
        # It has joined by the sites of before, and is not committed.
        ids += submitted(alice, "/x")
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(apart, range(2)))
        assert InputChange.objects.exists()
    refresh()

    assert sites_of(ids) == {("CERN",)}
    assert not InputChange.objects.exists()


def somebody_waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
        return bool(cursor.fetchone()[0])


@pytest.mark.django_db(transaction=True)
def test_who_has_moved_jobs_leaves_sets_that_get_another_version_meanwhile(alice: User) -> None:
    # Given: jobs that were moved, which is about to be noted of their set.
    replica(alice, "/x", "se-uw")
    ids = submitted(alice, "/x")
    refresh()
    InputSet.objects.update(is_moving=True)
    replica(alice, "/x", "se-cern")
    refreshing.tell_sets()

    def moved() -> int:
        try:
            return refreshing.move_jobs()
        finally:
            connection.close()

    # When: somebody resolves it at this moment, and commits once the other one waits, if ever.
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            refreshing.resolve_sets()
            other = pool.submit(moved)
            while not (other.done() or somebody_waits_for_a_lock()):
                pass
        assert other.result() == 0

    # Then: the jobs follow this version too.
    assert InputSet.objects.get().is_moving
    refresh()
    assert sites_of(ids) == {("CERN", "UW")}
