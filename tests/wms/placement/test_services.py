from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.factories import SYSTEM
from wms.core.actors import Actor
from wms.core.errors import InvalidInput, NotPermitted, ReasonRequired
from wms.core.models import AuditEntry, InboxEntry
from wms.jobs.operations import create_workspace
from wms.placement import operations as services
from wms.placement import services as by_people
from wms.placement.models import PlacementAttempt, PlacementEvent, PlacementRequest

pytestmark = pytest.mark.django_db

AD = """[
  dap_type = "transfer";
  src_url = "gsiftp://far.example/data/x";
  dest_url = "file:data/x";
  alt_protocols = "http-file, ftp-file";
]"""
NOW = timezone.now()


def submit(alice, *, ad=AD, actor=SYSTEM, **more) -> int:
    workspace = more.pop("workspace", None) or create_workspace(alice, {})
    return services.submit_request(
        ad, workspace=workspace, directory="", owner=alice, topic="dag-data", topic_key=7,
        actor=actor, **more,
    )  # fmt: skip


def request_of(pk: int) -> PlacementRequest:
    return PlacementRequest.objects.get(pk=pk)


def fail_attempt(pk: int, now, *, exit_code: int = 1, message: str = "refused") -> None:
    assert services.start_attempt(pk, now) is not None
    assert services.end_attempt(pk, exit_code=exit_code, message=message, now=now)


def test_a_request_that_was_submitted_waits_and_has_no_attempt(alice):
    pk = submit(alice)

    assert request_of(pk).state == "received"
    assert services.due_requests(NOW) == [pk]
    assert not PlacementAttempt.objects.exists()


def test_a_faulty_ad_stores_nothing(alice):
    with pytest.raises(InvalidInput, match="src_url is missing"):
        submit(alice, ad='dap_type = "transfer"\ndest_url = "file:x"')

    assert not PlacementRequest.objects.exists()


def test_nobody_makes_requests_for_others(alice, charlie):
    with pytest.raises(NotPermitted):
        submit(alice, actor=Actor.person(charlie))


def test_a_success_completes_the_request_and_is_announced(alice):
    pk = submit(alice)
    services.start_attempt(pk, NOW)

    assert services.end_attempt(pk, exit_code=0, now=NOW, size_bytes=12)

    request = request_of(pk)
    assert (request.state, request.ended_at) == ("completed", NOW)
    assert request.attempts.get().exit_code == 0
    entry = InboxEntry.objects.get()
    assert (entry.topic, entry.key, entry.subject_id) == ("dag-data", 7, pk)


def test_an_end_is_written_once(alice):
    pk = submit(alice)
    services.start_attempt(pk, NOW)
    services.end_attempt(pk, exit_code=0, now=NOW)

    assert not services.end_attempt(pk, exit_code=5, message="late", now=NOW)

    assert request_of(pk).attempts.get().exit_code == 0
    assert InboxEntry.objects.count() == 1


def test_attempts_take_the_pairs_of_schemes_in_turn(alice):
    pk = submit(alice)
    now = NOW

    for _ in range(5):
        fail_attempt(pk, now)
        now = request_of(pk).due_at

    pairs = PlacementAttempt.objects.values_list("source_scheme", "destination_scheme")
    primary, first, second = ("gsiftp", "file"), ("http", "file"), ("ftp", "file")
    assert list(pairs) == [primary, first, second, primary, first]


def test_the_pauses_between_attempts_grow_up_to_a_bound(alice):
    pauses = [services.pause_after(number).total_seconds() for number in range(1, 11)]

    assert pauses == [5, 10, 20, 40, 80, 160, 300, 300, 300, 300]


def test_a_request_is_not_due_before_its_pause_is_over(alice):
    pk = submit(alice)
    fail_attempt(pk, NOW)

    assert request_of(pk).state == "rescheduled"
    assert services.due_requests(NOW + timedelta(seconds=4)) == []
    assert services.due_requests(NOW + timedelta(seconds=5)) == [pk]


def test_the_last_attempt_fails_the_request_with_the_reason(alice):
    pk = submit(alice, max_attempts=2)
    fail_attempt(pk, NOW)
    fail_attempt(pk, NOW + timedelta(seconds=5), exit_code=111, message="no module")

    request = request_of(pk)
    assert request.state == "failed"
    assert "attempt 2" in request.state_reason
    assert "no module" in request.state_reason
    assert InboxEntry.objects.get().subject_id == pk
    assert services.start_attempt(pk, NOW + timedelta(days=1)) is None


def test_a_removed_request_takes_no_end_any_more(alice):
    pk = submit(alice)
    started = services.start_attempt(pk, NOW)

    applied = services.remove_requests([pk], actor=SYSTEM, reason="the DAG was removed")

    assert applied.changed == [pk]
    assert request_of(pk).ended_at is not None
    assert not services.renew_lease(started, now=NOW)
    assert not services.end_attempt(pk, exit_code=0, now=NOW)
    assert request_of(pk).attempts.get().exit_code == services.REMOVED_CODE
    assert InboxEntry.objects.get().subject_id == pk


def test_removing_again_skips_and_needs_a_reason(alice):
    pk = submit(alice)
    with pytest.raises(ReasonRequired):
        services.remove_requests([pk], actor=SYSTEM, reason="")
    services.remove_requests([pk], actor=SYSTEM, reason="enough")

    again = services.remove_requests([pk], actor=SYSTEM, reason="enough")

    assert again.skipped == [pk]


def test_only_owner_and_shifters_remove(alice, charlie, sam):
    pk = submit(alice)

    with pytest.raises(NotPermitted):
        by_people.remove_requests([pk], actor=Actor.person(charlie), reason="mine now")
    assert by_people.remove_requests([pk], actor=Actor.person(sam), reason="disk full").changed
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.target, entry.reason) == (
        "sam",
        f"placement request {pk}",
        "disk full",
    )


def test_requests_are_taken_first_in_first_out(alice):
    first, second = submit(alice), submit(alice)

    taken = [services.take_request(NOW) for _ in range(3)]

    assert [each and each.request_id for each in taken] == [first, second, None]


def test_an_attempt_of_a_lost_service_counts_and_another_follows(alice):
    pk = submit(alice)
    services.take_request(NOW)

    assert services.end_lost_attempts(NOW + timedelta(seconds=59)) == []
    assert services.end_lost_attempts(NOW + timedelta(seconds=61)) == [pk]

    assert request_of(pk).state == "rescheduled"
    assert request_of(pk).attempts.get().exit_code == services.LOST_CODE


def test_the_service_that_was_given_up_cannot_end_the_next_attempt(alice):
    pk = submit(alice)
    old = services.take_request(NOW)
    later = NOW + timedelta(minutes=5)
    services.end_lost_attempts(later)
    services.start_attempt(pk, later + timedelta(minutes=1))

    assert not services.end_attempt(pk, lease=old.lease, exit_code=0, now=later)
    assert request_of(pk).state == "processing"


def test_every_change_is_an_event(alice):
    pk = submit(alice, max_attempts=2)
    fail_attempt(pk, NOW)
    fail_attempt(pk, NOW + timedelta(seconds=5))

    events = PlacementEvent.objects.filter(request_id=pk).order_by("pk").values_list("event")
    assert [event for (event,) in events] == ["start", "reschedule", "start", "fail"]
