from __future__ import annotations

import pytest

from tests.portal.pilot_api.pilot_client import ENDED, PilotClient
from wms.jobs.models import Attempt, Stream
from wms.jobs.output.streams import MAX_PIECE_BYTES, stream_text
from wms.jobs.output.texts import chunks_of
from wms.pilots.models import Pilot, PilotLog
from wms.pilots.protocol.logs import log_text

pytestmark = pytest.mark.django_db


def send(client: PilotClient, path: str, content: bytes, offset: int | str) -> tuple[int, dict]:
    answer = client.request("POST", f"{path}?offset={offset}", content)
    return answer.status_code, answer.json()


def test_pieces_of_output_are_answered_with_the_size_that_is_here(
    registered: PilotClient, attempt: str
) -> None:
    path = f"{attempt}/streams/stdout"

    assert send(registered, path, b"one", 0) == (200, {"size": 3})
    assert send(registered, path, b"one", 0) == (200, {"size": 3})
    status, problem = send(registered, path, b"later", 9)
    assert (status, problem["size"]) == (409, 3)
    assert send(registered, path, b" two", 3) == (200, {"size": 7})

    stream = Stream.objects.get()
    found = b"".join(chunks_of(stream_text(stream), 1000))
    assert found == b"one two"


@pytest.mark.parametrize("offset", ["", "-1", "x", "1e3", "9" * 19])
def test_an_offset_that_is_none_is_told(registered: PilotClient, attempt: str, offset: str) -> None:
    status, problem = send(registered, f"{attempt}/streams/stdout", b"x", offset)

    assert (status, problem["errors"][0]["field"]) == (400, "offset")


def test_a_piece_that_is_too_large_is_refused(registered: PilotClient, attempt: str) -> None:
    content = b"x" * (MAX_PIECE_BYTES + 1)

    assert send(registered, f"{attempt}/streams/stdout", content, 0)[0] == 413
    assert not Stream.objects.exists()


def test_there_are_two_streams_only(registered: PilotClient, attempt: str) -> None:
    assert send(registered, f"{attempt}/streams/stdlog", b"x", 0)[0] == 404


def test_output_that_comes_after_the_end_is_kept_too(registered: PilotClient, attempt: str) -> None:
    registered.post(f"{attempt}/report", ENDED)

    assert send(registered, f"{attempt}/streams/stderr", b"bye", 0) == (200, {"size": 3})


def test_a_log_grows_while_the_pilot_runs_and_is_there_when_it_is_dead(
    registered: PilotClient,
) -> None:
    assert send(registered, "log", b"hello\n", 0) == (200, {"size": 6})
    Pilot.objects.update(state="failed")

    assert send(registered, "log", b"late\n", 6) == (200, {"size": 11})
    log = PilotLog.objects.get()
    assert b"".join(chunks_of(log_text(log), 1000)) == b"hello\nlate\n"


@pytest.fixture
def payload(registered: PilotClient, job_id: int) -> tuple[PilotClient, str]:
    """The payload's side of a pilot: it has the token of its attempt, and no other."""
    job = registered.claim()
    assert registered.claim() is None
    client = PilotClient(registered.pilot, job["token"])
    return client, f"jobs/{job['job']}/{job['attempt']}"


def test_the_token_of_an_attempt_is_good_for_what_concerns_it(
    payload: tuple[PilotClient, str],
) -> None:
    client, attempt = payload

    assert client.post(f"{attempt}/report", {"event": "started"}).status_code == 200
    assert b"".join(client.request("GET", f"{attempt}/inputs/in.txt").streaming_content) == b"in"
    assert client.put(f"{attempt}/files/output/out.txt", b"out").status_code == 200
    assert send(client, f"{attempt}/streams/stdout", b"x", 0)[0] == 200
    assert client.post(f"{attempt}/report", ENDED).status_code == 200
    assert Attempt.objects.get().outcome == "done"


def test_the_token_of_an_attempt_is_good_for_nothing_else(
    payload: tuple[PilotClient, str], make_job
) -> None:
    client, attempt = payload
    another = f"jobs/{make_job()}/1"

    refused = [
        client.post("heartbeat", {"jobs": []}),
        client.ask(),
        client.post("end", {"reason": "idle", "detail": ""}),
        client.request("POST", "log?offset=0", b"x"),
        client.post(f"{another}/report", {"event": "started"}),
        client.post(f"{attempt}1/report", {"event": "started"}),
    ]

    assert [answer.status_code for answer in refused] == [401] * len(refused)


def test_a_claim_that_is_repeated_gives_the_same_token(
    registered: PilotClient, job_id: int
) -> None:
    one, two = (registered.claim(claim="a" * 32) for _ in range(2))

    assert one == two
    assert one["token"]


def test_a_report_tells_what_was_used_and_who_stopped_it(
    registered: PilotClient, attempt: str
) -> None:
    usage = {"wall_s": 9.0, "network_mb": 1.5, "unknown": 1}
    report = ENDED | {"usage": usage, "stopped_by": "watchdog", "reason": "too much memory"}

    assert registered.post(f"{attempt}/report", report).status_code == 200

    kept = Attempt.objects.get()
    assert kept.usage == {"wall_s": 9.0, "network_mb": 1.5}
    assert kept.stopped_by == "watchdog"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"stopped_by": "nobody"}, "stopped_by"),
        ({"usage": {"wall_s": -1}}, "usage.wall_s"),
        ({"usage": []}, "usage"),
    ],
)
def test_a_faulty_report_of_use_is_told_its_field(
    registered: PilotClient, attempt: str, changes: dict, field: str
) -> None:
    answer = registered.post(f"{attempt}/report", ENDED | changes)

    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == field
    assert Attempt.objects.get().outcome == ""


@pytest.mark.parametrize(("reason", "state"), [("unfit", "failed"), ("preempted", "done")])
def test_pilots_end_for_reasons_of_their_own(
    registered: PilotClient, reason: str, state: str
) -> None:
    body = {"reason": reason, "detail": "disk", "totals": {"cores": 1, "lifetime_s": 5.0}}

    assert registered.post("end", body).status_code == 200

    pilot = Pilot.objects.get()
    assert (pilot.state, pilot.state_reason) == (state, f"{reason}: disk")
    assert pilot.totals == {"cores": 1.0, "lifetime_s": 5.0}
