"""Ends of uploads: who checks them, what a process remembers of that, and what files have more."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import Event
from typing import Any

import pytest
from django.db import connections

from tests.stored_files import blob_path, upload_path
from tests.wms.jobs.uploads.sending import (
    CONTENT,
    NOW,
    begin,
    content_of,
    send,
    sha256,
    uploaded,
)
from wms.core.database.locks import advisory_lock
from wms.core.errors import Busy, InvalidInput
from wms.core.heavy import Work, heavy_place
from wms.core.models import User
from wms.jobs.content.blobs import store_bytes
from wms.jobs.models import ResumableUpload
from wms.jobs.operations import create_workspace
from wms.jobs.uploads import digests, operations
from wms.jobs.uploads.operations import WrongHash, add_piece
from wms.jobs.uploads.selectors import contents_of_uploads


@contextmanager
def elsewhere(held: AbstractContextManager[Any]) -> Iterator[None]:
    """Have another session of the database hold this."""
    is_held, is_over = Event(), Event()

    def hold() -> None:
        try:
            with held:
                is_held.set()
                assert is_over.wait(30)
        finally:
            is_held.set()
            connections["default"].close()

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(hold)
        assert is_held.wait(30)
        try:
            yield
        finally:
            is_over.set()
            done.result()


@pytest.fixture
def whole(alice: User) -> ResumableUpload:
    """An upload of which every byte is here, and which this process has not seen."""
    upload = begin(alice)
    add_piece(upload.pk, CONTENT, owner=alice, offset=0, now=NOW)
    digests.forget(upload)
    return upload


def test_one_at_a_time_checks_an_upload_and_others_are_told_to_ask_again(
    whole: ResumableUpload,
) -> None:
    with elsewhere(advisory_lock(f"end of upload {whole.pk}")), pytest.raises(Busy):
        send(whole, offset=len(CONTENT))

    assert send(whole, offset=len(CONTENT)).blob_id == sha256(CONTENT)


@pytest.mark.parametrize(("at_once", "is_busy"), [(len(CONTENT) - 1, True), (len(CONTENT), False)])
def test_who_has_much_to_read_needs_a_slot(
    whole: ResumableUpload,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    at_once: int,
    is_busy: bool,
) -> None:
    settings.PILOTAGE = {**settings.PILOTAGE, "MAX_HEAVY_REQUESTS_PER_USER": 1}
    monkeypatch.setattr(operations, "_READ_AT_ONCE_BYTES", at_once)

    with elsewhere(heavy_place(whole.owner, Work.READING)):
        if is_busy:
            with pytest.raises(Busy):
                send(whole, offset=len(CONTENT))
        else:
            assert send(whole, offset=len(CONTENT)).blob_id == sha256(CONTENT)


def test_a_reading_that_breaks_off_is_gone_on_with(
    whole: ResumableUpload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digests, "_CHUNK_BYTES", 100)
    monkeypatch.setattr(digests, "_NOTED_BYTES", 1000)
    # The disk gives no more.
    os.truncate(upload_path(whole.pk), 2500)

    digests.digest_of(whole)

    assert digests.unread_bytes(whole) == len(CONTENT) - 2000
    upload_path(whole.pk).write_bytes(b"?" * 2000 + CONTENT[2000:])
    assert digests.digest_of(whole) == sha256(CONTENT)


def old_file(upload: ResumableUpload, content: bytes) -> None:
    """A file of an upload that had this id before the database was restored."""
    path = upload_path(upload.pk)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def test_a_longer_file_of_an_older_upload_adds_no_bytes(alice: User) -> None:
    upload = begin(alice)
    old_file(upload, b"?" * 2 * len(CONTENT))

    assert content_of(send(upload, CONTENT)) == CONTENT


def test_bytes_behind_the_end_are_cut_off(alice: User) -> None:
    upload = send(begin(alice), CONTENT[:10])
    old_file(upload, CONTENT[:10] + b"?" * 2 * len(CONTENT))

    assert content_of(send(upload, CONTENT[10:], offset=10)) == CONTENT


@pytest.mark.parametrize("at", [0, 10])
def test_a_content_that_is_the_file_of_an_older_upload_stays_as_it_is(alice: User, at: int) -> None:
    other = store_bytes(b"?" * 2 * len(CONTENT))
    upload = send(begin(alice), CONTENT[:at]) if at else begin(alice)
    upload_path(upload.pk).unlink(missing_ok=True)
    upload_path(upload.pk).parent.mkdir(parents=True, exist_ok=True)
    os.link(blob_path(other.pk), upload_path(upload.pk))

    with suppress(WrongHash):
        send(upload, CONTENT[at:], offset=at)

    assert blob_path(other.pk).read_bytes() == b"?" * 2 * len(CONTENT)


def test_a_content_that_is_longer_than_its_upload_is_not_cut(alice: User) -> None:
    other = store_bytes(CONTENT + b"more")
    upload = begin(alice)
    add_piece(upload.pk, CONTENT, owner=alice, offset=0, now=NOW)
    upload_path(upload.pk).unlink()
    os.link(blob_path(other.pk), upload_path(upload.pk))

    with pytest.raises(WrongHash) as refused:
        send(upload, offset=len(CONTENT))

    assert refused.value.found == ""
    assert blob_path(other.pk).read_bytes() == CONTENT + b"more"


@pytest.mark.parametrize("is_short", [False, True])
def test_a_content_that_the_disk_has_lost_is_told_and_can_be_sent_anew(
    alice: User, is_short: bool
) -> None:
    first = uploaded(alice)
    if is_short:
        os.truncate(blob_path(sha256(CONTENT)), 5)
    else:
        blob_path(sha256(CONTENT)).unlink()

    with pytest.raises(InvalidInput) as refused:
        contents_of_uploads(alice, {"big": first.pk}, now=NOW)
    second = begin(alice)

    assert "lost" in refused.value.findings[0].message
    assert (second.blob_id, second.received_bytes, second.counted_bytes) == (None, 0, len(CONTENT))
    assert content_of(send(second, CONTENT)) == CONTENT
    assert contents_of_uploads(alice, {"big": second.pk}, now=NOW)["big"].read() == CONTENT


def test_a_file_of_the_owner_that_the_disk_has_lost_can_be_sent_anew(alice: User) -> None:
    stored = store_bytes(CONTENT)
    create_workspace(alice, {"input": stored})
    blob_path(stored.pk).unlink()

    upload = begin(alice)

    assert upload.blob_id is None
    assert content_of(send(upload, CONTENT)) == CONTENT
