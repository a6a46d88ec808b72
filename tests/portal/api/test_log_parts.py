"""Parts of logs by the API: from a place on, the end, and as they grow."""

from __future__ import annotations

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from portal.api.log_responses import MAX_BYTES
from tests import factories
from wms.dags.models import ScriptRun
from wms.jobs.content.blobs import store_bytes
from wms.jobs.models import Stream
from wms.jobs.output.streams import append_to_stream
from wms.pilots.protocol.logs import append_to_log

pytestmark = pytest.mark.django_db


@pytest.fixture
def claimed() -> factories.Claimed:
    """Alice's job, which runs in a pilot."""
    people = factories.people()
    worker = factories.pilot(factories.site().queues.get())
    factories.job(people.alice)
    made = factories.claim(worker)
    assert made is not None
    return made.start()


@pytest.fixture
def bob(claimed: factories.Claimed) -> APIClient:
    client = APIClient()
    client.force_authenticate(factories.person("bob"))
    return client


def _print(claimed: factories.Claimed, content: bytes) -> None:
    sent = Stream.objects.filter(attempt__job=claimed.job).first()
    append_to_stream(
        claimed.job.pk, claimed.number, pilot_id=claimed.pilot.pk, kind="stdout",
        offset=sent.size_bytes if sent else 0, content=content, now=timezone.now(),
    )  # fmt: skip


def _address(claimed: factories.Claimed) -> str:
    return f"/api/v1/jobs/{claimed.job.pk}/stdout"


def test_what_grows_is_followed_from_where_the_last_answer_ended(
    claimed: factories.Claimed, bob: APIClient
) -> None:
    address = _address(claimed)
    _print(claimed, b"one\n")
    first = bob.get(address)
    same = bob.get(f"{address}?offset=4", headers={"If-None-Match": first["ETag"]})
    _print(claimed, b"two\n")
    second = bob.get(f"{address}?offset={first['X-Next-Offset']}")
    claimed.send("stdout", "stdout", b"one\ntwo\nthree\n")
    claimed.end()
    last = bob.get(f"{address}?offset={second['X-Next-Offset']}")

    assert (first.content, first["X-Is-Growing"]) == (b"one\n", "1")
    assert same.status_code == 304
    assert second.content == b"two\n"
    assert (last.content, last["X-Is-Growing"], last["X-Full-Size-Bytes"]) == (
        b"three\n", "0", "14",
    )  # fmt: skip


def test_a_follower_is_told_where_the_answer_begins_behind_what_is_not_here(
    claimed: factories.Claimed, bob: APIClient
) -> None:
    _print(claimed, b"one\n")
    append_to_stream(
        claimed.job.pk, claimed.number, pilot_id=claimed.pilot.pk, kind="stdout",
        offset=5000, after=4, content=b"nine\n", now=timezone.now(),
    )  # fmt: skip

    parts = [
        bob.get(f"{_address(claimed)}?{query}") for query in ("offset=0", "offset=4", "tail=99")
    ]

    places = ("X-Offset", "X-Next-Offset", "X-Full-Size-Bytes")
    told = [(part.content, *(part[name] for name in places)) for part in parts]
    assert told == [
        (b"one\n", "0", "4", "5005"),
        (b"nine\n", "5000", "5005", "5005"),
        (b"nine\n", "5000", "5005", "5005"),
    ]


@pytest.mark.slow
def test_pieces_cut_no_character_and_make_up_the_whole(
    claimed: factories.Claimed, bob: APIClient
) -> None:
    whole = "aé€😀" * 20
    _print(claimed, whole.encode())
    place, pieces = 0, []

    for _ in range(200):
        answer = bob.get(f"{_address(claimed)}?offset={place}&limit_bytes=7")
        if not answer.content:
            break
        pieces.append(answer.content.decode())
        place = int(answer["X-Next-Offset"])

    assert "".join(pieces) == whole
    assert max(len(piece.encode()) for piece in pieces) <= 7


def test_broken_text_does_not_stop_a_follower(claimed: factories.Claimed, bob: APIClient) -> None:
    _print(claimed, b"\xf0\xf0\xf0")

    answer = bob.get(f"{_address(claimed)}?offset=0&limit_bytes=1")

    assert answer["X-Next-Offset"] == "1"


def test_so_many_bytes_of_the_end_are_sent(claimed: factories.Claimed, bob: APIClient) -> None:
    _print(claimed, "1234é6789\n".encode())

    answer = bob.get(f"{_address(claimed)}?tail=6")

    assert answer.content == b"6789\n"
    assert (answer["X-Offset"], answer["X-Next-Offset"]) == ("6", "11")


@pytest.mark.parametrize(
    "query",
    ["offset=-1", "offset=x", "tail=0", f"tail={MAX_BYTES + 1}", "offset=1&tail=1",
     f"limit_bytes={MAX_BYTES + 1}"],
)  # fmt: skip
def test_a_part_that_is_none_is_refused(
    claimed: factories.Claimed, bob: APIClient, query: str
) -> None:
    _print(claimed, b"one\n")

    answer = bob.get(f"{_address(claimed)}?{query}")

    assert answer.status_code == 400


def test_logs_of_pilots_and_scripts_are_read_in_parts_too(
    claimed: factories.Claimed, bob: APIClient
) -> None:
    append_to_log(claimed.pilot.pk, offset=0, content=b"registered\n", now=timezone.now())
    dag = factories.running_dag(factories.person("alice"))
    run = ScriptRun.objects.create(
        dag=dag, node=dag.nodes.all()[0], kind="pre", retry_number=0, executable="a",
        state="ended", exit_code=0, output=store_bytes(b"prepared\n"),
    )  # fmt: skip

    log = bob.get(f"/api/v1/pilots/{claimed.pilot.uuid}/log?offset=2&limit_bytes=3")
    script = bob.get(f"/api/v1/dags/{dag.pk}/scripts/{run.pk}/output?tail=4")

    assert (log.content, log["X-Full-Size-Bytes"]) == (b"gis", "11")
    assert script.content == b"red\n"


@pytest.mark.parametrize(
    ("asked", "status", "content", "told"),
    [
        ("bytes=2-4", 206, b"234", "bytes 2-4/10"),
        ("bytes=7-", 206, b"789", "bytes 7-9/10"),
        ("bytes=-3", 206, b"789", "bytes 7-9/10"),
        ("bytes=5-99", 206, b"56789", "bytes 5-9/10"),
        ("bytes=0-1,3-4", 200, b"0123456789", None),
        ("bytes=-", 200, b"0123456789", None),
        ("bytes=10-", 416, b"", "bytes */10"),
        ("bytes=5-2", 416, b"", "bytes */10"),
    ],
)
def test_a_download_may_be_of_a_range(
    claimed: factories.Claimed, bob: APIClient, asked: str, status: int, content: bytes,
    told: str | None,
) -> None:  # fmt: skip
    _print(claimed, b"0123456789")

    answer = bob.get(f"{_address(claimed)}?full=1", headers={"Range": asked})

    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    assert (answer.status_code, body, answer.get("Content-Range")) == (status, content, told)
