"""Files of pilots by links to the store of contents, where it is a bucket."""

from __future__ import annotations

import hashlib
import http.client
import random
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.portal.pilot_api.pilot_client import PilotClient
from tests.s3.server import S3Server
from wms.jobs.content import blobs
from wms.jobs.models import AttemptFile, Blob, WorkspaceFile

pytestmark = [pytest.mark.django_db, pytest.mark.process]

LARGE = random.Random(4).randbytes(300_000)
SHA256 = hashlib.sha256(LARGE).hexdigest()


def input_is(content: bytes) -> None:
    WorkspaceFile.objects.filter(path="in.txt").update(blob=blobs.store_bytes(content))


def asked(client: PilotClient, attempt: str, *, is_sent: bool = False, **changed: Any) -> Any:
    place = changed.pop("place", "output/out.txt")
    body = {"sha256": SHA256, "size_bytes": len(LARGE), "is_sent": is_sent, **changed}
    return client.post(f"{attempt}/links/{place}", body)


def ask(method: str, url: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc)
    connection.request(method, f"{parts.path}?{parts.query}", body, headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content


def test_a_large_input_comes_by_a_link_for_who_can_follow_one(
    bucket: str, registered: PilotClient, attempt: str
) -> None:
    input_is(LARGE)
    path = f"{attempt}/inputs/in.txt"

    by_link = registered.request("GET", path, **{"Pilotage-Links": "1"})
    without = registered.request("GET", path)

    assert (by_link.status_code, by_link["Cache-Control"], by_link.content) == (
        307,
        "no-store",
        b"",
    )
    assert ask("GET", by_link["Location"]) == (200, LARGE)
    assert b"".join(without.streaming_content) == LARGE


def test_a_small_input_comes_from_the_portal(
    bucket: str, registered: PilotClient, attempt: str
) -> None:
    input_is(b"small")

    answer = registered.request("GET", f"{attempt}/inputs/in.txt", **{"Pilotage-Links": "1"})

    assert (answer.status_code, b"".join(answer.streaming_content)) == (200, b"small")


def test_an_output_goes_by_a_link_and_counts_when_it_is_told(
    bucket: str, registered: PilotClient, attempt: str
) -> None:
    link = asked(registered, attempt).json()["link"]
    early = asked(registered, attempt, is_sent=True).json()

    assert (early, AttemptFile.objects.exists(), Blob.objects.filter(pk=SHA256).exists()) == (
        {"is_stored": False}, False, False,
    )  # fmt: skip
    assert ask("PUT", link["url"], LARGE, **link["headers"])[0] == 200
    assert asked(registered, attempt, is_sent=True).json() == {"is_stored": True}

    # The answer is lost, and the word that it was sent comes again.
    assert asked(registered, attempt, is_sent=True).json() == {"is_stored": True}

    file = AttemptFile.objects.get(kind="output", path="out.txt")
    assert (file.blob_id, file.blob.size_bytes) == (SHA256, len(LARGE))
    with blobs.open_blob(SHA256) as stored:
        assert stored.read() == LARGE
    # A content that is there already is taken too.
    link = asked(registered, attempt).json()["link"]
    assert ask("PUT", link["url"], LARGE, **link["headers"])[0] == 200
    assert asked(registered, attempt, is_sent=True).json() == {"is_stored": True}


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"place": "output/other.txt"}, 400),
        ({"place": "core/core"}, 400),
        ({"sha256": "x"}, 400),
        ({"size_bytes": -1}, 400),
        ({"size_bytes": 2**40}, 413),
        ({"is_sent": "yes"}, 400),
    ],
)
def test_what_would_not_be_taken_gets_no_link(
    bucket: str, registered: PilotClient, attempt: str, changed: dict[str, Any], status: int
) -> None:
    assert asked(registered, attempt, **changed).status_code == status


def test_a_folder_gives_no_links(registered: PilotClient, attempt: str) -> None:
    input_is(LARGE)

    answer = registered.request("GET", f"{attempt}/inputs/in.txt", **{"Pilotage-Links": "1"})

    assert b"".join(answer.streaming_content) == LARGE
    assert asked(registered, attempt).json() == {"link": None}


def test_while_the_store_is_away_a_pilot_is_told_to_come_again(
    s3: S3Server,
    registered: PilotClient,
    attempt: str,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("wms.core.storage.s3_requests._FIRST_PAUSE_S", 0)
    away = s3.settings("away") | {"URL": "http://127.0.0.1:9"}
    settings.PILOTAGE = settings.PILOTAGE | {"BLOBS_S3": away}

    assert registered.request("GET", f"{attempt}/inputs/in.txt").status_code == 503
    assert registered.put(f"{attempt}/files/output/out.txt", b"result").status_code == 503
    assert registered.post(f"{attempt}/streams/stdout?offset=0", b"one").status_code == 503
    assert not AttemptFile.objects.exists()
