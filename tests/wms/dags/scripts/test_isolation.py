"""Isolation of scripts: several owners on one host, one of whom attacks the others, or root."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.wms.dags.scripts.conftest import done, files_of, put, said
from wms.core.models import User
from wms.dags.models import Dag
from wms.dags.scripts.conf import script_conf
from wms.dags.scripts.trees import remove_tree
from wms.dags.scripts.workspace_copy import WorkspaceCopy
from wms.jobs.operations import create_workspace

pytestmark = pytest.mark.django_db(transaction=True)

only_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root gives scripts accounts of their own"
)


@pytest.fixture
def other_dag(charlie: User) -> Dag:
    return Dag.objects.create(
        name="other.dag", owner=charlie, workspace=create_workspace(charlie, {})
    )


def nothing() -> None:
    pass


def test_a_script_finds_nothing_of_another_workspace(real_fence, ask, dag, other_dag, folder):
    put(other_dag, "secret", "hidden")
    done(ask("cat secret", dag=other_dag))

    run = done(ask(f"cat {folder}/base/*/*/secret {folder}/base/*/*/*/secret ../*/*/secret; ls .."))
    found = [*folder.rglob("secret")]

    assert "hidden" not in said(run)
    assert found == []


def test_a_script_changes_nothing_of_another_workspace(real_fence, ask, dag, other_dag, folder):
    put(other_dag, "data", "right")
    done(ask("true", dag=other_dag))
    number = other_dag.workspace_id

    done(ask(f"echo wrong | tee ../../workspace-{number}/files/data {folder}/base/0/files/data"))
    run = done(ask("cat data", dag=other_dag))

    assert said(run) == "right"
    assert files_of(other_dag) == {"data": "right"}


@only_root
def test_only_the_account_of_a_slot_enters_it(works, slot):
    for place in (slot.folder, slot.tmp, slot.shm):
        assert not place.stat().st_mode & stat.S_IRWXO

    def reads(uid: int) -> bool:
        command = ["/bin/sh", "-c", f"cd {slot.tmp}"]
        status = subprocess.run(command, user=uid, group=uid, extra_groups=(), cwd="/", check=False)
        return status.returncode == 0

    assert slot.uid is not None
    assert reads(slot.uid)
    assert not reads(slot.uid + 1)


@pytest.fixture
def copy_of(slot, dag):
    """A copy that was used once and left in good order, and the next one to use it."""

    def make() -> WorkspaceCopy:
        return WorkspaceCopy(slot, dag.workspace_id, configured)

    configured = script_conf()
    put(dag, "d/data", "right")
    first = make()
    first.refresh("", heartbeat=nothing)
    first.collect(heartbeat=nothing)
    first.confirm()
    return make


def change(files: Path) -> None:
    (files / "d" / "data").write_text("wrong")


def change_and_hide_it(files: Path) -> None:
    path = files / "d" / "data"
    before = path.stat()
    path.write_text("wrong")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def add(files: Path) -> None:
    (files / "added").write_text("wrong")


def take(files: Path) -> None:
    (files / "d" / "data").unlink()


def link(files: Path) -> None:
    (files / "d" / "link").symlink_to("/etc/passwd")


def pipe(files: Path) -> None:
    os.mkfifo(files / "pipe")


@pytest.mark.parametrize("harm", [change, change_and_hide_it, add, take, link, pipe])
def test_a_copy_that_is_not_as_it_was_left_is_made_anew(copy_of, harm):
    harm(copy_of().files)

    copy = copy_of()
    copy.refresh("", heartbeat=nothing)

    assert [each.name for each in copy.files.rglob("*")] == ["d", "data"]
    assert (copy.files / "d" / "data").read_text() == "right"


def test_a_copy_that_is_as_it_was_left_is_kept(copy_of):
    before = (copy_of().files / "d" / "data").stat().st_ino

    copy = copy_of()
    copy.refresh("", heartbeat=nothing)

    assert (copy.files / "d" / "data").stat().st_ino == before


def test_a_folder_that_became_a_link_is_not_followed(copy_of, dag, tmp_path):
    files = copy_of().files
    (tmp_path / "data").write_text("of root")
    (files / "d").rename(files / "e")
    (files / "d").symlink_to(tmp_path)
    put(dag, "d/more", "new")
    put(dag, "d/data", "newer")

    copy_of().refresh("d", heartbeat=nothing)

    assert [each.name for each in tmp_path.iterdir() if each.name in ("data", "more")] == ["data"]
    assert (tmp_path / "data").read_text() == "of root"
    assert not (files / "d").is_symlink()


def test_links_are_not_followed_even_where_the_index_tells_nothing(copy_of, dag, slot, tmp_path):
    (tmp_path / "data").write_text("of root")
    copy = copy_of()
    copy.refresh("", heartbeat=nothing)
    put(dag, "x/data", "new")
    (copy.files / "x").symlink_to(tmp_path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WorkspaceCopy, "_is_unchanged", lambda *_: True)
        copy.refresh("x", heartbeat=nothing)

    assert (tmp_path / "data").read_text() == "of root"


def test_an_index_that_was_not_written_out_costs_a_copy_only(copy_of, slot):
    slot.index.write_text("")

    copy = copy_of()
    copy.refresh("", heartbeat=nothing)

    assert (copy.files / "d" / "data").read_text() == "right"
    assert json.loads(slot.index.read_text())["files"].keys() == {"d/data"}


def test_a_script_that_digs_deep_has_failed_and_is_cleared_away(works, ask):
    dig = 'import os; [(os.mkdir("d" * 9), os.chdir("d" * 9)) for _ in range(2000)]'

    run = done(ask(f"exec python3 -c '{dig}'"))

    assert run.exit_code == 1
    assert "128 deep" in run.failure
    listing = done(ask("ls -d d* 2>/dev/null; echo clean"))
    assert said(listing) == "clean\n"


def test_deep_and_closed_folders_are_removed(tmp_path):
    top = tmp_path / "top"
    top.mkdir()
    here = os.open(top, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    (top / "link").symlink_to(outside)
    (top / "d" / "file").touch()
    (top / "d").chmod(0)

    remove_tree(top)

    assert not top.exists()
    assert (outside / "kept").exists()


@only_root
def test_what_outlived_a_lost_service_is_ended_before_the_next_script(works, slot):
    left = subprocess.Popen(
        ["sleep", "300"], user=slot.uid, group=slot.uid, extra_groups=(), cwd="/"
    )
    slot.mark.touch()

    slot.clean_up()

    assert left.wait(timeout=5) == -9


def test_copies_of_before_are_removed_from_a_slot(slot):
    old = slot.folder / "workspace-7" / "files"
    old.mkdir(parents=True)

    slot.clean_up()

    assert not old.parent.exists()
