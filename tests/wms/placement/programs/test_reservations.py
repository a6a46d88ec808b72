"""Space that a storage's server keeps itself: reserved and released by programs."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from tests.factories import SYSTEM
from tests.wms.placement.conftest import last_attempt
from tests.wms.placement.servers.http import http_server
from wms.core.actors import Actor
from wms.placement import runner
from wms.placement import services as by_people
from wms.placement.conf import placement_conf
from wms.placement.credentials import NewCredential, set_credential
from wms.placement.models import PlacementAllocation, PlacementRequest
from wms.placement.modules.fenced import Program, ProgramEnd
from wms.placement.operations import end_lost_attempts
from wms.placement.owed_reservations import forget_over, give_back_owed, is_owed, take_owed
from wms.placement.reservation_models import AskedReservation
from wms.placement.space import release_allocations
from wms.placement.storages.models import Storage
from wms.placement.storages.services import StorageSpec, create_storage

pytestmark = [pytest.mark.django_db, pytest.mark.process]

#: Of one program, in seconds.
LIMIT_S = 600.0
ALLOCATE = (
    '[dap_type = "allocate"; dest_host = "nest"; size = "1KB"; duration = "2 min"; '
    "allocation_id = 1]"
)
RELEASE = '[dap_type = "release"; dest_host = "nest"; allocation_id = 1]'
#: They keep a name, and what they were asked for, at a server of HTTP.
RESERVE = 'curl -fsS -X PUT -d "$1 $3 $4" "http${PILOTAGE_ENDPOINT#web}lot7" && echo lot7 >"$2"'
GIVE_BACK = 'exec curl -fsS -X DELETE "http${PILOTAGE_ENDPOINT#web}$2"'


@pytest.fixture
def site(program):
    """A server, a storage there, and what reserves and releases its space."""
    program("stork.transfer.web-file", "exit 1")
    program("stork.transfer.file-web", "exit 1")
    program("stork.reserve.web", RESERVE)
    program("stork.release.web", GIVE_BACK)
    with http_server() as running:
        endpoint = f"web://127.0.0.1:{running.port}/"
        create_storage(StorageSpec("nest", [endpoint], space_bytes=2**20), actor=SYSTEM)
        yield running


def test_space_is_reserved_and_released_at_the_server(submitted, site):
    made = submitted(ALLOCATE)
    kept, row = dict(site.files), PlacementAllocation.objects.get()
    released = submitted(RELEASE)

    assert (made.state, released.state) == ("completed", "completed"), made.state_reason
    assert kept == {"/lot7": b"127.0.0.1 1024 120"}
    assert row.reservation == "lot7"
    assert not AskedReservation.objects.exists()
    assert site.files == {}
    row.refresh_from_db()
    assert None not in (row.released_at, row.returned_at)


def test_what_people_release_is_given_back_by_the_service(alice, submitted, site):
    submitted(ALLOCATE)
    ids = list(PlacementAllocation.objects.values_list("pk", flat=True))
    release_allocations(ids, actor=Actor.person(alice), reason="not needed")

    give_back_owed()

    assert site.files == {}
    assert PlacementAllocation.objects.get().returned_at is not None
    assert not AskedReservation.objects.exists()


def test_a_server_without_room_lets_the_attempt_fail_and_nothing_is_kept(submitted, program, site):
    program("stork.reserve.web", "echo no room; exit 28")

    attempt = last_attempt(submitted(ALLOCATE))

    assert attempt.exit_code == 28
    assert "no room" in attempt.message
    assert not PlacementAllocation.objects.exists()
    assert not AskedReservation.objects.exists()


def test_no_program_is_asked_while_there_is_no_room(alice, submitted, site):
    Storage.objects.update(space_bytes=1024)
    PlacementAllocation.objects.create(
        owner=alice, name="2", storage=Storage.objects.get(), host="nest", size_bytes=1,
        expires_at=timezone.now() + timedelta(days=1),
    )  # fmt: skip

    request = submitted(ALLOCATE)

    assert (request.state, request.attempt_number) == ("rescheduled", 0)
    assert site.requests == []


def test_what_no_allocation_comes_of_is_given_back_at_once(alice, scripted):
    create_storage(StorageSpec("nest", ["web://127.0.0.1/"], space_bytes=2**20), actor=SYSTEM)
    ended = []

    def run(program: Program, folder: Path) -> ProgramEnd:
        """Another takes the name while the first one runs."""
        (folder / "reservation").write_text("lot7")
        PlacementAllocation.objects.get_or_create(
            owner=alice, name="1", host="elsewhere", size_bytes=1,
            defaults={"expires_at": timezone.now() + timedelta(days=1)},
        )  # fmt: skip
        ended.append(Path(program.executable).name)
        return ProgramEnd(0, "", b"")

    scripted(run)
    by_people.submit_requests(ALLOCATE, actor=SYSTEM, owner=alice)
    runner.run_due()

    assert last_attempt(PlacementRequest.objects.get()).exit_code == 1
    assert ended == ["stork.reserve.web", "stork.release.web"]


@pytest.mark.parametrize("answered", [False, True])
def test_what_an_attempt_that_was_killed_has_asked_for_is_given_back(alice, scripted, answered):
    create_storage(StorageSpec("nest", ["web://127.0.0.1/"], space_bytes=2**20), actor=SYSTEM)
    ended, keys = [], set()

    def run(program: Program, folder: Path) -> ProgramEnd:
        """The first time the service is killed while it runs."""
        ended.append(Path(program.executable).name)
        keys.add(program.environment["PILOTAGE_RESERVATION"])
        (folder / "reservation").write_text("lot7")
        if len(ended) == 1:
            raise SystemExit
        return ProgramEnd(0, "", b"")

    scripted(run)
    by_people.submit_requests(ALLOCATE, actor=SYSTEM, owner=alice)
    with pytest.raises(SystemExit):
        runner.run_due()
    AskedReservation.objects.update(
        due_at=timezone.now(), reservation="lot7" if answered else "",
    )  # fmt: skip
    assert take_owed(timezone.now(), LIMIT_S) is None
    assert end_lost_attempts(timezone.now() + timedelta(hours=1))
    give_back_owed()

    again = [] if answered else ["stork.reserve.web"]
    assert ended == ["stork.reserve.web", *again, "stork.release.web"]
    assert len(keys) == 1
    assert not AskedReservation.objects.exists()


@pytest.fixture
def owe(alice, scripted):
    """Write down that a server keeps space that is of no use; of an endpoint by name."""
    create_storage(StorageSpec("nest", ["web://127.0.0.1/"], space_bytes=2**20), actor=SYSTEM)
    now = timezone.now()

    def write(key: str, port: int = 80, **more: Any) -> None:
        AskedReservation.objects.create(
            key=key, owner=alice, attempt_number=1, endpoint=f"web://127.0.0.1:{port}/",
            size_bytes=1, duration_s=36_000, due_at=now, expires_at=now + timedelta(hours=10),
            **more,
        )  # fmt: skip

    return write


@pytest.fixture
def tried(scripted):
    """Have each program end with a code; the keys for which it was run."""
    keys = []

    def end_with(exit_code: int) -> list[str]:
        def run(program: Program, folder: Path) -> ProgramEnd:
            keys.append(program.environment["PILOTAGE_RESERVATION"])
            return ProgramEnd(exit_code, "", b"")

        scripted(run)
        return keys

    return end_with


def test_what_cannot_be_given_back_is_tried_again_until_the_server_ends_it(owe, tried):
    owe("k", reservation="lot7")
    tried(5)
    now = timezone.now()

    give_back_owed()

    left = AskedReservation.objects.get()
    assert left.due_at > now + timedelta(seconds=placement_conf().limit_s)
    assert take_owed(now, LIMIT_S) is None
    assert take_owed(left.due_at, LIMIT_S) == left
    forget_over(left.expires_at)
    assert not is_owed(left.due_at)


@pytest.mark.parametrize("exit_code", [-9, 124, 137])
@pytest.mark.parametrize("reservation", ["", "lot7"])
def test_a_server_that_does_not_answer_is_left_alone_for_a_while(
    owe, tried, reservation, exit_code
):
    for key, port in (("a", 80), ("b", 80), ("c", 81)):
        owe(key, port, reservation=reservation)
    keys, now = tried(exit_code), timezone.now()

    give_back_owed()
    again = take_owed(now + timedelta(minutes=6), LIMIT_S)

    assert sorted(keys) == ["a", "c"]
    assert again is not None
    assert again.key == "b"
    assert AskedReservation.objects.count() == 3


def test_what_a_server_refuses_keeps_nothing_else_waiting(owe, tried):
    for key in ("a", "b", "c"):
        owe(key)
    keys = tried(1)

    give_back_owed()

    assert sorted(keys) == ["a", "b", "c"]
    assert AskedReservation.objects.filter(due_at__gt=timezone.now()).count() == 3


def test_what_is_released_at_a_server_that_does_not_answer_waits_and_is_tried_again(
    alice, owe, tried
):
    for name in ("1", "2"):
        PlacementAllocation.objects.create(
            owner=alice, name=name, storage=Storage.objects.get(), host="nest", size_bytes=1,
            endpoint="web://127.0.0.1:80/", reservation=f"lot{name}", released_at=timezone.now(),
            expires_at=timezone.now() + timedelta(days=1),
        )  # fmt: skip
    keys = tried(137)

    give_back_owed()
    AskedReservation.objects.update(silent_until=None, due_at=timezone.now())
    tried(0)
    give_back_owed()

    assert len(keys) == 3
    assert not AskedReservation.objects.exists()
    assert not is_owed(timezone.now() + timedelta(hours=1))


@pytest.mark.parametrize(("exit_code", "count"), [(28, 0), (1, 1), (124, 1), (137, 1), (-15, 1)])
def test_a_first_ask_is_forgotten_only_where_the_server_has_refused(
    alice, owe, tried, exit_code, count
):
    tried(exit_code)

    by_people.submit_requests(ALLOCATE, actor=SYSTEM, owner=alice)
    runner.run_due()

    assert AskedReservation.objects.count() == count


def test_what_a_limited_token_asked_for_is_given_back_without_its_owners_credential(
    alice, owe, tried
):
    new = NewCredential("web://127.0.0.1:80", token="hush")
    set_credential(new, owner=alice, actor=Actor.person(alice))
    owe("a", reservation="lot7", limited_to=1)
    keys = tried(0)

    give_back_owed()

    assert keys == []
    assert AskedReservation.objects.count() == 1


def test_a_release_that_the_server_refuses_is_tried_again(submitted, program, site):
    submitted(ALLOCATE)
    program("stork.release.web", "echo later; exit 5")

    request = submitted(RELEASE)

    assert (request.state, last_attempt(request).exit_code) == ("rescheduled", 5)
    assert PlacementAllocation.objects.get().released_at is None


def test_what_was_reserved_for_a_removed_request_is_given_back(alice, scripted, monkeypatch):
    create_storage(StorageSpec("nest", ["web://127.0.0.1/"], space_bytes=2**20), actor=SYSTEM)
    ended = []

    def run(program: Program, folder: Path) -> ProgramEnd:
        """Its request is removed while the first one runs."""
        (folder / "reservation").write_text("lot7")
        ids = PlacementRequest.objects.exclude(state="removed").values_list("pk", flat=True)
        by_people.remove_requests(list(ids), actor=SYSTEM, reason="enough")
        ended.append(Path(program.executable).name)
        return ProgramEnd(0, "", b"")

    scripted(run)
    monkeypatch.setattr(runner, "_PULSE_S", 0)
    by_people.submit_requests(ALLOCATE, actor=SYSTEM, owner=alice)
    runner.run_due()

    assert ended == ["stork.reserve.web", "stork.release.web"]
    assert not PlacementAllocation.objects.exists()
