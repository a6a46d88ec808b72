"""Owners of stores: two installations never write to one store, whoever is first."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from portal.selftest.registry import store_of_contents
from tests.stored_files import stored_files
from wms.core.models import AuditEntry
from wms.core.storage.current import current_store, named_store, writable_store
from wms.core.storage.owners import (
    LEFT,
    OWNER,
    StoreLeft,
    StoreOfOthers,
    claim,
    forget_marks,
    owner_of,
    take_over,
    this_installation,
)
from wms.core.storage.protocol import ObjectStore
from wms.dags.trials.archives import sweep_archives
from wms.jobs.content.blobs import is_stored, store_bytes
from wms.jobs.content.unnamed_contents import delete_unnamed
from wms.jobs.models import Blob
from wms.jobs.output.streams import sweep_streams
from wms.pilots.protocol.logs import sweep_logs

pytestmark = [pytest.mark.django_db, pytest.mark.process]

_OTHER = json.dumps({"id": "7-1", "address": "https://other.example"}).encode()


@pytest.fixture(params=["folder", "bucket"])
def store(request: pytest.FixtureRequest) -> ObjectStore:
    if request.param == "bucket":
        request.getfixturevalue("bucket")
    forget_marks()
    return named_store()


def codes() -> list[str]:
    return [each.code for each in store_of_contents()]


def test_of_many_who_mark_a_store_at_once_one_has_it_for_good(store: ObjectStore) -> None:
    contents = [b"%d" % number for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        written = list(pool.map(lambda content: store.put_new(OWNER, content), contents))

    # Not all servers do it in one step: whoever reads it again sees who is left.
    assert written.count(True) == 1 or store.has_links
    kept = store.read(OWNER, 0, 10)
    assert kept in contents
    assert not store.put_new(OWNER, b"late")
    assert store.read(OWNER, 0, 10) == kept


def test_what_is_written_first_marks_the_store_and_others_write_nothing_there(
    store: ObjectStore,
) -> None:
    assert owner_of(store) is None
    assert codes() == ["contents"]
    assert owner_of(store) == this_installation()

    store.delete([OWNER])
    store.put_new(OWNER, _OTHER)
    forget_marks()

    with pytest.raises(StoreOfOthers):
        store_bytes(b"of nobody")
    assert not is_stored(Blob(sha256="0" * 64, size_bytes=9))
    assert set(current_store().folders()) <= {"incoming", "self-test"}
    assert codes() == ["contents-of-others"]


def test_a_store_is_taken_over_by_a_command_with_a_reason(store: ObjectStore) -> None:
    store.put_new(OWNER, _OTHER)
    store.put_new(LEFT, b"elsewhere")
    said = StringIO()

    call_command("take_store", stdout=said)
    with pytest.raises(CommandError):
        call_command("take_store", "--take-over")
    assert "https://other.example" in said.getvalue()
    assert owner_of(store) != this_installation()

    call_command("take_store", "--take-over", "--reason", "restored", stdout=said)
    assert owner_of(store) == this_installation()
    assert is_stored(store_bytes(b"kept"))
    assert AuditEntry.objects.get(action="take store over").reason == "restored"


def test_a_mark_that_cannot_be_read_is_nobodys(store: ObjectStore) -> None:
    store.put_new(OWNER, b"{")

    with pytest.raises(StoreOfOthers):
        claim(store)
    take_over(store)
    claim(store)


def test_nothing_is_written_to_a_store_that_was_left(store: ObjectStore) -> None:
    claim(store)
    store.put_new(LEFT, b"elsewhere")

    with pytest.raises(StoreLeft):
        writable_store()
    assert codes() == ["contents-left"]
    # Nothing is removed there, so nothing is asked.
    now = timezone.now()
    assert (sweep_logs(now=now), sweep_streams(now=now), sweep_archives([], now=now)) == (0, 0, 0)
    assert delete_unnamed(now=now) == (0, 0)
    # Only a move back opens it again.
    with pytest.raises(CommandError):
        call_command("take_store", "--take-over", "--reason", "once more")
    assert stored_files() in ([], [LEFT])
