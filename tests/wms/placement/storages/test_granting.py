"""Attempts begin within the limits of storages, and users take turns."""

from __future__ import annotations

import pytest
from django.utils import timezone

from tests.factories import SYSTEM
from wms.placement import operations
from wms.placement import services as by_people
from wms.placement.models import PlacementRequest
from wms.placement.storages.services import StorageSpec, change_storage, create_storage
from wms.placement.storages.waiting import why_it_waits

pytestmark = pytest.mark.django_db


def _submit(owner, source: str, destination: str, count: int = 1) -> list[int]:
    ad = (
        f'[dap_type = "transfer"; src_url = "https://{source}.example/x"; '
        f'dest_url = "https://{destination}.example/y"]'
    )
    return by_people.submit_requests(ad * count, actor=SYSTEM, owner=owner).ids


def _storage(name: str, **limits: int | bool) -> None:
    create_storage(StorageSpec(name, [f"https://{name}.example/"], **limits), actor=SYSTEM)


def _taken() -> list[int]:
    """All that begins now."""
    found = []
    while (started := operations.take_request(timezone.now())) is not None:
        found.append(started.request_id)
    return found


def _waits(pk: int) -> str:
    request = PlacementRequest.objects.get(pk=pk)
    return why_it_waits(request, timezone.now())


def test_no_more_begin_than_a_storage_takes(people) -> None:
    _storage("a", max_transfers=2)
    outgoing = _submit(people.alice, "a", "far", 2)
    incoming = _submit(people.alice, "far", "a", 2)
    other = _submit(people.alice, "x", "y")

    assert _taken() == [*outgoing, *other]
    assert "2 transfers from and to a run, of 2 at most" in _waits(incoming[0])
    operations.end_attempt(outgoing[0], exit_code=0, now=timezone.now())
    assert _taken() == incoming[:1]
    assert _waits(other[0]) == ""


def test_no_more_begin_than_a_link_takes_in_both_directions(people) -> None:
    _storage("a", max_link_transfers=1)
    _storage("b")
    there = _submit(people.alice, "a", "b")
    back = _submit(people.alice, "b", "a")
    out = _submit(people.alice, "a", "elsewhere")

    assert _taken() == [*there, *out]
    assert "1 transfers between b and a run, of 1 at most" in _waits(back[0])


def test_nothing_begins_at_a_storage_that_is_off(people) -> None:
    _storage("a", is_enabled=False)
    [pk] = _submit(people.alice, "a", "b")

    assert _taken() == []
    assert _waits(pk) == "storage a is off"
    change_storage("a", StorageSpec("a", ["https://a.example/"]), actor=SYSTEM)
    assert _taken() == [pk]


def test_who_has_fewest_under_way_comes_first(people) -> None:
    of_alice = _submit(people.alice, "a", "b", 3)
    of_bob = _submit(people.bob, "a", "b", 2)

    assert _taken() == [of_alice[0], of_bob[0], of_alice[1], of_bob[1], of_alice[2]]


def test_one_that_is_due_again_comes_before_those_that_are_younger(people) -> None:
    first, second = _submit(people.alice, "a", "b", 2)
    now = timezone.now()
    started = operations.take_request(now)
    operations.end_attempt(first, exit_code=1, message="no", now=now)

    assert started is not None
    assert started.request_id == first
    again = operations.take_request(now + operations.FIRST_PAUSE)
    assert again is not None
    assert (again.request_id, again.number) == (first, 2)
    assert _taken() == [second]


def test_no_more_of_a_user_begin_than_the_settings_allow(people, settings) -> None:
    placement = settings.PILOTAGE["PLACEMENT"] | {"PER_USER": 1}
    settings.PILOTAGE = settings.PILOTAGE | {"PLACEMENT": placement}
    first, second = _submit(people.alice, "a", "b", 2)
    [other] = _submit(people.bob, "a", "b")

    assert _taken() == [first, other]
    assert "1 requests of alice run, of 1 at most" in _waits(second)
