from __future__ import annotations

import io
import os
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factories import SYSTEM, person
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
from wms.accounting.models import Quota
from wms.accounting.services import save_quota
from wms.core.actors import Actor
from wms.core.errors import InvalidInput, NotFound, NotPermitted, QuotaExceeded, TooLarge
from wms.core.known_contents import KnownContent
from wms.core.models import AuditEntry, Role, User
from wms.core.storage.contents import FileContent
from wms.jobs.clusters.submit import ClusterSubmission, submit_cluster
from wms.jobs.content.blobs import store_bytes
from wms.jobs.content.unnamed_contents import mark_unnamed
from wms.jobs.models import Blob, ResumableUpload, WorkspaceFile
from wms.jobs.operations import create_workspace
from wms.jobs.quotas import Holder, usage_of
from wms.jobs.uploads import digests
from wms.jobs.uploads.operations import OffsetMismatch, WrongHash, add_piece, sweep_uploads
from wms.jobs.uploads.selectors import contents_of_uploads, find_upload
from wms.jobs.uploads.services import begin_upload, cancel_upload


@pytest.fixture
def bob(db: None) -> User:
    return person("bob")


def used_bytes(user: User) -> int:
    return usage_of(Holder(user)).size_bytes


def submit(owner: User, upload: ResumableUpload, *, key: str | None = None) -> bool:
    files = contents_of_uploads(owner, {"data/big": upload.pk}, now=NOW)
    submission = ClusterSubmission(
        "executable = /bin/true\ntransfer_input_files = data/big\nqueue 1\n",
        files=files,
        idempotency_key=key,
    )
    return submit_cluster(submission, owner=owner, actor=Actor.person(owner)).is_new


def test_pieces_become_a_content_that_the_upload_names(alice: User) -> None:
    upload = begin(alice)

    assert send(upload, CONTENT[:100], CONTENT[100:1000]).received_bytes == 1000
    assert ResumableUpload.objects.get().blob is None
    done = send(upload, CONTENT[1000:], offset=1000)

    assert done.blob_id == sha256(CONTENT)
    assert content_of(done) == CONTENT
    assert mark_unnamed([done.sha256], now=NOW) == 0


@pytest.mark.parametrize("offset", [0, 5, 20, 10**14])
def test_a_piece_elsewhere_than_at_the_end_adds_nothing(alice: User, offset: int) -> None:
    upload = send(begin(alice), CONTENT[:10])

    with pytest.raises(OffsetMismatch) as refused:
        add_piece(upload.pk, b"x", owner=alice, offset=offset, now=NOW)

    assert (refused.value.expected, refused.value.provided) == (10, offset)
    assert find_upload(alice, upload.pk, now=NOW).received_bytes == 10


def test_a_piece_that_was_written_but_not_counted_is_written_over(alice: User) -> None:
    upload = send(begin(alice), CONTENT[:10])
    # A process that is killed before its commit leaves this.
    with upload_path(upload.pk).open("r+b") as file:
        file.seek(10)
        file.write(b"?" * 500)

    done = send(upload, CONTENT[10:], offset=10)

    assert content_of(done) == CONTENT


def test_two_clients_at_one_upload_take_turns_and_add_each_byte_once(alice: User) -> None:
    upload, others = begin(alice), begin(alice)
    send(upload, CONTENT[:300])

    with pytest.raises(OffsetMismatch) as behind:
        send(upload, CONTENT[:200])
    done = send(upload, CONTENT[300:], offset=behind.value.expected)

    assert content_of(done) == CONTENT
    # A third one that asks for the same is told that it is there.
    assert begin(alice).pk == done.pk
    assert others.pk != done.pk


def test_a_sender_that_breaks_off_has_sent_what_came(alice: User) -> None:
    upload = send(begin(alice), CONTENT[:70], length=len(CONTENT))

    assert (upload.received_bytes, upload.blob_id) == (70, None)


def test_more_than_was_announced_is_refused_before_it_is_read(alice: User) -> None:
    upload = begin(alice)

    with pytest.raises(TooLarge):
        send(upload, CONTENT, b"x")
    with pytest.raises(TooLarge):
        add_piece(upload.pk, CONTENT + b"x", owner=alice, offset=0, now=NOW)

    assert find_upload(alice, upload.pk, now=NOW).received_bytes == 0


def test_another_content_is_refused_with_both_hashes_and_the_upload_is_gone(
    alice: User, django_capture_on_commit_callbacks: Any
) -> None:
    upload, other = begin(alice), b"!" + CONTENT[1:]

    with django_capture_on_commit_callbacks(execute=True), pytest.raises(WrongHash) as refused:
        send(upload, other)

    assert (refused.value.expected, refused.value.found) == (sha256(CONTENT), sha256(other))
    assert not ResumableUpload.objects.exists()
    assert not Blob.objects.exists()
    assert not upload_path(upload.pk).exists()


def test_an_end_that_a_killed_process_did_not_come_to_is_made_by_the_next_one(alice: User) -> None:
    upload = begin(alice)
    add_piece(upload.pk, CONTENT, owner=alice, offset=0, now=NOW)

    assert find_upload(alice, upload.pk, now=NOW).blob_id is None
    assert send(upload, offset=len(CONTENT)).blob_id == sha256(CONTENT)


def test_bytes_that_the_disk_has_lost_are_found_out(alice: User) -> None:
    upload = begin(alice)
    add_piece(upload.pk, CONTENT, owner=alice, offset=0, now=NOW)
    os.truncate(upload_path(upload.pk), 50)

    with pytest.raises(WrongHash):
        send(upload, offset=len(CONTENT))


@given(cuts=st.sets(st.integers(1, 99)), seen=st.sets(st.integers(0, 99)))
def test_a_digest_is_right_whichever_pieces_a_process_saw(
    cuts: set[int], seen: set[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    content, upload = CONTENT[:100], ResumableUpload(pk=1, created_at=NOW, size_bytes=100)
    digests.forget(upload)
    borders = [0, *sorted(cuts), 100]
    upload_path(1).parent.mkdir(parents=True, exist_ok=True)
    upload_path(1).write_bytes(content)

    for number, (start, end) in enumerate(pairwise(borders)):
        if number not in seen:
            digests.note_piece(upload, start, content[start:end])

    assert digests.digest_of(upload) == sha256(content)
    digests.forget(upload)
    upload_path(1).unlink()


def test_what_the_owner_has_already_needs_no_bytes(alice: User) -> None:
    create_workspace(alice, {"input": store_bytes(CONTENT)})

    upload = begin(alice)

    assert upload.blob_id == sha256(CONTENT)
    assert used_bytes(alice) == len(CONTENT)


def test_to_know_a_hash_gives_no_access_to_what_others_have(alice: User, bob: User) -> None:
    create_workspace(bob, {"secret": store_bytes(CONTENT)})
    uploaded(bob, b"another secret")

    assert begin(alice).blob_id is None
    assert begin(alice, b"another secret").blob_id is None


def test_a_wrong_size_of_what_the_owner_has_gives_nothing(alice: User) -> None:
    create_workspace(alice, {"input": store_bytes(CONTENT)})

    begun = begin_upload(
        sha256=sha256(CONTENT), size_bytes=5, owner=alice, actor=Actor.person(alice), now=NOW
    )

    assert begun.upload.blob_id is None


def test_a_submission_takes_an_upload_which_counts_once_and_is_kept_for_a_repetition(
    alice: User,
) -> None:
    save_quota(Quota(user=alice, max_bytes=len(CONTENT) + 1000), actor=SYSTEM)
    upload = uploaded(alice)
    assert used_bytes(alice) == len(CONTENT)

    assert submit(alice, upload, key="k")
    assert not submit(alice, upload, key="k")

    assert WorkspaceFile.objects.get(path="data/big").blob_id == sha256(CONTENT)
    assert used_bytes(alice) == len(CONTENT)


def test_a_used_upload_that_is_asked_for_again_counts_again_when_its_use_is_over(
    alice: User,
) -> None:
    upload = uploaded(alice)
    submit(alice, upload)

    again = begin(alice)
    assert (again.pk, again.counted_bytes) == (upload.pk, 0)
    WorkspaceFile.objects.all().delete()
    again = begin(alice)

    assert (again.pk, again.counted_bytes) == (upload.pk, len(CONTENT))
    assert used_bytes(alice) >= len(CONTENT)


def test_a_used_upload_is_not_kept_for_longer_without_room(alice: User) -> None:
    upload = uploaded(alice)
    ResumableUpload.objects.update(counted_bytes=0, expires_at=NOW + timedelta(seconds=1))
    save_quota(Quota(user=alice, max_bytes=len(CONTENT) - 1), actor=SYSTEM)

    with pytest.raises(QuotaExceeded):
        begin(alice)

    upload.refresh_from_db()
    assert (upload.counted_bytes, upload.expires_at) == (0, NOW + timedelta(seconds=1))


def test_an_upload_counts_for_the_quota_from_its_beginning(alice: User) -> None:
    save_quota(Quota(user=alice, max_bytes=len(CONTENT)), actor=SYSTEM)
    begin(alice)

    with pytest.raises(QuotaExceeded) as refused:
        begin(alice, b"x")

    assert (refused.value.limit, refused.value.used, refused.value.asked) == (10240, 10240, 1)


def test_the_number_of_uploads_that_wait_is_limited(alice: User, bob: User, settings: Any) -> None:
    settings.PILOTAGE = {**settings.PILOTAGE, "MAX_OPEN_UPLOADS": 1}
    first = uploaded(alice)

    with pytest.raises(QuotaExceeded):
        begin(alice, b"x")
    begin(bob, b"x")
    submit(alice, first)

    begin(alice, b"x")


@pytest.mark.parametrize(
    ("digest", "size_bytes"),
    [("", 1), ("g" * 64, 1), ("0" * 63, 1), ("0" * 64, 0), ("0" * 64, -1), ("0" * 64, 10**15)],
)
def test_an_upload_needs_a_sha256_and_a_size(alice: User, digest: str, size_bytes: int) -> None:
    with pytest.raises(InvalidInput):
        begin_upload(
            sha256=digest, size_bytes=size_bytes, owner=alice, actor=Actor.person(alice), now=NOW
        )

    assert not ResumableUpload.objects.exists()


def test_an_upload_is_its_owners_alone(alice: User, bob: User) -> None:
    upload = uploaded(alice)

    for ask in (
        lambda: find_upload(bob, upload.pk, now=NOW),
        lambda: add_piece(upload.pk, b"", owner=bob, offset=0, now=NOW),
        lambda: cancel_upload(upload.pk, owner=bob, actor=Actor.person(bob), now=NOW),
    ):
        with pytest.raises(NotFound):
            ask()
    with pytest.raises(InvalidInput):
        contents_of_uploads(bob, {"a": upload.pk}, now=NOW)


def test_files_of_unknown_foreign_incomplete_and_expired_uploads_are_named(
    alice: User, bob: User
) -> None:
    late = uploaded(alice, b"late")
    ResumableUpload.objects.filter(pk=late.pk).update(expires_at=NOW)
    ids = {
        "good": uploaded(alice).pk,
        "unknown": 10**9,
        "foreign": uploaded(bob).pk,
        "incomplete": begin(alice, b"x").pk,
        "expired": late.pk,
    }

    with pytest.raises(InvalidInput) as refused:
        contents_of_uploads(alice, ids, now=NOW)

    assert [each.file for each in refused.value.findings] == [
        "unknown", "foreign", "incomplete", "expired",
    ]  # fmt: skip


def test_a_cancelled_upload_is_gone_with_its_bytes(
    alice: User, django_capture_on_commit_callbacks: Any
) -> None:
    upload = send(begin(alice), CONTENT[:10])

    with django_capture_on_commit_callbacks(execute=True):
        cancel_upload(upload.pk, owner=alice, actor=Actor.person(alice), now=NOW)

    assert not ResumableUpload.objects.exists()
    assert not upload_path(upload.pk).exists()
    assert used_bytes(alice) == 0
    actions = AuditEntry.objects.filter(target=f"upload {upload.pk}").values_list("action")
    assert {action for (action,) in actions} == {"begin upload", "cancel upload"}


def test_uploads_expire_and_files_that_nobody_knows_go(
    alice: User, django_capture_on_commit_callbacks: Any
) -> None:
    upload, whole = send(begin(alice), CONTENT[:10]), uploaded(alice, b"whole")
    lost = upload_path(10**9)
    lost.parent.mkdir(parents=True, exist_ok=True)
    lost.write_bytes(b"lost")
    os.utime(lost, (0, 0))

    with django_capture_on_commit_callbacks(execute=True):
        assert sweep_uploads(now=NOW + timedelta(hours=23)) == 1
        assert sweep_uploads(now=NOW + timedelta(hours=25)) == 2

    assert not ResumableUpload.objects.exists()
    assert not [each for each in (lost, upload_path(upload.pk)) if each.exists()]
    assert mark_unnamed([whole.sha256], now=NOW) == 1


def test_a_piece_prolongs_an_upload(alice: User) -> None:
    upload = begin(alice)
    later = NOW + timedelta(hours=23)

    add_piece(upload.pk, CONTENT[:10], owner=alice, offset=0, now=later)

    assert sweep_uploads(now=NOW + timedelta(hours=25)) == 0


def test_who_may_not_submit_may_not_upload(alice: User) -> None:
    alice.role = Role.VIEWER
    alice.save(update_fields=["role"])

    with pytest.raises(NotPermitted):
        begin(alice)


def test_a_known_content_is_a_stream_that_holds_no_file_open(alice: User) -> None:
    stored = store_bytes(CONTENT)
    stream = KnownContent(
        FileContent(blob_path(stored.pk)), size_bytes=len(CONTENT), sha256=stored.pk, upload_id=1
    )
    before = len(os.listdir("/proc/self/fd"))

    assert stream.read(10) == CONTENT[:10]
    assert stream.seek(0, io.SEEK_END) == len(CONTENT)
    assert stream.seek(-3, io.SEEK_CUR) == len(CONTENT) - 3
    assert stream.read() == CONTENT[-3:]
    assert len(os.listdir("/proc/self/fd")) == before
