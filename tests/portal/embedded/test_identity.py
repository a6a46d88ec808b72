from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from portal.embedded.identity import Identity, NoIdentity, choose_identity
from portal.embedded.postgres import Postgres, PostgresUnusable, program

pytestmark = pytest.mark.process

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another identity")


@pytest.fixture
def without_namespaces(tmp_path, monkeypatch):
    """A PATH on which `unshare` is missing, as on a host that forbids user namespaces."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("setpriv", "test", "sh"):
        (tools / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(tools))


@pytest.fixture
def open_folder():
    """A folder that every account may reach, unlike those of pytest."""
    with tempfile.TemporaryDirectory(prefix="pilotage-") as name:
        yield Path(name)


def _can_reach_wheel() -> bool:
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    return subprocess.run([*command, "test", "-r", program("postgres")]).returncode == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root needs another identity")
def test_an_ordinary_user_runs_postgres_as_itself(tmp_path):
    assert choose_identity(program("postgres"), tmp_path) == Identity()


@as_root
def test_root_runs_postgres_in_a_folder_that_only_root_may_enter(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    if "unshare" not in choose_identity(program("postgres"), closed).prefix[0]:
        pytest.skip("this host has no user namespaces")

    postgres = Postgres.at(closed / "postgres", 5432)
    postgres.prepare()

    assert postgres.data.stat().st_uid == 0
    assert (postgres.data / "PG_VERSION").exists()


@as_root
def test_without_user_namespaces_an_account_gets_the_folder(open_folder, without_namespaces):
    if not _can_reach_wheel():
        pytest.skip("the installed packages are in a folder that only root may enter")

    postgres = Postgres.at(open_folder / "postgres", 5432)
    postgres.prepare()

    assert postgres.data.stat().st_uid == postgres.identity.owner.pw_uid != 0
    assert open_folder.stat().st_uid == 0


@as_root
def test_where_nothing_works_the_error_names_the_way_out(tmp_path, without_namespaces):
    closed = tmp_path / "closed"
    (closed / "a" / "b").mkdir(parents=True)
    closed.chmod(0o700)

    with pytest.raises(NoIdentity, match="DATABASE_URL"):
        choose_identity(program("postgres"), closed / "a" / "b")


def test_a_cluster_of_another_version_is_refused_and_left_alone(tmp_path):
    postgres = Postgres.at(tmp_path / "postgres", 5432)
    postgres.data.mkdir()
    (postgres.data / "PG_VERSION").write_text("17\n")

    with pytest.raises(PostgresUnusable, match="written by PostgreSQL 17"):
        postgres.prepare()


def test_an_interrupted_creation_is_begun_anew(tmp_path):
    postgres = Postgres.at(tmp_path / "postgres", 5432)
    half = postgres.folder / "data.new"
    half.mkdir()
    (half / "junk").write_text("")

    postgres.prepare()

    assert (postgres.data / "PG_VERSION").exists()
    assert not half.exists()
