"""Command `archive`: a file for each DAG, whole or not at all, and imports with their places."""

from __future__ import annotations

import errno
import fcntl
import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from portal.cli import archive_folder
from tests import factories
from wms.archives.models import ArchivedDag
from wms.core.models import Role, User
from wms.dags.models import Dag
from wms.dags.services.dags import remove_dags

pytestmark = pytest.mark.django_db
LATER = "2100-01-01"


@pytest.fixture
def ended(alice: User) -> list[Dag]:
    """Two DAGs that were removed before anything of them ran."""
    dags = [factories.dag(alice) for _ in range(2)]
    ids = [dag.pk for dag in dags]
    remove_dags(ids, actor=factories.SYSTEM, reason="test")
    factories.turn()
    return list(Dag.objects.filter(pk__in=ids).order_by("pk"))


@pytest.fixture
def alice(db: None) -> User:
    return factories.person("alice", Role.USER)


def archive(*words: object) -> str:
    out = io.StringIO()
    call_command("archive", *map(str, words), stdout=out)
    return out.getvalue()


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_files_are_written_once_and_imported_once(
    ended: list[Dag], tmp_path: Path, alice: User
) -> None:
    running = factories.dag(alice)
    names = [f"dag-{dag.pk}.zip" for dag in ended]
    archive("export", ended[0].pk, "--to", tmp_path)
    first = (tmp_path / names[0]).stat()

    told = archive("export", "--ended-before", LATER, "--to", tmp_path)

    assert [line.split(": ")[1] for line in told.splitlines()] == ["was there", "written"]
    assert names_in(tmp_path) == names
    assert (tmp_path / names[0]).stat().st_mtime_ns == first.st_mtime_ns
    with pytest.raises(CommandError, match=str(running.pk)):
        archive("export", running.pk, "--to", tmp_path)
    with pytest.raises(CommandError, match="999999"):
        archive("export", 999999, "--to", tmp_path)

    factories.person("olga", Role.OPERATOR)
    paths = [tmp_path / name for name in names]
    for outcome in ("imported", "was there"):
        told = archive("import", *paths, "--user", "olga")
        assert [line.split(", ")[1] for line in told.splitlines()] == [outcome] * 2
    assert ArchivedDag.objects.count() == 2
    (tmp_path / "spoilt.zip").write_bytes(paths[0].read_bytes()[:-9])
    with pytest.raises(CommandError, match=r"spoilt\.zip: "):
        archive("import", tmp_path / "spoilt.zip", "--user", "olga")
    with pytest.raises(CommandError):
        archive("import", paths[0], "--user", "alice")


def test_who_is_stopped_leaves_nothing_half(
    ended: list[Dag], tmp_path: Path, monkeypatch: Any
) -> None:
    def full(*args: Any, **how: Any) -> Any:
        yield b"half"
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(archive_folder, "stream_archive", full)
        with pytest.raises(CommandError):
            archive("export", ended[0].pk, "--to", tmp_path)
    assert names_in(tmp_path) == []
    # A killed one leaves its hidden file, and no lock.
    part = tmp_path / f".dag-{ended[0].pk}.zip.part"
    part.write_bytes(b"half")
    with part.open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "another" in archive("export", ended[0].pk, "--to", tmp_path)
    archive("export", ended[0].pk, "--to", tmp_path)
    assert names_in(tmp_path) == [f"dag-{ended[0].pk}.zip"]


def test_a_file_of_another_dag_is_not_taken_for_it(ended: list[Dag], tmp_path: Path) -> None:
    archive("export", ended[0].pk, "--to", tmp_path)
    Dag.objects.filter(pk=ended[0].pk).update(created_at=datetime(2020, 1, 1, tzinfo=UTC))
    with pytest.raises(CommandError, match="another DAG"):
        archive("export", ended[0].pk, "--to", tmp_path)
