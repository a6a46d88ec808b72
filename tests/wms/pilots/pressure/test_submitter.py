"""The turns of queues: what is submitted, adopted and taken back, and when it is left alone."""

from __future__ import annotations

import re
from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.wms.pilots.directing import direct, poll, reasons_of, sent
from wms.core.actors import Actor
from wms.elements.protocol import BatchState, PilotState, Refused, Unreachable
from wms.jobs.operations import kill_jobs
from wms.pilots.models import Pilot
from wms.pilots.pressure import director, submitter
from wms.pilots.pressure_models import ElementContact
from wms.pilots.protocol.registration import register_pilot, secret_digest

SYSTEM = Actor.system("test")


def test_a_failing_batch_system_is_told_and_does_not_block_the_others(
    make_queue, add_jobs, elements
) -> None:
    broken = make_queue("broken")
    make_queue("works")
    elements["broken"].fail_with = Refused("no such partition")
    add_jobs(2)
    now = timezone.now()

    assert sent(now) == {"broken/main": 0, "works/main": 1}
    assert sent(now) == {"broken/main": 0, "works/main": 1}

    (reason, *_) = reasons_of(broken)
    assert re.fullmatch(r"back-off .*\d\d:\d\d:\d\d UTC .*: no such partition", reason)


def test_pilots_that_the_batch_system_refuses_tell_why_and_it_is_left_alone_for_a_while(
    make_queue, add_jobs, elements
) -> None:
    make_queue()
    elements["site-a"].refuses_pilots = "cannot create directory"
    add_jobs(2)
    now = timezone.now()

    direct(now)
    direct(now + timedelta(seconds=5))

    pilots = Pilot.objects.all()
    assert {pilot.state for pilot in pilots} == {"aborted"}
    assert pilots[0].state_reason.endswith(": cannot create directory")
    assert len(pilots) == 2
    elements["site-a"].refuses_pilots = ""
    direct(now + timedelta(seconds=20))
    assert Pilot.objects.filter(state="queued").count() == 2


@pytest.mark.slow
def test_pauses_grow_while_pilots_end_before_they_call_in(make_queue, add_jobs, elements) -> None:
    queue = make_queue()
    add_jobs(1)
    now = timezone.now()
    for minute in range(120):
        moment = now + timedelta(minutes=minute)
        direct(moment)
        for pilot in Pilot.objects.filter(state="queued"):
            failed = PilotState(BatchState.FAILED, "exit code 127")
            elements["site-a"].states[pilot.native_id] = failed
        poll(moment)

    assert Pilot.objects.count() < 25
    contact = ElementContact.objects.get(queue=queue, kind="start")
    assert contact.failures == Pilot.objects.count()
    assert contact.reason.endswith("exit code 127")


def test_the_secrets_travel_beside_the_script_and_are_stored_as_hashes(
    make_queue, add_jobs, elements
) -> None:
    make_queue()
    add_jobs(2)

    direct(timezone.now())

    (script,) = elements["site-a"].scripts.values()
    (words,) = elements["site-a"].secrets.values()
    told = [word.split(":") for word in words]
    pilots = Pilot.objects.order_by("pk")
    assert [uuid for uuid, _ in told] == [str(pilot.uuid) for pilot in pilots]
    assert [secret_digest(key) for _, key in told] == [pilot.secret_sha256 for pilot in pilots]
    assert not [text for each in told for text in each if text in script]


def test_a_submission_whose_answer_was_lost_is_adopted(make_queue, add_jobs, elements) -> None:
    make_queue()
    elements["site-a"].loses_answer = True
    add_jobs(2)
    direct(timezone.now())
    assert {pilot.state for pilot in Pilot.objects.all()} == {"submitted"}

    elements["site-a"].loses_answer = False
    poll(timezone.now() + timedelta(seconds=121))

    pilots = Pilot.objects.order_by("pk")
    assert [pilot.state for pilot in pilots] == ["queued", "queued"]
    assert [pilot.native_id for pilot in pilots] == sorted(elements["site-a"].states)


def test_a_submission_that_never_happened_is_aborted_and_made_good(
    make_queue, add_jobs, elements
) -> None:
    make_queue()
    add_jobs(1)
    direct(timezone.now())
    elements["site-a"].states.clear()
    Pilot.objects.update(state="submitted", native_id="")

    elements["site-a"].fail_with = Unreachable("down")
    poll(timezone.now() + timedelta(seconds=121))
    assert Pilot.objects.get().state == "submitted"

    elements["site-a"].fail_with = None
    poll(timezone.now() + timedelta(seconds=601))
    assert Pilot.objects.get().state == "aborted"
    direct(timezone.now())
    assert Pilot.objects.filter(state="queued").count() == 1


def test_a_mistake_of_ours_with_one_queue_does_not_block_the_others(
    make_queue, add_jobs, elements
) -> None:
    broken = make_queue("broken")
    make_queue("works")
    elements["broken"].fail_with = ValueError("not enough values to unpack")
    add_jobs(2)

    direct(timezone.now())
    watched = poll(timezone.now())

    assert "ValueError" in str(reasons_of(broken))
    assert watched["works/main"].polled == 1


def test_adopted_ids_come_in_the_order_of_submission_whoever_has_called_in(
    make_queue, add_jobs, elements
) -> None:
    now = timezone.now()
    make_queue()
    elements["site-a"].loses_answer = True
    add_jobs(2)
    direct(now)
    first, second = Pilot.objects.order_by("pk")
    Pilot.objects.filter(pk=first.pk).update(secret_sha256=secret_digest("secret"))
    register_pilot(first.uuid, secret="secret", token="t" * 64, node={}, now=now)

    elements["site-a"].loses_answer = False
    poll(now + timedelta(seconds=121))

    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.native_id, second.native_id) == (f"{first.batch}.0", f"{first.batch}.1")
    assert (first.state, second.state) == ("running", "queued")


def test_what_nobody_renews_ends_with_its_lease(make_queue, add_jobs) -> None:
    queue = make_queue()
    add_jobs(5)
    now = timezone.now()
    director.plan_requests(now)

    late = submitter.serve(queue.pk, now + timedelta(seconds=901))
    assert late is not None
    assert late.submitted == 0
    assert "901 s" in str(late.reasons)

    in_time = submitter.serve(queue.pk, now + timedelta(seconds=899))
    assert in_time is not None
    assert in_time.submitted == 5


@pytest.mark.slow
def test_waiting_pilots_are_taken_back_slowly_when_the_demand_is_gone_and_running_ones_never(
    make_queue, add_jobs, elements
) -> None:
    make_queue(max_removals=3, removal_margin=2)
    jobs = add_jobs(10)
    now = timezone.now()
    direct(now)
    running = Pilot.objects.order_by("pk").last()
    Pilot.objects.filter(pk=running.pk).update(
        state="running", token_sha256="x", registered_at=now, heartbeat_at=now
    )
    kill_jobs(jobs, actor=SYSTEM, reason="test")
    counts = []
    for minute in range(0, 15):
        direct(now + timedelta(minutes=minute, seconds=1))
        counts.append(Pilot.objects.filter(state="queued").count())

    assert counts[:6] == [9] * 6
    assert counts[6:9] == [6, 3, 2]
    assert counts[-1] == 2
    running.refresh_from_db()
    assert running.state == "running"
    cancelled = [each.state for each in elements["site-a"].states.values()].count("cancelled")
    assert cancelled == 7
    assert "no job has" in Pilot.objects.filter(state="removed")[0].state_reason


def test_held_pilots_stop_the_submission_at_their_limit(make_queue, add_jobs) -> None:
    queue = make_queue(max_held_pilots=2)
    add_jobs(2)
    direct(timezone.now())
    Pilot.objects.update(batch_state="held")
    add_jobs(5)

    direct(timezone.now())

    assert Pilot.objects.count() == 2
    assert "held pilots 2:" in str(reasons_of(queue))


def test_a_large_level_is_reached_in_several_batches_and_turns(
    make_queue, add_jobs, elements
) -> None:
    make_queue(max_pilots=50, max_queued_pilots=50, max_submits=12, batch_size=5)
    add_jobs(20)

    assert sent() == {"site-a/main": 12}
    assert sent() == {"site-a/main": 8}

    sizes = Counter(pilot.rsplit(".", 1)[0] for pilot in elements["site-a"].states)
    assert sorted(sizes.values()) == [2, 3, 5, 5, 5]
