from __future__ import annotations

import hashlib
import io
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.stored_files import blob_path, stored_files
from wms.core.conf import conf
from wms.core.errors import InvalidInput, NotFound, TooLarge
from wms.core.storage.current import folder_store
from wms.jobs.content.blobs import open_blob, read_tail, store_bytes, store_stream
from wms.jobs.models import Blob

pytestmark = pytest.mark.django_db


def test_equal_contents_are_kept_once() -> None:
    first, second = store_bytes(b"same"), store_stream(io.BytesIO(b"same"), limit_bytes=10)

    assert first.sha256 == second.sha256 == hashlib.sha256(b"same").hexdigest()
    assert stored_files() == [first.sha256]
    with open_blob(first.sha256) as file:
        assert file.read() == b"same"


def test_a_content_over_the_limit_leaves_nothing_behind() -> None:
    with pytest.raises(TooLarge):
        store_stream(io.BytesIO(b"x" * 11), limit_bytes=10)

    assert stored_files() == []
    assert not Blob.objects.exists()


def test_a_content_with_another_hash_leaves_nothing_behind() -> None:
    with pytest.raises(InvalidInput, match="SHA-256"):
        store_stream(io.BytesIO(b"x"), limit_bytes=10, expected_sha256="0" * 64)

    assert stored_files() == []


def test_the_end_of_a_content_is_read_as_text_whatever_it_is() -> None:
    blob = store_bytes(b"\xff\x00" + b"ab" * 100)

    assert read_tail(blob.sha256, limit_bytes=4) == "abab"
    assert len(read_tail(blob.sha256, limit_bytes=10**6)) == 202


def test_broken_uploads_are_swept_after_a_day() -> None:
    store_bytes(b"whole")
    broken = conf().blobs_dir / "incoming" / "tmpabc"
    broken.write_bytes(b"half")

    assert folder_store().sweep(now=timezone.now() + timedelta(hours=23)) == 0
    assert folder_store().sweep(now=timezone.now() + timedelta(hours=25)) == 1
    assert len(stored_files()) == 1


def test_a_file_that_comes_to_its_end_during_a_sweep_keeps_no_other_from_being_swept() -> None:
    store_bytes(b"whole")
    gone, broken = (conf().blobs_dir / "incoming" / name for name in ("tmp1", "tmp2"))
    # As a name that is listed, and is not there when it is looked at.
    gone.symlink_to("nothing")
    broken.write_bytes(b"half")

    assert folder_store().sweep(now=timezone.now() + timedelta(hours=25)) == 1
    assert not broken.exists()
    gone.unlink()


def test_a_content_that_is_lost_is_not_found() -> None:
    blob = store_bytes(b"x")
    blob_path(blob.sha256).unlink()

    with pytest.raises(NotFound):
        open_blob(blob.sha256)
