"""Small files are granted several at a time: few statements and connections, and no unfairness."""

from __future__ import annotations

import errno
import os
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.factories import SYSTEM
from tests.wms.placement.servers.http import http_server
from wms.core.models import InboxEntry
from wms.jobs.content.blobs import store_bytes
from wms.jobs.operations import create_workspace
from wms.placement import grants, operations, runner
from wms.placement import services as by_people
from wms.placement.conf import placement_conf
from wms.placement.models import PlacementAttempt, PlacementEvent, PlacementRequest
from wms.placement.modules import built_in
from wms.placement.modules.kept import FoldersToSync
from wms.placement.modules.protocol import TransferResult
from wms.placement.modules.streaming import Reading
from wms.placement.storages.services import StorageSpec, create_storage
from wms.placement.submission import submit_requests

pytestmark = pytest.mark.django_db


def _submit(owner, source: str, target: Path, count: int, more: str = "") -> list[int]:
    text = "".join(
        f'[dap_type = "transfer"; src_url = "{source}"; dest_url = "file://{target}/{n}"; {more}]'
        for n in range(count)
    )
    return by_people.submit_requests(text, actor=SYSTEM, owner=owner).ids


def _states(ids: list[int]) -> list[str]:
    found = dict(PlacementRequest.objects.values_list("pk", "state"))
    return [found[pk] for pk in ids]


def test_many_files_come_by_few_connections_each_with_its_own_attempt(alice, pool: Path) -> None:
    with http_server() as site:
        site.files["/x"], site.keeps = b"content", True
        ids = _submit(alice, site.url("/x"), pool, 40)
        assert runner.run_due() == 40

    assert set(_states(ids)) == {"completed"}
    assert {each.read_bytes() for each in pool.iterdir()} == {b"content"}
    assert site.connections < 10
    attempts = PlacementAttempt.objects.filter(request__in=ids)
    assert attempts.filter(exit_code=0, size_bytes=7, number=1).count() == 40
    events = PlacementEvent.objects.filter(request__in=ids).order_by("pk")
    assert list(events.filter(request=ids[-1]).values_list("event", flat=True)) == [
        "start", "complete",
    ]  # fmt: skip


def test_more_files_take_no_more_statements(alice, pool: Path) -> None:
    (pool / "x").write_bytes(b"content")
    counts = []
    for count in (4, 16):
        ids = _submit(alice, f"file://{pool}/x", pool, count)
        with CaptureQueriesContext(connection) as statements:
            granted = operations.take_requests(timezone.now(), most=count)
            runner.Grant(granted, placement_conf()).run()
        assert set(_states(ids)) == {"completed"}
        counts.append(len(statements))

    assert counts[0] == counts[1]


def test_one_that_takes_long_gives_back_what_was_granted_with_it(
    alice, pool: Path, monkeypatch
) -> None:
    monkeypatch.setattr(runner, "_LONG_S", -1)
    (pool / "x").write_bytes(b"content")
    ids = _submit(alice, f"file://{pool}/x", pool, 3)
    granted = operations.take_requests(timezone.now(), most=3)

    assert runner.Grant(granted, placement_conf()).run() == 1

    assert _states(ids) == ["completed", "received", "received"]
    given_back = PlacementRequest.objects.get(pk=ids[1])
    assert given_back.attempt_number == 0
    assert not given_back.attempts.exists()
    again = operations.take_request(timezone.now())
    assert again is not None
    assert (again.request_id, again.number) == (ids[1], 1)


def test_what_was_removed_meanwhile_is_neither_completed_nor_given_back(alice, pool: Path) -> None:
    (pool / "x").write_bytes(b"content")
    ids = _submit(alice, f"file://{pool}/x", pool, 4)
    granted = operations.take_requests(timezone.now(), most=4)
    operations.remove_requests([ids[1], ids[3]], actor=SYSTEM, reason="enough")

    assert grants.give_back(granted[2:]) == [ids[2]]
    runner.Grant(granted[:2], placement_conf()).run()

    assert _states(ids) == ["completed", "removed", "received", "removed"]


def test_what_was_removed_before_its_turn_is_not_begun(alice, pool: Path, monkeypatch) -> None:
    monkeypatch.setattr(runner, "_RENEWED_S", -1)
    (pool / "x").write_bytes(b"content")
    ids = _submit(alice, f"file://{pool}/x", pool, 3)
    granted = operations.take_requests(timezone.now() - timedelta(minutes=5), most=3)
    operations.remove_requests([ids[1]], actor=SYSTEM, reason="enough")

    assert runner.Grant(granted, placement_conf()).run() == 2

    assert sorted(each.name for each in pool.iterdir()) == ["0", "2", "x"]
    leases = PlacementAttempt.objects.filter(exit_code=0).values_list("lease_until", flat=True)
    assert all(each > timezone.now() for each in leases)


def test_an_end_that_the_database_refuses_spoils_no_other_one(
    alice, pool: Path, monkeypatch
) -> None:
    def write(reading: Reading) -> TransferResult:
        size = len(b"".join(reading))
        return TransferResult(2**70 if reading.task.destination_url.endswith("/0") else size)

    monkeypatch.setitem(built_in.WRITERS, "file", write)
    (pool / "x").write_bytes(b"content")
    ids = _submit(alice, f"file://{pool}/x", pool, 3)

    runner.Grant(operations.take_requests(timezone.now(), most=3), placement_conf()).run()

    assert _states(ids) == ["rescheduled", "completed", "completed"]


def test_a_limit_is_shared_and_what_is_known_to_be_large_is_granted_alone(
    alice, pool: Path
) -> None:
    create_storage(StorageSpec("far", ["https://far.example/"], max_transfers=16), actor=SYSTEM)
    limited = _submit(alice, "https://far.example/x", pool, 5)
    now = timezone.now()
    first = operations.take_requests(now, most=32)
    assert [each.request_id for each in first] == limited[:2]

    operations.remove_requests(limited, actor=SYSTEM, reason="enough")
    small = _submit(alice, f"file://{pool}/x", pool, 2)
    large = _submit(alice, f"file://{pool}/x", pool, 2, 'size = "2MB"')
    taken = [operations.take_requests(now, most=32) for _ in range(3)]

    assert [[each.request_id for each in some] for some in taken] == [small, large[:1], large[1:]]


def test_files_of_one_text_that_end_together_are_announced_once(alice) -> None:
    workspace = create_workspace(alice, {"x": store_bytes(b"content")})
    text = "".join(
        f'[dap_type = "transfer"; src_url = "file:x"; dest_url = "file:{n}"]' for n in (1, 2, 2)
    )
    ids = submit_requests(
        text, workspace=workspace, directory="", owner=alice, topic="dag-data", topic_key=7,
        actor=SYSTEM,
    )  # fmt: skip

    granted = operations.take_requests(timezone.now(), most=3)
    runner.Grant(granted, placement_conf()).run()

    assert set(_states(ids)) == {"completed"}
    assert InboxEntry.objects.get().subject_id == ids[0]
    assert set(workspace.files.values_list("path", flat=True)) == {"x", "1", "2"}


def test_each_folder_of_a_grant_is_written_to_the_disk_once(tmp_path: Path) -> None:
    folders, held = FoldersToSync(), len(os.listdir("/proc/self/fd"))
    descriptor = os.open(tmp_path, os.O_RDONLY)
    for _ in range(3):
        folders.add(descriptor)
    os.close(descriptor)
    assert len(os.listdir("/proc/self/fd")) == held + 1

    folders.sync()
    assert len(os.listdir("/proc/self/fd")) == held


def test_ends_are_not_told_of_files_whose_folder_is_not_on_the_disk(
    alice, pool: Path, monkeypatch
) -> None:
    def fails(_) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(FoldersToSync, "sync", fails)
    (pool / "x").write_bytes(b"content")
    ids = _submit(alice, f"file://{pool}/x", pool, 2)
    assert runner.run_due() == 2

    assert _states(ids) == ["rescheduled", "rescheduled"]
    attempts = PlacementAttempt.objects.filter(request__in=ids)
    assert set(attempts.values_list("exit_code", flat=True)) == {1}


def test_a_folder_that_is_not_on_the_disk_spoils_all_that_wait_for_it(
    alice, pool: Path, monkeypatch
) -> None:
    real, faults = FoldersToSync.sync, [OSError(errno.EIO, "Input/output error")]

    def fails_once(folders: FoldersToSync) -> None:
        if faults:
            folders.forget()
            raise faults.pop()
        real(folders)

    monkeypatch.setattr(FoldersToSync, "sync", fails_once)
    workspace = create_workspace(alice, {"x": store_bytes(b"content")})
    text = (
        f'[dap_type = "transfer"; src_url = "file:x"; dest_url = "file://{pool}/x"]'
        '[dap_type = "remove"; src_url = "file:x"]'
    )
    ids = submit_requests(
        text, workspace=workspace, directory="", owner=alice, topic="dag-data", topic_key=7,
        actor=SYSTEM,
    )  # fmt: skip
    runner.Grant(operations.take_requests(timezone.now(), most=2), placement_conf()).run()

    assert _states(ids) == ["rescheduled", "rescheduled"]
