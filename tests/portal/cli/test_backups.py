"""Backups: what one has, what spoils it, and what keeps one from being taken."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from portal.cli.backups import taking
from portal.cli.backups.manifest import (
    CONTENTS,
    DUMP,
    MANIFEST,
    SPOILT,
    UNFINISHED,
    BackupFault,
    read_manifest,
)
from portal.cli.backups.secret_files import KEYS, require_keys
from tests import factories
from wms.core.models import AuditEntry
from wms.core.storage.current import folder_store
from wms.core.storage.owners import forget_marks
from wms.jobs.content.blobs import blob_key, store_bytes
from wms.jobs.models import Attempt
from wms.jobs.output.streams import append_to_stream

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.process]

_SENT = b"line 1\n"


@pytest.fixture
def installation(
    tmp_path: Path, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """An installation with keys in files, a content, and a running job that has printed a line."""
    for key in KEYS:
        monkeypatch.delenv(key.variable, raising=False)
    var = tmp_path / "var"
    (var / "run").mkdir(parents=True)
    (var / "run" / "credential_keys").write_text("first-key second-key\n")
    settings.VAR_DIR, settings.RUN_DIR = var, var / "run"
    settings.PILOTAGE = settings.PILOTAGE | {"BLOBS_DIR": str(var / "blobs")}
    forget_marks()
    pilot = factories.pilot()
    factories.job(factories.person("alice"), files={"in.txt": b"input"})
    factories.claim(pilot)
    attempt = Attempt.objects.get()
    append_to_stream(
        attempt.job_id, attempt.number, pilot_id=pilot.pk, kind="stdout", offset=0, content=_SENT,
        now=timezone.now(),
    )  # fmt: skip
    yield var
    forget_marks()


def _back_up(folder: Path, *words: str) -> str:
    out = StringIO()
    call_command("backup", str(folder), *words, stdout=out, stderr=out)
    return out.getvalue()


def _check(folder: Path) -> None:
    call_command("backup", str(folder), "--check", stdout=StringIO(), stderr=StringIO())


def _inodes(folder: Path) -> set[int]:
    return {path.stat().st_ino for path in (folder / CONTENTS).glob("??/*")}


def test_a_backup_is_whole_checked_shared_with_the_one_before_and_old_ones_go(
    installation: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    for name in (".killed.partial", ".empty.partial", ".foreign.partial"):
        (kept / name).mkdir()
    (kept / ".killed.partial" / UNFINISHED).touch()
    (kept / ".foreign.partial" / "notes").touch()

    _back_up(kept / "1")
    lost = store_bytes(b"lost by the store")
    folder_store().path_of(blob_key(lost.sha256)).unlink()
    said = _back_up(kept / "2")
    _back_up(kept / "3", "--with-secrets", "--keep", "2")

    assert sorted(path.name for path in kept.iterdir()) == [".foreign.partial", "2", "3"]
    assert not list(kept.glob(f"?/{UNFINISHED}"))
    second, third = read_manifest(kept / "2"), read_manifest(kept / "3")
    assert lost.sha256 in said
    assert (second.missing, second.linked, second.contents) == ([lost.sha256], 1, 1)
    assert _inodes(kept / "2") == _inodes(kept / "3")
    assert [path.read_bytes() for path in (kept / "3" / CONTENTS).glob("streams/*/*")] == [_SENT]
    assert "core" in third.migrations
    assert (second.secrets, third.secrets) == ([], ["secrets/credential_keys"])
    assert (kept / "3" / DUMP).stat().st_mode & 0o777 == 0o600
    assert (kept / "3" / "secrets" / "credential_keys").stat().st_mode & 0o777 == 0o600
    assert AuditEntry.objects.filter(action="back up").count() == 3
    _check(kept / "3")

    # Any byte that is another one is found.
    for spoilt in (DUMP, next(iter(_files(kept / "2", "??/*"))), "named-contents.txt"):
        path = kept / "2" / spoilt
        former = path.read_bytes()
        path.unlink()
        path.write_bytes(bytes([former[0] ^ 1]) + former[1:])
        with pytest.raises(CommandError, match=os.path.basename(spoilt)):
            _check(kept / "2")
        path.write_bytes(former)
    # The next one shares no file with one that was spoilt, until that is whole again.
    assert taking._latest(kept) == kept / "3"
    (kept / "3" / SPOILT).touch()
    assert taking._latest(kept) is None
    _check(kept / "2")
    assert taking._latest(kept) == kept / "2"


def _files(folder: Path, pattern: str) -> list[str]:
    return [str(p.relative_to(folder)) for p in (folder / CONTENTS).glob(pattern)]


def test_what_is_not_whole_never_looks_so(
    installation: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = tmp_path / "there"
    there.mkdir()
    with pytest.raises(CommandError, match="exists"):
        _back_up(there)
    with pytest.raises(CommandError, match="no folder"):
        _back_up(tmp_path / "nowhere" / "1")
    with pytest.raises(CommandError):
        _check(there)

    def full(*args: Any, **options: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(taking, "write_named", full)
    with pytest.raises(CommandError, match="No space left"):
        _back_up(tmp_path / "1")
    assert not list(tmp_path.glob("*1*"))

    # One that another process writes is left to that.
    monkeypatch.undo()
    with taking._partial(tmp_path / "1") as folder:
        taking.remove_left(tmp_path)
        assert folder.is_dir()
        with pytest.raises(CommandError, match="Another process"):
            _back_up(tmp_path / "1")


def test_no_backup_is_taken_through_a_pool_of_transactions(
    installation: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connection.settings_dict, "DISABLE_SERVER_SIDE_CURSORS", True)

    with pytest.raises(CommandError, match="PILOTAGE_DATABASE_POOLED"):
        _back_up(tmp_path / "1")

    assert not list(tmp_path.glob("*1*"))


def test_a_backup_without_its_keys_says_which_are_missing(
    installation: Path, tmp_path: Path
) -> None:
    _back_up(tmp_path / "1")
    marks = read_manifest(tmp_path / "1").key_marks
    fresh = tmp_path / "fresh"
    fresh.mkdir()

    assert len(marks["credential_keys"]) == 2
    assert "first-key" not in (tmp_path / "1" / MANIFEST).read_text()
    with pytest.raises(BackupFault, match="credential_keys"):
        require_keys(marks, folder=tmp_path / "1", run=fresh)
    (fresh / "credential_keys").write_text("second-key new-key first-key")
    require_keys(marks, folder=tmp_path / "1", run=fresh)


def test_a_manifest_of_another_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(json.dumps({"format": 2}))

    with pytest.raises(BackupFault, match="format"):
        read_manifest(tmp_path)
