"""Contents of files move from the folder to a bucket and back, whole, as often as one likes."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.utils import timezone

from portal.cli.content_moves import MOVE
from tests.portal.pilot_api.pilot_client import PilotClient
from tests.s3.server import S3Server
from tests.stored_files import blob_path, stored_files
from wms.core.actors import Actor
from wms.core.database.locks import advisory_lock
from wms.core.models import AuditEntry, User
from wms.core.storage import owners
from wms.core.storage.current import (
    close_stores,
    current_store,
    folder_store,
    scratch_folder,
)
from wms.core.storage.owners import LEFT, StoreLeft
from wms.jobs.content.blobs import open_blob, store_bytes
from wms.jobs.models import Attempt, Blob, ResumableUpload, Stream
from wms.jobs.output.streams import stream_file, stream_text
from wms.jobs.output.texts import chunks_of
from wms.jobs.uploads.services import append_pieces, begin_upload
from wms.pilots.models import PilotLog
from wms.pilots.protocol.logs import append_to_log, log_file, log_text

pytestmark = [pytest.mark.django_db, pytest.mark.process]

LINES = b"".join(b"%07d\n" % number for number in range(12_000))
LARGE = random.Random(6).randbytes(100_000)
SHA256 = hashlib.sha256(LARGE).hexdigest()


@pytest.fixture(autouse=True)
def _closed_stores() -> Iterator[None]:
    yield
    close_stores()


@pytest.fixture(autouse=True)
def _marks_are_read_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owners, "TRUSTED_S", 0.0)


@pytest.fixture
def filled(registered: PilotClient, attempt: str) -> ResumableUpload:
    """Contents of all kinds in the folder; the upload of which half is there."""
    owner, now = User.objects.get(username="alice"), timezone.now()
    registered.request("POST", f"{attempt}/streams/stdout?offset=0", LINES)
    registered.request("POST", f"{attempt}/streams/stdout?offset=200000&after=96000", b"later\n")
    append_to_log(registered.pilot.pk, offset=0, content=b"log\n", now=now)
    registered.put(f"{attempt}/files/output/out.txt", b"result")
    actor = Actor.person(owner)
    begun = begin_upload(sha256=SHA256, size_bytes=len(LARGE), owner=owner, actor=actor, now=now)
    return continued(begun.upload, 0, 60_000)


def continued(upload: ResumableUpload, start: int, end: int) -> ResumableUpload:
    owner = upload.owner
    return append_pieces(
        upload.pk, [LARGE[start:end]], length=end - start, offset=start,
        owner=owner, actor=Actor.person(owner), now=timezone.now(),
    )  # fmt: skip


def move(*options: str) -> str:
    said = StringIO()
    call_command("move_contents", *options, stdout=said)
    return said.getvalue()


def all_contents() -> tuple[list[bytes], bytes, bytes]:
    found = []
    for blob in Blob.objects.order_by("pk"):
        with open_blob(blob.pk) as stream:
            found.append(stream.read())
    output = b"".join(chunks_of(stream_text(Stream.objects.get()), 50_000))
    log = b"".join(chunks_of(log_text(PilotLog.objects.get()), 50_000))
    return found, output, log


def files_left() -> list[str]:
    return [name for name in stored_files() if name != LEFT]


def use_bucket(s3: S3Server, settings: Any, prefix: str, *, is_used: bool = True) -> None:
    changed = s3.settings(prefix) if is_used else {"BUCKET": ""}
    settings.PILOTAGE = settings.PILOTAGE | {"BLOBS_S3": changed}


def test_all_contents_move_to_a_bucket_and_back(
    filled: ResumableUpload, s3: S3Server, settings: Any
) -> None:
    before = all_contents()
    use_bucket(s3, settings, "moved")

    copied = move("--to", "bucket")
    again = move("--to", "bucket")
    assert copied.split(" ")[0] == "6"
    assert again.startswith("0 copied (0 B), 6 were there")
    assert all_contents() == before

    move("--to", "bucket", "--remove-originals")
    assert files_left() == []
    assert continued(filled, 60_000, len(LARGE)).blob_id == SHA256
    before = all_contents()

    move("--to", "folder", "--remove-originals")
    use_bucket(s3, settings, "moved", is_used=False)
    assert all_contents() == before
    assert AuditEntry.objects.filter(action="move contents").count() == 4


def test_a_move_that_was_killed_goes_on_and_what_is_spoilt_is_told(
    filled: ResumableUpload, s3: S3Server, settings: Any
) -> None:
    spoilt = store_bytes(b"spoilt")
    blob_path(spoilt.pk).write_bytes(b"SPOILT")
    use_bucket(s3, settings, "killed")
    [attempt] = Attempt.objects.all()
    other = attempt.files.get().blob_id
    # The half of a move.
    store = current_store()
    path = folder_store().base / "half"
    path.write_bytes(b"result")
    store.put(f"{other[:2]}/{other}", path)

    with pytest.raises(CommandError) as refused:
        move("--to", "bucket", "--remove-originals")

    assert str(refused.value).count(spoilt.pk) == 2
    assert files_left() == [spoilt.pk]
    with open_blob(other) as stream:
        assert stream.read() == b"result"


def test_an_original_stays_of_which_the_copy_is_another_or_that_grows_meanwhile(
    filled: ResumableUpload, s3: S3Server, settings: Any
) -> None:
    use_bucket(s3, settings, "differing")
    move("--to", "bucket")
    stream = Stream.objects.get()
    grows, differs = (
        log_file(PilotLog.objects.get().pk),
        stream_file(stream.attempt_id, stream.kind),
    )
    folder_store().append(grows, b"more\n", at=4)
    part = current_store().read_grown(differs, 0, len(LINES))
    current_store().append(differs, b"X" + part[1:], at=0)
    current_store().append(differs, b"later\n", at=200_000)

    with pytest.raises(CommandError) as refused:
        move("--to", "bucket", "--remove-originals")

    assert all(each.key in str(refused.value) for each in (grows, differs))
    assert folder_store().read_grown(grows, 0, 100) == b"log\nmore\n"
    assert folder_store().read_grown(differs, 0, len(LINES)) == LINES


def moved_beside(*options: str) -> str:
    """A move by another thread, on a connection of its own."""
    try:
        return move(*(options or ("--to", "bucket", "--remove-originals")))
    finally:
        connection.close()


def taken_beside() -> None:
    """A store taken over by another thread."""
    try:
        call_command("take_store", "--take-over", "--reason", "restored")
    finally:
        connection.close()


def somebody_waits() -> bool:
    # Within a transaction what is seen of others stays the same.
    beside = connection.copy()
    try:
        with beside.cursor() as cursor:
            cursor.execute(
                "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                " AND datname = current_database()"
            )
            return cursor.fetchone() is not None
    finally:
        beside.close()


@pytest.mark.django_db(transaction=True)
def test_a_piece_that_a_service_is_just_writing_to_the_old_store_is_moved_too(
    filled: ResumableUpload, s3: S3Server, settings: Any
) -> None:
    pilot_id, now = PilotLog.objects.get().pk, timezone.now()
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            # With the settings that it had when it began.
            append_to_log(pilot_id, offset=4, content=b"more\n", now=now)
            use_bucket(s3, settings, "just-written")
            moving = pool.submit(moved_beside)
            while not somebody_waits():
                assert not moving.done()
        moving.result()

    assert files_left() == []
    # A service that still has the old settings is refused: nothing is lost, nor in two places.
    use_bucket(s3, settings, "just-written", is_used=False)
    with pytest.raises(StoreLeft):
        append_to_log(pilot_id, offset=9, content=b"last\n", now=now)
    with pytest.raises(StoreLeft):
        continued(filled, 60_000, len(LARGE))
    use_bucket(s3, settings, "just-written")
    append_to_log(pilot_id, offset=9, content=b"last\n", now=now)
    assert b"".join(chunks_of(log_text(PilotLog.objects.get()), 50)) == b"log\nmore\nlast\n"
    assert continued(filled, 60_000, len(LARGE)).blob_id == SHA256


@pytest.mark.django_db(transaction=True)
def test_a_copy_waits_for_nobody_who_appends(
    filled: ResumableUpload, s3: S3Server, settings: Any
) -> None:
    use_bucket(s3, settings, "unlocked")

    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        assert PilotLog.objects.select_for_update().get()
        assert Stream.objects.select_for_update().get()
        copying = pool.submit(moved_beside, "--to", "bucket")
        while not copying.done():
            assert not somebody_waits()
        copied = copying.result()

    assert copied.split(" ")[0] == "6"


@pytest.mark.django_db(transaction=True)
def test_one_process_at_a_time_moves_contents(s3: S3Server, settings: Any) -> None:
    use_bucket(s3, settings, "at-once")

    with advisory_lock(MOVE), ThreadPoolExecutor(1) as pool:
        with pytest.raises(CommandError):
            pool.submit(moved_beside).result()
        with pytest.raises(CommandError):
            pool.submit(taken_beside).result()

    assert folder_store().size_of(LEFT) is None


def test_no_name_in_a_bucket_leads_out_of_the_folder(
    s3: S3Server, settings: Any, tmp_path: Path
) -> None:
    settings.PILOTAGE = settings.PILOTAGE | {"BLOBS_DIR": str(tmp_path / "blobs")}
    use_bucket(s3, settings, "of-others")
    store = current_store()
    for key in (f"trials/../../{SHA256}", f"ab/../../{SHA256}", "trials/../../note"):
        path = scratch_folder() / "file"
        path.write_bytes(LARGE)
        store.put(key, path)

    move("--to", "folder")

    assert [path.name for path in tmp_path.iterdir()] == ["blobs"]


def test_a_growing_file_that_lacks_a_part_is_told_and_all_else_moves(
    filled: ResumableUpload, s3: S3Server, settings: Any
) -> None:
    use_bucket(s3, settings, "lacking")
    move("--to", "bucket")
    stream = Stream.objects.get()
    key = stream_file(stream.attempt_id, stream.kind).key
    current_store().delete([f"{key}.00000000"])
    for path in folder_store().base.rglob("*"):
        if path.is_file():
            path.unlink()

    with pytest.raises(CommandError) as refused:
        move("--to", "folder", "--remove-originals")

    assert key in str(refused.value)
    use_bucket(s3, settings, "lacking", is_used=False)
    assert b"".join(chunks_of(log_text(PilotLog.objects.get()), 50)) == b"log\n"


def test_without_a_bucket_nothing_is_moved(registered: PilotClient) -> None:
    with pytest.raises(CommandError) as refused:
        move("--to", "bucket")

    assert "PILOTAGE_BLOBS_S3_BUCKET" in str(refused.value)
