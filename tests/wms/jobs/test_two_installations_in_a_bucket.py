"""Two installations in one bucket, below a prefix each: neither touches what is the other's."""

from __future__ import annotations

import random
import secrets
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone

from portal.cli.content_moves import move_contents
from portal.config.buckets import blobs_s3
from tests.s3.server import S3Server
from tests.wms.jobs.uploads.sending import begin, content_of, send
from wms.core.models import User
from wms.core.storage.current import close_stores, current_store, folder_store, scratch_folder
from wms.core.storage.protocol import Growing
from wms.dags.trials.archives import sweep_archives
from wms.jobs.content import unnamed_contents
from wms.jobs.content.blobs import blob_key, open_blob, store_bytes
from wms.jobs.content.links import link_to_send
from wms.jobs.models import Blob
from wms.jobs.uploads.operations import sweep_uploads

pytestmark = [pytest.mark.django_db, pytest.mark.process]

LATER = timezone.now() + timedelta(days=150)


@pytest.fixture
def prefix(s3: S3Server, settings: Any, tmp_path: Path) -> Any:
    """A function that makes a prefix below that of the test the one in force."""
    own = f"two-{secrets.token_hex(4)}"

    def use(name: str) -> None:
        close_stores()
        changed = {
            "BLOBS_S3": s3.settings(f"{own}/{name}".strip("/")),
            "BLOBS_DIR": str(tmp_path / (name or "top")),
        }
        settings.PILOTAGE = settings.PILOTAGE | changed

    yield use
    close_stores()


def _fill() -> set[str]:
    """Objects of every kind, of which no row tells; their keys."""
    content = secrets.token_bytes(100)
    blob = store_bytes(content)
    Blob.objects.filter(pk=blob.pk).delete()
    store = current_store()
    keys = [f"sent/12/{blob.pk}", f"trials/{secrets.token_hex(16)}"]
    for key in keys:
        path = scratch_folder() / "file"
        path.write_bytes(content)
        store.put(key, path)
    store.append(Growing("uploads/07/7", 0, 64), content, at=0)
    store.append(Growing("streams/07/7.stdout", 64, 64), content, at=0)
    return _all()


def _all() -> set[str]:
    store = current_store()
    return {each.key for folder in store.folders() for each in store.listed(folder)}


def _sweep_everything(keys: set[str]) -> None:
    for folder in {key[:2] for key in keys if key[2] == "/"}:
        unnamed_contents.mark_strays(now=LATER, folder=int(folder, 16))
    unnamed_contents.delete_unnamed(now=LATER + timedelta(days=2))
    sweep_archives([], now=LATER)
    sweep_uploads(now=LATER)
    current_store().sweep(now=LATER)
    move_contents(current_store(), folder_store(), removes=True)


@pytest.mark.parametrize(("mine", "others"), [("", "b"), ("b", "")])
def test_what_one_sweeps_and_moves_is_its_own(prefix: Any, mine: str, others: str) -> None:
    prefix(others)
    theirs = _fill()
    prefix(mine)
    own = _fill()

    _sweep_everything(theirs | own)

    left = {key for key in _all() if key.split("/")[0] != others}
    assert left <= {"streams/07/7.stdout.00000000", "streams/07/7.stdout.00000001"}
    assert Blob.objects.count() == 0
    prefix(others)
    assert theirs <= _all()


def test_the_same_content_uploaded_to_both_is_kept_and_linked_below_each_prefix(
    prefix: Any, s3: S3Server, alice: User
) -> None:
    content = random.Random(3).randbytes(300)
    for name in ("a", "b"):
        prefix(name)
        Blob.objects.all().delete()
        upload = begin(alice, content)
        done = send(send(upload, content[:100]), content[100:], offset=100)

        key = blob_key(done.sha256)
        assert content_of(done) == content
        link = link_to_send(1, sha256=done.sha256, size_bytes=300)
        assert link is not None
        assert f"/{name}/sent/1/" in link.url
        assert f"/{name}/{key}?" in current_store().read_link(key).url
        upload.delete()
    unnamed_contents.mark_unnamed([done.sha256], now=LATER)
    unnamed_contents.delete_unnamed(now=LATER + timedelta(days=2))
    assert current_store().size_of(key) is None
    prefix("a")
    with open_blob(done.sha256) as stream:
        assert stream.read() == content


@pytest.mark.parametrize("word", ["sent", "x/ab", "uploads/x", "a//b", "../x", "a b"])
def test_a_prefix_that_another_may_take_for_its_own_folder_is_refused(
    word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PILOTAGE_BLOBS_S3_PREFIX", word)

    with pytest.raises(ImproperlyConfigured):
        blobs_s3()


def test_slashes_around_a_prefix_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PILOTAGE_BLOBS_S3_PREFIX", "/cms/portal-2/")

    assert blobs_s3()["PREFIX"] == "cms/portal-2"
