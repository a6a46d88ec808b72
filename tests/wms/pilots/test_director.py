from __future__ import annotations

import re
from collections import Counter
from datetime import timedelta

from django.utils import timezone

from tests.wms.pilots.fake_element import FakeElement
from wms.core.actors import Actor
from wms.elements.protocol import Refused, Unreachable
from wms.jobs.models import RunningLimit
from wms.pilots import director, monitor
from wms.pilots.models import Pilot
from wms.pilots.services import register_pilot, secret_digest
from wms.sites.models import Site
from wms.sites.services import ban_site, drain_site

SYSTEM = Actor.system("test")


def test_one_pilot_is_sent_for_each_waiting_job_and_no_more(make_queue, add_jobs, elements) -> None:
    make_queue()
    add_jobs(3)

    director.run_cycle(timezone.now())
    director.run_cycle(timezone.now())

    pilots = Pilot.objects.all()
    assert [pilot.state for pilot in pilots] == ["queued"] * 3
    assert {pilot.native_id for pilot in pilots} == set(elements["site-a"].states)


def test_the_limits_of_the_queue_and_the_batch_system_hold(make_queue, add_jobs, elements) -> None:
    make_queue("few", max_pilots=2, max_queued_pilots=10)
    make_queue("small")
    elements["small"] = FakeElement(slots=1)
    add_jobs(50)

    for _ in range(3):
        report = director.run_cycle(timezone.now())

    assert Pilot.objects.filter(queue__site__name="few").count() == 2
    assert Pilot.objects.filter(queue__site__name="small").count() == 1
    assert report["queues"]["few/main"]["reason"] == "at most 2 pilots"


def test_a_banned_site_is_sent_no_pilot_and_a_draining_one_is(make_queue, add_jobs) -> None:
    make_queue("banned")
    make_queue("draining")
    ban_site("banned", actor=SYSTEM, reason="eats jobs")
    drain_site("draining", actor=SYSTEM, reason="moves house")
    add_jobs(2)

    director.run_cycle(timezone.now())

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

    director.run_cycle(timezone.now())

    assert Counter(Pilot.objects.values_list("queue__site__name", flat=True)) == {
        "full": 1,
        "open": 2,
    }


def test_a_job_that_fits_two_queues_is_not_counted_twice(make_queue, add_jobs) -> None:
    make_queue("site-a")
    make_queue("site-b")
    add_jobs(4)

    director.run_cycle(timezone.now())

    assert Pilot.objects.count() == 4


def test_no_pilot_is_sent_where_no_waiting_job_may_run(make_queue, add_jobs, elements) -> None:
    make_queue("site-a")
    make_queue("site-b")
    add_jobs(2, sites=["site-b"])

    report = director.run_cycle(timezone.now())

    assert not Pilot.objects.filter(queue__site__name="site-a").exists()
    assert report["queues"]["site-a/main"]["reason"] == "no waiting job fits this queue"
    # A batch system is not even asked when there is nothing to send.
    assert "capacity" not in elements["site-a"].calls


def test_a_failing_batch_system_is_told_and_does_not_block_the_others(
    make_queue, add_jobs, elements
) -> None:
    make_queue("broken")
    make_queue("works")
    elements["broken"].fail_with = Refused("no such partition")
    add_jobs(1)

    report = director.run_cycle(timezone.now())

    assert report["queues"]["broken/main"]["reason"] == "batch system: no such partition"
    assert Pilot.objects.get().queue.site.name == "works"


def test_pilots_that_the_batch_system_refuses_tell_why_and_it_is_left_alone_for_a_while(
    make_queue, add_jobs, elements
) -> None:
    make_queue()
    elements["site-a"].refuses_pilots = "cannot create directory"
    add_jobs(2)
    now = timezone.now()

    director.run_cycle(now)
    report = director.run_cycle(now)

    pilots = Pilot.objects.all()
    assert {pilot.state for pilot in pilots} == {"aborted"}
    assert pilots[0].state_reason == "the batch system refused: cannot create directory"
    assert "waiting 60 s after: the batch system refused" in str(report["queues"])
    assert len(pilots) == 2
    elements["site-a"].refuses_pilots = ""
    director.run_cycle(now + timedelta(seconds=70))
    assert Pilot.objects.filter(state="queued").count() == 2


def test_the_secrets_travel_in_the_script_and_are_stored_as_hashes(
    make_queue, add_jobs, elements
) -> None:
    make_queue()
    add_jobs(2)

    director.run_cycle(timezone.now())

    (script,) = elements["site-a"].scripts.values()
    for pilot in Pilot.objects.all():
        assert str(pilot.uuid) in script
        assert pilot.secret_sha256 not in script
        quoted = re.findall(r'"([^"]*)"', script)
        assert pilot.secret_sha256 in {secret_digest(word) for word in quoted}


def test_a_submission_whose_answer_was_lost_is_adopted(make_queue, add_jobs, elements) -> None:
    make_queue()
    elements["site-a"].loses_answer = True
    add_jobs(2)
    director.run_cycle(timezone.now())
    assert {pilot.state for pilot in Pilot.objects.all()} == {"submitted"}

    elements["site-a"].loses_answer = False
    monitor.run_cycle(timezone.now() + timedelta(seconds=121))

    pilots = Pilot.objects.order_by("pk")
    assert [pilot.state for pilot in pilots] == ["queued", "queued"]
    assert [pilot.native_id for pilot in pilots] == sorted(elements["site-a"].states)


def test_a_submission_that_never_happened_is_aborted_and_made_good(
    make_queue, add_jobs, elements
) -> None:
    make_queue()
    add_jobs(1)
    director.run_cycle(timezone.now())
    elements["site-a"].states.clear()
    Pilot.objects.update(state="submitted", native_id="")

    elements["site-a"].fail_with = Unreachable("down")
    monitor.run_cycle(timezone.now() + timedelta(seconds=121))
    assert Pilot.objects.get().state == "submitted"

    elements["site-a"].fail_with = None
    monitor.run_cycle(timezone.now() + timedelta(seconds=121))
    assert Pilot.objects.get().state == "aborted"
    director.run_cycle(timezone.now())
    assert Pilot.objects.filter(state="queued").count() == 1


def test_a_mistake_of_ours_with_one_queue_does_not_block_the_others(
    make_queue, add_jobs, elements
) -> None:
    make_queue("broken")
    make_queue("works")
    elements["broken"].fail_with = ValueError("not enough values to unpack")
    add_jobs(1)

    report = director.run_cycle(timezone.now())
    watched = monitor.run_cycle(timezone.now())

    assert "ValueError: not enough values" in report["queues"]["broken/main"]["reason"]
    assert watched["queues"]["works/main"]["polled"] == 1


def test_adopted_ids_come_in_the_order_of_submission_whoever_has_called_in(
    make_queue, add_jobs, elements
) -> None:
    now = timezone.now()
    make_queue()
    elements["site-a"].loses_answer = True
    add_jobs(2)
    director.run_cycle(now)
    first, second = Pilot.objects.order_by("pk")
    Pilot.objects.filter(pk=first.pk).update(secret_sha256=secret_digest("secret"))
    register_pilot(first.uuid, secret="secret", token="t" * 64, node={}, now=now)

    elements["site-a"].loses_answer = False
    monitor.adopt_batches(now + timedelta(seconds=121))

    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.native_id, second.native_id) == (f"{first.batch}.0", f"{first.batch}.1")
    assert (first.state, second.state) == ("running", "queued")


def test_the_number_of_queries_does_not_grow_with_jobs_and_task_queues(
    make_queue, add_jobs, django_assert_num_queries
) -> None:
    make_queue(max_pilots=0)
    add_jobs(1)
    director.run_cycle(timezone.now())

    for memory_mb in range(30):
        add_jobs(3, memory_mb=memory_mb)

    with django_assert_num_queries(6):
        director.run_cycle(timezone.now())
