"""Large files, which go by uploads that are resumed after whatever breaks them off."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from pilotage_client import AsyncClient, Client
from pilotage_client.errors import InvalidInput, UsageError
from pilotage_client.flows import uploading
from pilotage_client.flows.uploading import UploadBroken, large_files
from pilotage_client.wire import Patience

from tests import factories
from tests.client.conftest import URL, Portal, Ran, run_in_loop
from wms.dags.models import Dag
from wms.jobs.models import ResumableUpload, WorkspaceFile

Command = Callable[..., Ran]
CONTENT = bytes(range(256)) * 8
SHA256 = hashlib.sha256(CONTENT).hexdigest()
DAG = "JOB A a.sub\n"
SUB = "executable = /bin/true\ntransfer_input_files = big.dat\nqueue\n"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes of large files and of pieces are a thousandth of the usual."""
    monkeypatch.setattr(uploading, "LARGE_BYTES", 1024)
    monkeypatch.setattr(uploading, "_PIECE_BYTES", 512)


@pytest.fixture
def big(own_place: Path) -> Path:
    path = own_place / "big.dat"
    path.write_bytes(CONTENT)
    (own_place / "a.sub").write_text(SUB)
    (own_place / "x.dag").write_text(DAG)
    return path


def pieces(portal: Portal) -> list[str]:
    """Offsets at which pieces were sent."""
    return [each.headers["Upload-Offset"] for each in portal.requests if each.method == "PATCH"]


def cut_at(offset: int, *, times: int = 1, is_taken: bool = False) -> Callable[[Any], None]:
    """A break of the line at a piece, before the portal takes it or after that."""
    left = [times]

    def cut(request: httpx.Request) -> None:
        if request.headers.get("Upload-Offset") == str(offset) and left[0]:
            left[0] -= 1
            raise httpx.ReadError("cut") if is_taken else httpx.WriteError("cut")

    return cut


def test_a_large_file_goes_in_pieces_and_its_dag_takes_it(
    client: Client, portal: Portal, big: Path
) -> None:
    told: list[tuple[int, int]] = []

    client.submit_dag("x.dag", progress=lambda sent, total: told.append((sent, total)))

    assert pieces(portal) == ["0", "512", "1024", "1536"]
    assert WorkspaceFile.objects.get(path="big.dat").blob_id == SHA256
    assert [sent for sent, _ in told] == sorted(sent for sent, _ in told)
    assert (512 in {sent for sent, _ in told}, told[-1][0]) == (True, told[-1][1])


def test_jobs_and_their_check_take_large_files_which_are_sent_once(
    pilotage: Command, portal: Portal, big: Path
) -> None:
    assert pilotage("check", "a.sub").code == 0
    assert pilotage("submit", "a.sub").code == 0

    assert pieces(portal) == ["0", "512", "1024", "1536"]


def test_what_the_portal_has_from_an_earlier_dag_is_not_sent_again(
    client: Client, portal: Portal, big: Path
) -> None:
    client.submit_dag("x.dag")
    ResumableUpload.objects.all().delete()
    client.submit_dag("x.dag")

    assert len(pieces(portal)) == 4
    assert Dag.objects.count() == 2


@pytest.mark.parametrize("is_taken", [False, True])
def test_a_line_that_breaks_is_taken_up_where_the_portal_is(
    client: Client, portal: Portal, big: Path, is_taken: bool
) -> None:
    cut = cut_at(512, is_taken=is_taken)
    if is_taken:
        portal.after = cut
    else:
        portal.before = cut

    client.upload(big)

    again = ["1024"] if is_taken else ["512", "1024"]
    assert pieces(portal) == ["0", "512", *again, "1536"]
    assert ResumableUpload.objects.get().blob_id == SHA256


def test_an_end_whose_answer_was_lost_is_no_second_upload(
    client: Client, portal: Portal, big: Path
) -> None:
    portal.after = cut_at(1536, is_taken=True)

    assert client.upload(big) == ResumableUpload.objects.get().pk


def test_a_portal_that_stays_away_is_told_and_the_same_command_goes_on(
    pilotage: Command, portal: Portal, big: Path
) -> None:
    portal.before = cut_at(1024, times=10**6)

    told = pilotage("submit", "x.dag")
    sent = len(pieces(portal))
    portal.before = lambda request: None
    again = pilotage("submit", "x.dag")

    assert (told.code, told.out, again.code) == (6, "", 0)
    assert "1024" in told.err
    assert len(told.err.splitlines()) <= 1 + 6
    assert pieces(portal)[sent:] == ["1024", "1536"]
    assert Dag.objects.count() == 1


def test_a_portal_that_is_away_altogether_is_told_with_what_is_there(
    client: Client, portal: Portal, big: Path
) -> None:
    cut = cut_at(1024, times=10**6)

    def away(request: httpx.Request) -> None:
        cut(request)
        if "uploads/" in request.url.path and len(pieces(portal)) == 3:
            raise httpx.ConnectError("[Errno 111] Connection refused")

    portal.before = away

    with pytest.raises(UploadBroken) as refused:
        client.upload(big)
    assert "1024" in str(refused.value)


def test_a_portal_that_asks_to_wait_is_waited_for(
    client: Client, portal: Portal, pauses: list[float], big: Path
) -> None:
    busy = [httpx.Response(503, headers={"Retry-After": "7"})]

    def before(request: httpx.Request) -> httpx.Response | None:
        return busy.pop() if request.method == "PATCH" and busy else None

    portal.before = before

    client.upload(big)

    assert 7.0 in pauses


def test_two_clients_at_one_file_end_with_one_content(
    client: Client, portal: Portal, people: SimpleNamespace, big: Path
) -> None:
    other = Client(URL, factories.token_for(people.alice), transport=Portal())

    def race(request: httpx.Request) -> None:
        if request.headers.get("Upload-Offset") == "512":
            portal.before = lambda request: None
            other.upload(big)

    portal.before = race

    assert client.upload(big) == ResumableUpload.objects.get().pk
    assert ResumableUpload.objects.get().blob_id == SHA256
    other.close()


def test_an_upload_that_somebody_cancels_is_begun_anew(
    client: Client, portal: Portal, big: Path
) -> None:
    def cancel(request: httpx.Request) -> None:
        if request.headers.get("Upload-Offset") == "1024":
            portal.before = lambda request: None
            ResumableUpload.objects.all().delete()

    portal.before = cancel

    assert client.upload(big) == ResumableUpload.objects.get().pk


def test_a_file_that_is_changed_meanwhile_is_refused(
    client: Client, portal: Portal, big: Path
) -> None:
    def change(request: httpx.Request) -> None:
        if request.headers.get("Upload-Offset") == "512":
            big.write_bytes(b"!" * len(CONTENT))

    portal.before = change

    with pytest.raises(InvalidInput) as refused:
        client.upload(big)
    assert refused.value.code == "upload-hash"
    big.write_bytes(b"!")
    portal.before = lambda request: big.write_bytes(b"??") and None
    with pytest.raises(UsageError):
        client.upload(big)


def test_a_small_limit_of_the_portal_makes_small_pieces(
    client: Client, portal: Portal, big: Path, settings: Any
) -> None:
    settings.PILOTAGE = {**settings.PILOTAGE, "MAX_UPLOAD_BYTES": 300}

    client.upload(big)

    assert pieces(portal)[:2] == ["0", "300"]


def test_the_largest_go_by_uploads_until_the_others_are_one_request(
    own_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploading, "_MOST_TOGETHER_BYTES", 1000)
    sizes = {"big": 1025, "a": 700, "b": 600, "c": 400, "none": 0}
    files = {name: own_place / name for name in sizes}
    for name, path in files.items():
        path.write_bytes(b"x" * sizes[name])

    assert list(large_files(files)) == ["big", "a"]


def test_no_more_files_go_by_uploads_than_may_wait_and_too_many_others_are_told_at_once(
    client: Client, portal: Portal, big: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploading, "_MOST_UPLOADS", 2)
    monkeypatch.setattr(uploading, "_MOST_TOGETHER_BYTES", 1000)
    settings.PILOTAGE = {**settings.PILOTAGE, "MAX_UPLOAD_BYTES": 2000}
    files = [big.with_name(f"{number}.dat") for number in range(4)]
    for number, path in enumerate(files):
        path.write_bytes(b"x" * (1100 + number))

    chosen = large_files({path.name: path for path in files})
    with pytest.raises(UsageError) as refused:
        client.submit_dag("x.dag", files=files)

    assert list(chosen) == ["3.dat", "2.dat"]
    assert "2000" in str(refused.value)
    assert [each.method for each in portal.requests] == ["GET"]


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_breaks_in_a_piece_loses_nothing_of_it(
    live_server: Any, people: SimpleNamespace, big: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploading, "_PIECE_BYTES", 64 * 1024**2)
    monkeypatch.setattr(uploading, "PATIENCE", Patience(pauses_s=(0.01,)))
    content = bytes(range(256)) * 8192
    big.write_bytes(content)
    seen: list[int] = []

    def cut(sent: int, total: int) -> None:
        seen.append(sent)
        if len(seen) == 4:
            raise httpx.WriteError("cut")

    token = factories.token_for(people.alice)

    async def send() -> None:
        async with AsyncClient(live_server.url, token) as client:
            await client.upload(big, cut)

    run_in_loop(send())

    upload = ResumableUpload.objects.get()
    assert upload.blob_id == hashlib.sha256(content).hexdigest()
    assert len(seen) > 4
