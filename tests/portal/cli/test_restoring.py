"""Refusals of a restore, each before anything is changed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from portal.cli.backups import restoring
from portal.cli.backups.manifest import BackupFault, Manifest
from portal.cli.state_directory import BASE, StateDirectory
from portal.cli.up import HalfRestored, prepare
from wms.core.storage.folder import FolderStore
from wms.core.storage.owners import OWNER

_MANIFEST = Manifest(
    taken_at="2026-01-31T02:00:00+00:00",
    version="1",
    installation_id="7-1",
    address="https://portal.example.org",
    server_version=180000,
    # The first of `jobs` was replaced.
    migrations={
        "core": ["0001_tables"],
        "jobs": ["0001_schema"],
        "sessions": ["9999_of_a_package"],
    },
    store_kind="folder",
    store_name="the folder",
    files=[],
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StateDirectory:
    for name in ("DATABASE_URL", "PILOTAGE_BLOBS_S3_BUCKET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PILOTAGE_VAR", str(tmp_path))
    return StateDirectory(tmp_path)


def _mark(place: StateDirectory, installation: str) -> None:
    (place.var / "blobs" / "00").mkdir(parents=True, exist_ok=True)
    told = {"id": installation, "address": "https://other.example"}
    (place.var / "blobs" / OWNER).write_text(json.dumps(told))


def test_an_installation_with_a_database_or_contents_of_others_is_not_empty(
    place: StateDirectory,
) -> None:
    restoring._require_empty(place, _MANIFEST)
    _mark(place, "7-1")
    # Its own contents have survived the database.
    restoring._require_empty(place, _MANIFEST)

    _mark(place, "8-1")
    with pytest.raises(BackupFault, match="other"):
        restoring._require_empty(place, _MANIFEST)
    (place.var / "blobs" / OWNER).unlink()
    with pytest.raises(BackupFault, match="blobs"):
        restoring._require_empty(place, _MANIFEST)
    (place.var / "postgres" / "data").mkdir(parents=True)
    with pytest.raises(BackupFault, match="database"):
        restoring._require_empty(place, _MANIFEST)


def test_migrations_that_this_release_has_not_are_named() -> None:
    newer = replace(_MANIFEST, migrations={"core": ["0001_tables", "9999_later"]})

    assert restoring._unknown_migrations(_MANIFEST) == []
    assert restoring._unknown_migrations(newer) == ["core.9999_later"]


def test_a_backup_without_contents_needs_the_bucket_and_one_with_them_none(
    place: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = replace(_MANIFEST, store_kind="bucket")
    restoring._require_bucket(_MANIFEST)
    with pytest.raises(BackupFault, match="PILOTAGE_BLOBS_S3_BUCKET"):
        restoring._require_bucket(named)

    monkeypatch.setenv("PILOTAGE_BLOBS_S3_BUCKET", "bucket")

    restoring._require_bucket(named)
    with pytest.raises(BackupFault, match="move_contents"):
        restoring._require_bucket(_MANIFEST)


def test_the_bucket_of_a_living_installation_is_taken_only_by_its_word(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    here = replace(_MANIFEST, store_kind="bucket", store_name=store.name)
    copied = replace(here, store_name="another bucket")

    with pytest.raises(BackupFault, match="--take-bucket"):
        restoring._require_bucket_of(here, store, is_taken=False)
    restoring._require_bucket_of(here, store, is_taken=True)
    restoring._require_bucket_of(copied, store, is_taken=False)
    (tmp_path / OWNER).write_text(json.dumps({"id": "8-1", "address": "https://other.example"}))
    for manifest in (here, copied):
        with pytest.raises(BackupFault, match="other"):
            restoring._require_bucket_of(manifest, store, is_taken=True)


def test_a_server_of_ones_own_and_a_folder_that_is_no_backup_are_refused(
    place: StateDirectory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert restoring.main([str(BASE)]) == 1
    assert "no backup" in capsys.readouterr().err

    monkeypatch.setenv("DATABASE_URL", "postgresql://nowhere/none")
    assert restoring.main([str(BASE)]) == 1
    assert "take_store" in capsys.readouterr().err
    assert not place.is_restoring.exists()


def test_nothing_starts_on_what_is_half_restored(place: StateDirectory) -> None:
    place.run.mkdir()
    place.is_restoring.write_text("/backup/1\n")

    with pytest.raises(HalfRestored, match="/backup/1"):
        prepare(place)
