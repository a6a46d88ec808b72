from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.factories import SYSTEM
from wms.core.actors import Actor
from wms.core.errors import Conflict, InvalidInput, NotPermitted, ReasonRequired
from wms.core.models import AuditEntry, InboxEntry
from wms.jobs.operations import create_workspace
from wms.placement import operations as services
from wms.placement import runner
from wms.placement import services as by_people
from wms.placement.allocations import release_of_workspaces
from wms.placement.models import (
    PlacementAllocation,
    PlacementAttempt,
    PlacementEvent,
    PlacementRequest,
)
from wms.placement.selectors import BatchEnd, ends_of_batches
from wms.placement.storages.services import StorageSpec, create_storage
from wms.placement.submission import submit_requests

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
    [pk] = submit_requests(
        ad, workspace=workspace, directory="", owner=alice, topic="dag-data", topic_key=7,
        actor=actor, **more,
    )  # fmt: skip
    return pk


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


def test_requests_of_one_text_are_announced_once_and_together(alice):
    workspace = create_workspace(alice, {})
    first, second = submit_requests(
        f"{AD}\n{AD}", workspace=workspace, directory="", owner=alice, topic="dag-data",
        topic_key=7, actor=SYSTEM,
    )  # fmt: skip
    for pk in (second, first):
        assert not InboxEntry.objects.exists()
        services.start_attempt(pk, NOW)
        services.end_attempt(pk, exit_code=0, now=NOW)

    entry = InboxEntry.objects.get()
    assert (entry.key, entry.subject_id) == (7, first)
    assert ends_of_batches([first]) == {first: BatchEnd()}


def test_a_batch_ends_as_the_first_of_its_requests_that_is_not_done(alice):
    workspace = create_workspace(alice, {})
    ids = submit_requests(
        f"{AD}{AD}{AD}", workspace=workspace, directory="", owner=alice, topic="dag-data",
        topic_key=7, max_attempts=1, actor=SYSTEM,
    )  # fmt: skip
    for pk, code in zip(ids, (0, 111, 5), strict=True):
        services.start_attempt(pk, NOW)
        services.end_attempt(pk, exit_code=code, message=f"code {code}", now=NOW)

    end = ends_of_batches(ids[:1])[ids[0]]
    assert (end.exit_code, end.is_removed) == (111, False)
    assert "code 111" in end.reason


def test_a_batch_is_removed_as_a_whole(alice):
    workspace = create_workspace(alice, {})
    ids = submit_requests(
        f"{AD}{AD}", workspace=workspace, directory="", owner=alice, topic="dag-data",
        topic_key=7, actor=SYSTEM,
    )  # fmt: skip

    services.remove_batches(ids[:1], actor=SYSTEM, reason="enough")

    assert set(PlacementRequest.objects.values_list("state", flat=True)) == {"removed"}
    assert ends_of_batches(ids[:1])[ids[0]].is_removed
    assert InboxEntry.objects.get().subject_id == ids[0]


def test_a_request_of_its_own_names_no_file_of_a_dag(alice):
    with pytest.raises(InvalidInput) as caught:
        by_people.submit_requests(
            '[dap_type = "transfer"; src_url = "file:a"; dest_url = "file:b"]',
            actor=Actor.person(alice), owner=alice,
        )  # fmt: skip

    assert [each.field for each in caught.value.findings] == ["src_url", "dest_url"]


@pytest.fixture
def pool(tmp_path, settings):
    """A folder of which space may be allocated."""
    values = {"ROOTS": [str(tmp_path)]}
    settings.PILOTAGE = settings.PILOTAGE | {"PLACEMENT": settings.PILOTAGE["PLACEMENT"] | values}
    create_storage(StorageSpec("pool", [f"file://{tmp_path}/"], space_bytes=2**20), actor=SYSTEM)
    return tmp_path


def allocation(name=1, size="600KB", duration="1 hour", host="localhost") -> str:
    return (
        f'[dap_type = "allocate"; dest_host = "{host}"; size = "{size}"; '
        f'duration = "{duration}"; allocation_id = {name}]'
    )


def place(alice, text, **more) -> list[PlacementRequest]:
    """Submit the requests as a person and carry out an attempt of each."""
    done = by_people.submit_requests(text, actor=Actor.person(alice), owner=alice, **more)
    runner.run_due()
    return [request_of(pk) for pk in done.ids]


def test_space_is_allocated_filled_and_released(alice, pool):
    (pool / "in").write_bytes(b"x" * 500_000)
    ad = (
        f'[dap_type = "transfer"; src_url = "file://{pool}/in"; dest_url = "file://{pool}/NAME"; '
        "allocation_id = 1]"
    )

    [made] = place(alice, allocation())
    [first] = place(alice, ad.replace("NAME", "a"))
    [second] = place(alice, ad.replace("NAME", "b"))
    [released] = place(alice, '[dap_type = "release"; dest_host = "localhost"; allocation_id = 1]')

    assert (made.state, first.state, second.state) == ("completed", "completed", "rescheduled")
    assert "114400 bytes left" in second.state_reason
    assert not (pool / "b").exists()
    assert released.state == "completed"
    assert PlacementAllocation.objects.get().released_at is not None


def test_a_full_host_has_the_request_tried_again(alice, charlie, pool):
    [first] = place(alice, allocation())
    [second] = place(charlie, allocation())
    PlacementAllocation.objects.update(expires_at=timezone.now())
    PlacementRequest.objects.update(due_at=None)
    runner.run_due()

    assert first.state == "completed"
    assert second.state == "rescheduled"
    assert "bytes left" in second.state_reason
    assert request_of(second.pk).state == "completed"


@pytest.mark.parametrize(
    ("text", "field", "why"),
    [
        (allocation(duration="1000 years"), "duration", "90 days"),
        (allocation(host="elsewhere.example"), "dest_host", "elsewhere.example"),
        (
            '[dap_type = "release"; dest_host = "localhost"; allocation_id = 1]',
            "allocation_id",
            "you have no allocation 1",
        ),
        (
            '[dap_type = "transfer"; src_url = "file:///etc/passwd"; dest_url = "file:///x"]',
            "src_url",
            "outside",
        ),
        ('[dap_type = "remove"; src_url = "gsiftp://h/x"]', "src_url", "no module"),
        ('[dap_type = "stage"; src_url = "file:///etc/passwd"]', "src_url", "outside"),
    ],
)
def test_what_cannot_be_done_here_is_refused_with_its_attribute(
    alice, charlie, pool, text, field, why
):
    place(alice, allocation())
    with pytest.raises(InvalidInput) as caught:
        by_people.submit_requests(text, actor=Actor.person(charlie), owner=charlie)

    fault = caught.value.findings[0]
    assert fault.field == field
    assert why in fault.message
    assert PlacementRequest.objects.count() == 1


def test_staged_files_are_compared_and_removed_files_are_gone(alice, pool):
    (pool / "in").write_bytes(b"abc")
    stage, wrong, remove, again = (
        f'[dap_type = "stage"; src_url = "file://{pool}/in"; size = 3]',
        f'[dap_type = "stage"; src_url = "file://{pool}/in"; checksum = "adler32:00000001"]',
        f'[dap_type = "remove"; src_url = "file://{pool}/in"]',
        f'[dap_type = "remove"; src_url = "file://{pool}/gone"]',
    )

    done = place(alice, f"{stage}{wrong}") + place(alice, f"{remove}{again}")

    assert [each.state for each in done] == ["completed", "rescheduled", "completed", "completed"]
    assert "Adler-32 024d0127" in done[1].state_reason
    assert list(pool.iterdir()) == []


def test_the_same_key_gives_the_same_requests(alice, pool):
    order = {"actor": Actor.person(alice), "owner": alice, "idempotency_key": "k"}
    text = allocation() + allocation(2)
    first = by_people.submit_requests(text, **order)
    second = by_people.submit_requests(text, **order)

    assert (first.ids, first.is_new, second.is_new) == (second.ids, True, False)
    with pytest.raises(Conflict):
        by_people.submit_requests(allocation(3), **order)
    assert PlacementRequest.objects.count() == 2


def test_space_of_a_dag_is_its_own_and_released_with_its_workspace(alice, pool):
    workspace = create_workspace(alice, {})
    of_dag = {"workspace": workspace, "directory": "", "owner": alice, "topic": "dag-data",
              "topic_key": 7, "actor": SYSTEM}  # fmt: skip
    submit_requests(allocation(), **of_dag)
    runner.run_due()
    release = '[dap_type = "release"; dest_host = "localhost"; allocation_id = 1]'

    with pytest.raises(InvalidInput, match="no allocation 1"):
        by_people.submit_requests(release, actor=Actor.person(alice), owner=alice)
    assert submit_requests(release, **of_dag)
    assert release_of_workspaces([workspace.pk], now=timezone.now()) == 1


def test_a_failed_request_is_tried_again_as_often_as_at_first(alice, pool):
    actor = Actor.person(alice)
    missing = f'[dap_type = "stage"; src_url = "file://{pool}/none"]'
    [request] = place(alice, missing)
    PlacementRequest.objects.update(max_attempts=2, due_at=None)
    runner.run_due()
    assert request_of(request.pk).state == "failed"
    (pool / "none").write_bytes(b"x")

    with pytest.raises(ReasonRequired):
        by_people.retry_requests([request.pk], actor=actor, reason=" ")
    applied = by_people.retry_requests([request.pk], actor=actor, reason="it is there now")
    runner.run_due()

    done = request_of(request.pk)
    assert applied.changed == [request.pk]
    assert (done.state, done.attempt_number, done.max_attempts) == ("completed", 3, 12)
    again = by_people.retry_requests([request.pk], actor=actor, reason="once more")
    assert again.skipped == [request.pk]


def test_a_request_of_a_dag_is_not_tried_again_by_itself(alice):
    pk = submit(alice)
    services.remove_requests([pk], actor=SYSTEM, reason="enough")

    assert by_people.retry_requests([pk], actor=SYSTEM, reason="again").changed == []
    assert request_of(pk).state == "removed"
