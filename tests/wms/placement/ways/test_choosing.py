"""Ways of attempts: noted with them, chosen by their records, told."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.factories import SYSTEM
from tests.wms.placement.conftest import last_attempt
from wms.core.models import User
from wms.jobs.operations import create_workspace
from wms.placement import operations
from wms.placement.links import links_seen_by
from wms.placement.models import PlacementAttempt, PlacementRequest
from wms.placement.storages.services import StorageSpec, create_storage
from wms.placement.submission import submit_requests
from wms.placement.ways.choosing import tries_new_ones
from wms.placement.ways.records import Way, records_of
from wms.placement.ways.telling import told_choice

pytestmark = pytest.mark.django_db

NOW = timezone.now()
TO = "http://192.0.2.7/x"


@pytest.fixture(autouse=True)
def reachable(configure, tmp_path) -> None:
    configure(ROOTS=[str(tmp_path)], ALLOWED=["192.0.2.0/24"])


def _submitted(alice: User, more: str = 'alt_protocols = "http-ftp, ftp-ftp"') -> PlacementRequest:
    ad = f'dap_type = "transfer"\nsrc_url = "http://192.0.2.1/a"\ndest_url = "{TO}"\n{more}'
    [pk] = submit_requests(
        ad, workspace=create_workspace(alice, {}), directory="", owner=alice, topic="",
        topic_key=0, actor=SYSTEM,
    )  # fmt: skip
    return PlacementRequest.objects.get(pk=pk)


def _past(request: PlacementRequest, pair: str, *codes: int, ends=("192.0.2.1", "192.0.2.7")):
    source, destination = pair.split("-")
    first = request.attempts.count() + 100
    for number, code in enumerate(codes, first):
        PlacementAttempt.objects.create(
            request=request, number=number, source_scheme=source, destination_scheme=destination,
            source_end=ends[0], destination_end=ends[1], exit_code=code, size_bytes=2**24,
            started_at=NOW - timedelta(seconds=70), ended_at=NOW - timedelta(seconds=60),
        )  # fmt: skip


def _attempt(request: PlacementRequest, *, exit_code: int = 1) -> PlacementAttempt:
    started = operations.start_attempt(request.pk, NOW)
    assert started is not None
    operations.end_attempt(request.pk, exit_code=exit_code, now=NOW)
    return last_attempt(request)


def _pair(attempt: PlacementAttempt) -> str:
    return f"{attempt.source_scheme}-{attempt.destination_scheme}"


def test_an_attempt_notes_the_storages_of_the_schemes_that_it_used(alice) -> None:
    create_storage(StorageSpec("web", ["http://192.0.2.7/"]), actor=SYSTEM)
    create_storage(StorageSpec("old", ["ftp://192.0.2.7/"]), actor=SYSTEM)
    request = _submitted(alice)

    ends = [(each.source_end, each.destination_end) for each in map(_attempt, [request] * 2)]

    assert ends == [("192.0.2.1", "web"), ("192.0.2.1", "old")]
    links = {each.destination: each for each in links_seen_by(alice, NOW).links}
    assert (links["web"].attempts, links["old"].attempts) == (1, 1)
    assert links["web"].waiting == 1


def test_one_that_runs_counts_at_the_storages_that_it_uses(alice) -> None:
    create_storage(StorageSpec("old", ["ftp://192.0.2.7/"]), actor=SYSTEM)
    request = _submitted(alice)
    _attempt(request)
    operations.start_attempt(request.pk, NOW)

    links = {each.destination: each for each in links_seen_by(alice, NOW).links}
    assert links["old"].running == 1


def test_without_records_ways_are_taken_in_the_order_of_the_request(alice) -> None:
    request = _submitted(alice)

    attempts = [_attempt(request) for _ in range(6)]

    pairs = ["http-http", "http-ftp", "ftp-ftp"]
    assert [_pair(each) for each in attempts] == [*pairs, *pairs]
    assert attempts[0].choice["cause"] == "own_order"


def test_the_way_with_the_better_record_is_taken_first_and_tells_so(alice) -> None:
    other, request = _submitted(alice, ""), _submitted(alice)
    _past(other, "http-http", 0, 1, 1)
    _past(other, "http-ftp", 1, 1)
    _past(other, "ftp-ftp", 0, 0, 0)

    attempts = [_attempt(request) for _ in range(3)]

    assert [_pair(each) for each in attempts] == ["ftp-ftp", "http-http", "http-ftp"]
    choice = attempts[0].choice
    first = choice["ways"][0]
    assert (choice["cause"], first["tries"], first["successes"]) == ("record", 3, 3)
    assert first["bytes_per_s"] == pytest.approx(2**24 / 10)
    assert told_choice(choice).count(";") == 2


def test_a_transfer_in_ten_begins_with_what_was_not_tried(alice) -> None:
    urls = [f"http://192.0.2.1/{n}" for n in range(1000)]

    assert 50 < sum(tries_new_ones(each, TO) for each in urls) < 150


def test_records_are_of_the_ends_and_fade(alice) -> None:
    request = _submitted(alice, "")
    _past(request, "http-http", 0, 1)
    _past(request, "http-http", 0, ends=("192.0.2.1", "other"))
    way = Way("192.0.2.1", "192.0.2.7", "http", "http")

    fresh = records_of([way], NOW)[way]
    later = records_of([way], NOW + timedelta(hours=2))[way]

    assert (fresh.tries, fresh.successes) == (later.tries, later.successes) == (2, 1)
    assert later.weight == pytest.approx(fresh.weight / 4)
    assert records_of([way], NOW + timedelta(days=2))[way].is_untried
