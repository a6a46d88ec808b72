from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from tests.stored_files import blob_path, stored_files
from wms.core.models import User
from wms.jobs.content import unnamed_contents
from wms.jobs.content.blobs import open_blob, store_bytes
from wms.jobs.models import Blob, Workspace, WorkspaceFile
from wms.jobs.operations import create_workspace

NOW = timezone.now()
LATER = NOW + timedelta(hours=25)


def marked(*contents: bytes) -> list[Blob]:
    stored = [store_bytes(content) for content in contents]
    assert unnamed_contents.mark_unnamed([each.pk for each in stored], now=NOW) == len(stored)
    return stored


def test_a_content_that_nothing_names_goes_a_day_after_that_was_found(db: None) -> None:
    [blob] = marked(b"alone")

    assert unnamed_contents.delete_unnamed(now=NOW + timedelta(hours=23)) == (0, 0)
    assert blob_path(blob.pk).exists()
    assert unnamed_contents.delete_unnamed(now=LATER) == (1, 5)
    assert not Blob.objects.exists()
    assert not blob_path(blob.pk).exists()


def test_a_content_that_is_named_is_never_marked(alice: User) -> None:
    blob = store_bytes(b"in use")
    create_workspace(alice, {"a": blob})

    assert unnamed_contents.mark_unnamed([blob.pk], now=NOW) == 0
    assert unnamed_contents.mark_next(now=NOW, after="") == ("", 0)


def test_a_content_that_is_named_again_loses_its_mark_and_stays(alice: User) -> None:
    [blob] = marked(b"again")
    create_workspace(alice, {"a": blob})

    assert unnamed_contents.delete_unnamed(now=LATER) == (0, 0)
    blob.refresh_from_db()
    assert blob.unnamed_since is None
    assert blob_path(blob.pk).exists()


@pytest.mark.django_db(transaction=True)
def test_an_upload_takes_the_mark_of_its_content_away() -> None:
    marked(b"again")

    blob = store_bytes(b"again")

    assert blob.unnamed_since is not None
    assert unnamed_contents.delete_unnamed(now=LATER) == (0, 0)
    assert Blob.objects.get().unnamed_since is None


@pytest.mark.django_db(transaction=True)
def test_an_upload_inside_a_transaction_keeps_its_content_until_the_end() -> None:
    marked(b"again")

    with transaction.atomic():
        blob = store_bytes(b"again")
        with ThreadPoolExecutor(1) as other:
            swept = other.submit(_in_own_session, unnamed_contents.delete_unnamed, now=LATER)
            assert swept.result() == (0, 0)

    assert blob_path(blob.pk).exists()


@pytest.mark.django_db(transaction=True)
def test_an_upload_that_waits_for_a_sweep_makes_row_and_file_anew() -> None:
    [blob] = marked(b"again")

    with ThreadPoolExecutor(1) as other:
        with transaction.atomic():
            assert unnamed_contents.delete_unnamed(now=LATER) == (1, 5)
            upload = other.submit(_in_own_session, store_bytes, b"again")
            _wait_until_somebody_waits()
        upload.result()

    with open_blob(blob.pk) as file:
        assert file.read() == b"again"
    assert Blob.objects.get().unnamed_since is None


def test_a_content_in_use_is_not_written_by_an_upload(
    db: None, django_assert_num_queries: Callable[..., object]
) -> None:
    store_bytes(b"")

    with django_assert_num_queries(1):
        store_bytes(b"")


def test_files_without_a_row_go_too_once_they_are_a_day_old(db: None) -> None:
    blob = store_bytes(b"stray")
    Blob.objects.all().delete()
    path, folder = blob_path(blob.pk), int(blob.pk[:2], 16)

    assert unnamed_contents.mark_strays(now=NOW, folder=folder) == 0
    os.utime(path, (0, 0))
    assert unnamed_contents.mark_strays(now=NOW, folder=folder + 1) == 0
    assert unnamed_contents.mark_strays(now=NOW, folder=folder + 256) == 1
    assert unnamed_contents.delete_unnamed(now=LATER) == (1, 5)
    assert not path.exists()


def test_a_walk_comes_to_every_content_in_portions(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unnamed_contents, "_LOOKED_AT", 2)
    keys = sorted(store_bytes(bytes([n])).pk for n in range(5))

    after, marks = unnamed_contents.mark_next(now=NOW, after="")
    assert (after, marks) == (keys[1], 2)
    after, marks = unnamed_contents.mark_next(now=NOW, after=after)
    assert (after, marks) == (keys[3], 2)
    assert unnamed_contents.mark_next(now=NOW, after=after) == ("", 1)


def test_every_foreign_key_to_contents_is_looked_at_and_can_be(db: None) -> None:
    """One without an index would read its table for each content, one without a constraint none."""
    relations = {
        f"{each.related_model._meta.label}.{each.field.name}": each.field
        for each in unnamed_contents.naming_relations()
    }

    assert {
        "jobs.AttemptFile.blob",
        "jobs.WorkspaceFile.blob",
        "dags.Rescue.blob",
        "dags.ScriptRun.output",
    } <= set(relations)
    assert _constraints_in_the_database() == len(relations)
    assert [name for name, field in relations.items() if not field.db_index] == []
    assert [name for name, field in relations.items() if not field.db_constraint] == []


def _constraints_in_the_database() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_constraint"
            " WHERE contype = 'f' AND confrelid = 'jobs_blob'::regclass"
        )
        return int(cursor.fetchone()[0])


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_uploads_and_sweeps_at_once_leave_every_named_content_in_its_place() -> None:
    alice = User.objects.create_user("alice")
    random.seed(7)
    contents = [b"%d" % n for n in range(12)]
    for turn in range(25):
        marked(*contents)
        workspace = create_workspace(alice, {})
        start = threading.Barrier(6)
        uploads = [random.sample(contents, 8) for _ in range(4)]
        with ThreadPoolExecutor(6) as pool:
            sweeps = [pool.submit(_in_own_session, _sweep, start) for _ in range(2)]
            loads = [
                pool.submit(
                    _in_own_session, _upload, start, workspace, n, each, is_atomic=bool(n % 2)
                )
                for n, each in enumerate(uploads)
            ]
            for each in [*sweeps, *loads]:
                each.result()

        named = {content for each in uploads for content in each}
        for file in WorkspaceFile.objects.filter(workspace=workspace):
            with open_blob(file.blob_id) as stored:
                assert stored.read() == file.path.split("/")[1].encode()
            named.discard(file.path.split("/")[1].encode())
        assert named == set()
        assert _files() == set(Blob.objects.values_list("pk", flat=True)), f"turn {turn}"
        WorkspaceFile.objects.all().delete()
        Blob.objects.update(unnamed_since=None)


def _files() -> set[str]:
    return set(stored_files())


def _sweep(start: threading.Barrier) -> None:
    start.wait()
    for _ in range(3):
        unnamed_contents.delete_unnamed(now=LATER)


def _upload(
    start: threading.Barrier,
    workspace: Workspace,
    number: int,
    contents: Collection[bytes],
    *,
    is_atomic: bool,
) -> None:
    start.wait()
    for content in contents:
        if is_atomic:
            with transaction.atomic():
                _name(workspace, number, content)
        else:
            _name(workspace, number, content)


def _name(workspace: Workspace, number: int, content: bytes) -> None:
    blob = store_bytes(content)
    path = f"{number}/{content.decode()}"
    WorkspaceFile.objects.create(workspace=workspace, path=path, blob=blob)


def _in_own_session(what: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    try:
        return what(*args, **kwargs)
    finally:
        connection.close()


def _wait_until_somebody_waits() -> None:
    ended = threading.Event()
    for _ in range(500):
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            if cursor.fetchone()[0]:
                return
        ended.wait(0.01)
    raise AssertionError("nobody waits")
