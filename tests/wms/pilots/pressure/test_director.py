from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.wms.pilots.directing import direct, reasons_of, sent
from tests.wms.pilots.fake_element import FakeElement
from wms.accounting.models import AccountingGroup
from wms.core.actors import Actor
from wms.jobs.models import RunningLimit
from wms.jobs.operations import kill_jobs
from wms.pilots.models import Pilot
from wms.pilots.pressure import director, submitter
from wms.pilots.pressure_models import PilotLimit, PressureRecord, PressureRequest
from wms.sites.downtimes.models import Downtime
from wms.sites.models import Queue, Site
from wms.sites.services import ban_site, drain_site
from wms.taskqueues.models import TaskQueue, Ticket

SYSTEM = Actor.system("test")


def test_one_pilot_is_sent_for_each_waiting_job_and_no_more(make_queue, add_jobs, elements) -> None:
    make_queue()
    add_jobs(3)

    direct(timezone.now())
    direct(timezone.now())

    pilots = Pilot.objects.all()
    assert [pilot.state for pilot in pilots] == ["queued"] * 3
    assert {pilot.native_id for pilot in pilots} == set(elements["site-a"].states)


def test_the_limits_of_the_queue_and_the_batch_system_hold(make_queue, add_jobs, elements) -> None:
    make_queue("few", max_pilots=2, max_queued_pilots=10)
    make_queue("small")
    elements["small"] = FakeElement(slots=1, can_queue=False)
    add_jobs(50)

    for _ in range(3):
        direct(timezone.now())

    assert Pilot.objects.filter(queue__site__name="few").count() == 2
    assert Pilot.objects.filter(queue__site__name="small").count() == 1
    few = Queue.objects.get(site__name="few")
    assert reasons_of(few)[0].startswith("queue limit 2")


def test_a_banned_site_is_sent_no_pilot_and_a_draining_one_is(make_queue, add_jobs) -> None:
    make_queue("banned")
    make_queue("draining")
    ban_site("banned", actor=SYSTEM, reason="eats jobs")
    drain_site("draining", actor=SYSTEM, reason="moves house")
    add_jobs(2)

    direct(timezone.now())

    assert set(Pilot.objects.values_list("queue__site__name", flat=True)) == {"draining"}


def test_no_pilot_is_sent_for_a_kind_of_jobs_that_has_reached_its_limit(
    make_queue, add_jobs
) -> None:
    make_queue("full")
    make_queue("open")
    site = Site.objects.get(name="full")
    RunningLimit.objects.create(site=site, job_type="User", maximum=0)
    add_jobs(2, job_type="User")
    add_jobs(1, job_type="Merge", sites=["full"])

    direct(timezone.now())

    assert Counter(Pilot.objects.values_list("queue__site__name", flat=True)) == {
        "full": 1,
        "open": 2,
    }


def test_a_job_that_fits_two_queues_is_not_counted_twice(make_queue, add_jobs) -> None:
    make_queue("site-a")
    make_queue("site-b")
    add_jobs(4)

    direct(timezone.now())

    assert Pilot.objects.count() == 4


def test_no_pilot_is_sent_where_no_waiting_job_may_run(make_queue, add_jobs, elements) -> None:
    make_queue("site-a")
    make_queue("site-b")
    add_jobs(2, sites=["site-b"])

    direct(timezone.now())

    assert not Pilot.objects.filter(queue__site__name="site-a").exists()
    site_a = Queue.objects.get(site__name="site-a")
    (reason,) = reasons_of(site_a)
    assert "site-b only" in reason
    # A batch system is not even asked when there is nothing to send.
    assert "capacity" not in elements["site-a"].calls


@pytest.mark.slow
def test_the_number_of_queries_does_not_grow_with_queues_jobs_and_task_queues(
    make_queue, add_jobs, django_assert_num_queries
) -> None:
    def plan() -> None:
        director.plan_requests(timezone.now())

    make_queue()
    add_jobs(1)
    with CaptureQueriesContext(connection) as first:
        plan()

    for number in range(10):
        make_queue(f"site-{number}")
    for memory_mb in range(30):
        add_jobs(3, memory_mb=memory_mb)

    with django_assert_num_queries(len(first)):
        plan()


def test_a_slow_ramp_asks_for_a_part_of_what_is_missing_and_goes_on_as_pilots_start(
    make_queue, add_jobs
) -> None:
    queue = make_queue(max_pilots=100, max_queued_pilots=100, attenuation=3.0)
    add_jobs(90)

    assert sent() == {"site-a/main": 30}
    assert sent() == {"site-a/main": 0}

    assert [each.split(":")[0] for each in reasons_of(queue)] == ["ramp-up"]
    Pilot.objects.update(state="running", token_sha256="x", registered_at=timezone.now())
    # The thirty that are idle take as many jobs, and so many halve the pressure.
    assert sent() == {"site-a/main": 10}
    request = PressureRequest.objects.get()
    assert (request.wanted, request.granted) == (60, 10)
    assert any("curb 5" in each and "30 pilots" in each for each in request.reasons)


def test_an_explicit_zero_ends_the_pressure_at_once(make_queue, add_jobs) -> None:
    queue = make_queue(attenuation=5.0)
    jobs = add_jobs(5)
    direct(timezone.now())
    assert PressureRequest.objects.get().granted == 1

    kill_jobs(jobs, actor=SYSTEM, reason="test")
    director.plan_requests(timezone.now())

    request = PressureRequest.objects.get()
    assert (request.wanted, request.granted) == (0, 0)
    assert request.reasons == ["no job waits"]
    turn = submitter.serve(queue.pk, timezone.now())
    assert turn is not None
    assert turn.submitted == 0


def test_limits_of_site_and_whole_are_shared_by_their_queues(make_queue, add_jobs) -> None:
    for site in ("site-a", "site-b", "site-c"):
        make_queue(site)
    PilotLimit.objects.create(scope="whole", max_pilots=7)
    PilotLimit.objects.create(scope="site", site=Site.objects.get(name="site-a"), max_pilots=1)
    add_jobs(30)

    for _ in range(3):
        direct(timezone.now())

    pilots = Counter(Pilot.objects.values_list("queue__site__name", flat=True))
    assert pilots["site-a"] == 1
    assert pilots.total() == 7
    reasons = str(reasons_of(Queue.objects.get(site__name="site-a")))
    assert "site limit 1:" in reasons
    assert "all pilots 7:" in str(reasons_of(Queue.objects.get(site__name="site-b")))


def test_a_limit_in_cores_counts_the_cores_of_pilots(make_queue, add_jobs) -> None:
    make_queue("site-a", cores=8)
    PilotLimit.objects.create(scope="whole", max_cores=20)
    add_jobs(80)

    direct(timezone.now())

    assert Pilot.objects.count() == 2


def test_a_limit_of_groups_counts_the_private_pilots_of_each(make_queue, add_jobs, alice) -> None:
    physics = AccountingGroup.objects.create(name="physics")
    physics.members.add(alice)
    make_queue("site-a", owner="alice", owner_group="physics")
    make_queue("site-b")
    PilotLimit.objects.create(scope="group", max_pilots=1)
    add_jobs(4, owner_group="physics", sites=["site-a"])
    add_jobs(4, sites=["site-b"])

    assert sent() == {"site-a/main": 1, "site-b/main": 4}


def test_each_cycle_is_kept_once_a_minute_and_for_a_day(make_queue, add_jobs) -> None:
    make_queue(max_pilots=5, max_queued_pilots=5)
    add_jobs(9)
    now = timezone.now()

    for seconds in range(0, 180, 20):
        direct(now + timedelta(seconds=seconds))

    records = PressureRecord.objects.order_by("at")
    assert [record.submitted for record in records] == [0, 5, 0]
    assert {record.wanted for record in records} == {9}
    direct(now + timedelta(days=2))
    assert PressureRecord.objects.count() == 1


def test_a_site_in_downtime_tells_so(make_queue, add_jobs) -> None:
    queue = make_queue()
    add_jobs(1)
    now = timezone.now()
    Downtime.objects.create(
        site=queue.site, start=now, end=now + timedelta(hours=1), reason="new disks", author="olga"
    )

    assert sent() == {"site-a/main": 0}

    (reason,) = reasons_of(queue)
    assert reason.startswith("in downtime until")
    assert reason.endswith("olga: new disks")


def test_jobs_of_higher_priority_choose_their_places_first(make_queue, add_jobs) -> None:
    make_queue("few", max_pilots=2)
    make_queue("other", max_pilots=2, memory_mb=100)
    add_jobs(2, memory_mb=50)
    add_jobs(2, memory_mb=1000)
    large = TaskQueue.objects.get(memory_mb=1000)
    Ticket.objects.filter(task_queue=large).update(priority=1000.0)

    director.plan_requests(timezone.now())

    granted = {row.queue.site.name: row.granted for row in PressureRequest.objects.all()}
    assert granted == {"few": 2, "other": 2}
