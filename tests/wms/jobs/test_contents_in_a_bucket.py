"""Contents in a bucket follow the same rules: uploads, growing output, contents without names."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from matching.task_queues.needs import Needs
from matching.task_queues.resources import Resource
from tests.stored_files import stored_files
from tests.wms.jobs.uploads.sending import begin, content_of, send
from wms.core.actors import Actor
from wms.core.models import User
from wms.core.storage.current import current_store
from wms.jobs import operations
from wms.jobs.content import unnamed_contents
from wms.jobs.content.blobs import is_stored, known_content, open_blob, read_tail, store_bytes
from wms.jobs.models import Attempt, Blob, Stream
from wms.jobs.output import streams
from wms.jobs.output.streams import append_to_stream, stream_text, tail_of
from wms.jobs.output.texts import chunks_of
from wms.jobs.specs import JobSpec
from wms.jobs.uploads import digests, places
from wms.taskqueues.operations import claim

pytestmark = [pytest.mark.django_db, pytest.mark.process, pytest.mark.usefixtures("bucket")]

NOW = timezone.now()
KIB = 1024


def keys(folder: str) -> list[str]:
    return sorted(each.key for each in current_store().listed(folder))


def in_five_months() -> datetime:
    return NOW + timedelta(days=150)


def test_a_content_is_kept_once_and_nothing_of_it_on_this_host() -> None:
    first, second = store_bytes(b"ab" * 100), store_bytes(b"ab" * 100)

    with open_blob(first.pk) as stream:
        assert stream.read() == b"ab" * 100
    assert first.pk == second.pk
    assert is_stored(first)
    assert known_content(first).read() == b"ab" * 100
    assert read_tail(first.pk, limit_bytes=4) == "abab"
    assert keys(first.pk[:2]) == [f"{first.pk[:2]}/{first.pk}"]
    assert stored_files() == []


def test_what_nothing_names_goes_and_objects_without_rows_are_found() -> None:
    blob, stray = store_bytes(b"alone"), store_bytes(b"stray")
    Blob.objects.filter(pk=stray.pk).delete()

    unnamed_contents.mark_unnamed([blob.pk], now=NOW)
    folder = int(stray.pk[:2], 16)
    assert unnamed_contents.mark_strays(now=NOW, folder=folder) == 0
    assert unnamed_contents.mark_strays(now=in_five_months(), folder=folder) == 1
    later = in_five_months() + timedelta(days=2)

    assert unnamed_contents.delete_unnamed(now=later) == (2, 10)
    assert keys(blob.pk[:2]) == keys(stray.pk[:2]) == []


def test_an_upload_is_put_together_of_pieces_that_hosts_without_a_shared_disk_took(
    alice: User, monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path
) -> None:
    monkeypatch.setattr(places, "_OBJECT_BYTES", 64 * KIB)
    content = random.Random(1).randbytes(60 * KIB)
    upload = begin(alice, content)

    send(upload, content[: 25 * KIB], length=40 * KIB)
    # Another host knows nothing of what went before.
    settings.PILOTAGE = settings.PILOTAGE | {"BLOBS_DIR": str(tmp_path / "other")}
    digests.forget(upload)
    done = send(upload, content[25 * KIB :], offset=25 * KIB)

    assert content_of(done) == content
    assert done.blob_id == upload.sha256


@pytest.fixture
def attempt(alice: User) -> Attempt:
    spec = JobSpec(name="run", executable="/bin/true", needs=Needs.of("alice"))
    workspace = operations.create_workspace(alice, {})
    operations.submit_jobs([spec], owner=alice, workspace=workspace, actor=Actor.person(alice))
    claimed = claim(Resource("site-a", cpu_time_s=10**6))
    assert claimed is not None
    made = operations.bind_to_pilot(
        claimed, pilot_id=7, site_name="site-a", host="n", free_cores=1, actor=Actor.pilot("p")
    )
    assert made is not None
    return made


def test_output_grows_its_end_is_read_and_all_of_it_goes(attempt: Attempt) -> None:
    def print_more(content: bytes, *, offset: int) -> int:
        return append_to_stream(
            attempt.job_id, attempt.number, pilot_id=7, kind="stdout", offset=offset,
            content=content, now=NOW,
        )  # fmt: skip

    lines = b"".join(b"%07d\n" % number for number in range(20_000))
    assert print_more(lines[:10], offset=0) == 10
    assert print_more(lines[10 : 90 * KIB], offset=10) == 90 * KIB
    assert print_more(lines[10 : 20 * KIB], offset=10) == 90 * KIB
    assert print_more(lines[90 * KIB :], offset=90 * KIB) == len(lines)

    text = stream_text(Stream.objects.get())
    assert b"".join(chunks_of(text, 100_000)) == lines
    assert tail_of(text, limit_bytes=16) == "0019998\n0019999\n"

    Attempt.objects.update(outcome="done", ended_at=NOW - timedelta(days=31))
    assert streams.sweep_streams(now=NOW) == 1
    assert keys("streams") == []
