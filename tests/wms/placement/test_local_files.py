from __future__ import annotations

import hashlib
import os
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote

import pytest
from django.utils import timezone

from tests.factories import SYSTEM
from tests.stored_files import blob_path
from wms.jobs.content.blobs import open_blob, store_bytes
from wms.jobs.models import WorkspaceFile
from wms.jobs.operations import create_workspace
from wms.placement import operations as services
from wms.placement import runner
from wms.placement.conf import placement_conf
from wms.placement.models import PlacementAttempt, PlacementRequest
from wms.placement.modules.protocol import TIME_IS_OVER
from wms.placement.submission import submit_requests

pytestmark = pytest.mark.django_db

X = b"some content\n" * 1000


@pytest.fixture
def pool(tmp_path: Path, settings) -> Path:
    """A folder that is listed for placements."""
    folder = tmp_path / "pool"
    folder.mkdir()
    configure(settings, ROOTS=[str(folder)])
    return folder


def configure(settings, **values) -> None:
    settings.PILOTAGE = settings.PILOTAGE | {"PLACEMENT": settings.PILOTAGE["PLACEMENT"] | values}


@pytest.fixture
def place(alice):
    """Carry out one attempt of a transfer; the attempt, and its request."""

    def make(source: str, destination: str, more: str = "", **files: bytes):
        blobs = {path.replace("__", "/"): store_bytes(data) for path, data in files.items()}
        ad = f'dap_type = "transfer"\nsrc_url = "{source}"\ndest_url = "{destination}"\n{more}'
        [pk] = submit_requests(
            ad, workspace=create_workspace(alice, blobs), directory="run", owner=alice,
            topic="", topic_key=0, actor=SYSTEM,
        )  # fmt: skip
        assert runner.run_due() == 1
        return PlacementAttempt.objects.select_related("request").get(request_id=pk)

    return make


def files_of(attempt) -> dict[str, bytes]:
    rows = WorkspaceFile.objects.filter(workspace_id=attempt.request.workspace_id)
    found = {}
    for row in rows:
        with open_blob(row.blob_id) as file:
            found[row.path] = file.read()
    return found


def test_a_file_of_the_workspace_is_copied_to_another_name(place):
    attempt = place("file:x", "file:../copies/y", run__x=X)

    assert (attempt.exit_code, attempt.size_bytes) == (0, len(X))
    assert attempt.request.state == "completed"
    assert files_of(attempt) == {"run/x": X, "copies/y": X}


def test_a_directory_as_destination_keeps_the_name(place, pool):
    (pool / "d").mkdir()

    inside = place("file:x", "file:copies/", run__x=X)
    outside = place("file:x", f"file://{pool}/d/", run__x=X)

    assert files_of(inside)["run/copies/x"] == X
    assert outside.exit_code == 0
    assert (pool / "d" / "x").read_bytes() == X


def test_files_go_to_and_come_from_listed_folders(place, pool):
    (pool / "in").write_bytes(X)

    came = place(f"file://{pool}/in", "file:x")
    went = place(f"file://{pool}/in", f"file://{pool}/out")

    assert files_of(came) == {"run/x": X}
    assert went.exit_code == 0
    assert (pool / "out").read_bytes() == X
    assert sorted(each.name for each in pool.iterdir()) == ["in", "out"]


@pytest.mark.parametrize(
    ("source", "destination", "why"),
    [
        ("file:missing", "file:y", "run/missing is not in the workspace"),
        ("file:///etc/passwd", "file:y", "outside of the workspace"),
        ("file:x", "file:///etc/y", "outside of the workspace"),
        ("file://POOL/missing", "file:y", "No such file"),
        ("file://POOL/link", "file:y", "symbolic links"),
        ("file://POOL/away/passwd", "file:y", "Not a directory"),
        ("file:x", "file://POOL/away/y", "Not a directory"),
        ("file://POOL/pipe", "file:y", "no regular file"),
    ],
)
def test_what_cannot_be_copied_is_told(place, pool, source, destination, why):
    (pool / "link").symlink_to("/etc/passwd")
    (pool / "away").symlink_to("/etc")
    os.mkfifo(pool / "pipe")

    attempt = place(
        source.replace("POOL", str(pool)), destination.replace("POOL", str(pool)), run__x=X
    )

    assert attempt.exit_code == 1
    assert why in attempt.message
    assert attempt.request.state == "rescheduled"
    assert set(files_of(attempt)) == {"run/x"}


@pytest.mark.parametrize(
    ("folder", "name", "why"),
    [("d/" * 500 + "d", "x" * 100, "at most 1024"), ("d", "a%5Cb", "backslash")],
)
def test_a_name_that_no_workspace_can_have_is_refused_in_a_directory(
    place, pool, folder, name, why
):
    (pool / unquote(name)).write_bytes(X)

    attempt = place(f"file://{pool}/{name}", f"file:{folder}/")

    assert attempt.exit_code == 1
    assert why in attempt.message
    assert files_of(attempt) == {}


def test_the_folder_itself_and_its_neighbours_are_not_below_it(place, pool):
    neighbour = pool.with_name("pool2")
    neighbour.mkdir()

    assert "outside" in place("file:x", f"file://{neighbour}/x", run__x=X).message
    assert "outside" in place(f"file://{pool}", "file:x").message


def test_a_link_under_the_destinations_name_is_replaced_and_not_followed(place, pool, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("kept")
    (pool / "y").symlink_to(victim)

    attempt = place("file:x", f"file://{pool}/y", run__x=X)

    assert attempt.exit_code == 0
    assert victim.read_text() == "kept"
    assert (pool / "y").read_bytes() == X


def test_folders_of_the_destination_are_made(place, pool):
    attempt = place("file:x", f"file://{pool}/7-01/in/y", run__x=X)

    assert attempt.exit_code == 0
    assert (pool / "7-01" / "in" / "y").read_bytes() == X


def test_size_and_checksum_that_are_told_have_to_be_right(place, pool):
    good = hashlib.sha256(X).hexdigest()

    right = place("file:x", f"file://{pool}/a", f'size = {len(X)}\nchecksum = "{good}"', run__x=X)
    short = place("file:x", f"file://{pool}/b", "size = 5", run__x=X)
    other = place("file:x", f"file://{pool}/c", f'checksum = "{"0" * 64}"', run__x=X)

    assert right.exit_code == 0
    assert (short.exit_code, other.exit_code) == (1, 1)
    assert f"{len(X)} bytes" in short.message
    assert good in other.message
    assert [each.name for each in pool.iterdir()] == ["a"]


def test_a_content_that_was_spoilt_in_the_store_is_not_copied(alice):
    blob = store_bytes(X)
    submit_requests(
        'dap_type = "transfer"\nsrc_url = "file:x"\ndest_url = "file:y"',
        workspace=create_workspace(alice, {"x": blob}), directory="", owner=alice, topic="",
        topic_key=0, actor=SYSTEM,
    )  # fmt: skip
    blob_path(blob.pk).write_bytes(b"spoilt")

    runner.run_due()

    attempt = PlacementAttempt.objects.get()
    assert attempt.exit_code == 1
    assert f"not {blob.pk}" in attempt.message


def test_a_file_that_is_too_large_is_not_copied(place, pool, settings):
    configure(settings, FILE_BYTES=100)

    attempt = place("file:x", f"file://{pool}/y", run__x=X)

    assert "100 bytes" in attempt.message
    assert list(pool.iterdir()) == []


def test_one_that_takes_too_long_is_broken_off(place, pool, settings):
    configure(settings, LIMIT_S=0)

    attempt = place("file:x", f"file://{pool}/y", run__x=X)

    assert attempt.exit_code == TIME_IS_OVER
    assert "0 s" in attempt.message
    assert list(pool.iterdir()) == []


def test_without_a_module_the_attempt_fails_with_111(place):
    attempt = place("gsiftp://far/x", "file:y")

    assert attempt.exit_code == 111
    for scheme in ("gsiftp", "file-file"):
        assert scheme in attempt.message


def test_an_alternative_may_succeed_where_the_primary_has_no_module(place, pool, settings):
    (pool / "x").write_bytes(X)
    first = place(f"gsiftp://localhost{pool}/x", "file:y", 'alt_protocols = "file-file"')

    services.PlacementRequest.objects.update(due_at=None)
    assert runner.run_due() == 1

    request = PlacementRequest.objects.get()
    assert first.exit_code == 111
    assert request.state == "completed"
    assert request.attempts.last().exit_code == 0


def test_a_request_that_was_removed_meanwhile_gets_no_file(alice, pool):
    workspace = create_workspace(alice, {"x": store_bytes(X)})
    [pk] = submit_requests(
        'dap_type = "transfer"\nsrc_url = "file:x"\ndest_url = "file:y"',
        workspace=workspace, directory="", owner=alice, topic="", topic_key=0, actor=SYSTEM,
    )  # fmt: skip
    started = services.take_request(timezone.now())
    services.remove_requests([pk], actor=SYSTEM, reason="enough", now=timezone.now())

    runner.run_attempt(started, placement_conf())

    assert not workspace.files.filter(path="y").exists()
    assert PlacementRequest.objects.get().state == "removed"


def test_a_long_attempt_renews_its_lease_and_hears_of_its_removal(alice, monkeypatch):
    monkeypatch.setattr(runner, "_PULSE_S", 0)
    workspace = create_workspace(alice, {})
    [pk] = submit_requests(
        'dap_type = "transfer"\nsrc_url = "file:x"\ndest_url = "file:y"',
        workspace=workspace, directory="", owner=alice, topic="", topic_key=0, actor=SYSTEM,
    )  # fmt: skip
    started = services.take_request(timezone.now() - timedelta(hours=1))
    pulse = runner.AttemptHeartbeat(60, lambda: services.renew_lease(started, now=timezone.now()))

    pulse()
    assert PlacementAttempt.objects.get().lease_until > timezone.now()

    services.remove_requests([pk], actor=SYSTEM, reason="enough")
    with pytest.raises(runner.Superseded):
        pulse()


def test_folders_that_are_made_are_on_the_disk_with_the_file(transfer, pool, monkeypatch):
    synced, real = set(), os.fsync

    def fsync(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    transfer("file:x", f"file://{pool}/a/b/x", x=b"content")

    assert synced >= {(pool / each).stat().st_ino for each in (".", "a", "a/b")}
