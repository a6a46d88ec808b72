from __future__ import annotations

import gzip
import io
import shutil
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.wms.dags.files.samples import SAMPLES
from wms.core.models import Role, User
from wms.dags.models import Dag


@pytest.fixture(autouse=True)
def alice(db: None) -> User:
    return User.objects.create_user("alice", role=Role.USER)


@pytest.fixture(autouse=True)
def _own_files(settings: Any, tmp_path: Path) -> None:
    settings.PILOTAGE = settings.PILOTAGE | {"BLOBS_DIR": str(tmp_path / "blobs")}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a real run."""
    return Path(shutil.copytree(SAMPLES / "recovery_and_removed", tmp_path / "run"))


def follow(run: Path, *options: Any, name: str = "recovery", owner: str = "alice") -> str:
    out = io.StringIO()
    dag_file, log = run / f"{name}.dag", run / f"{name}.dag.nodes.log"
    call_command("follow_log", dag_file, log, "--owner", owner, *options, stdout=out)
    return out.getvalue()


def test_it_follows_a_run_to_its_end(run: Path) -> None:
    said = follow(run)

    dag = Dag.objects.get()
    assert (dag.state, dag.name) == ("completed", "recovery")
    begun, ended = said.splitlines()
    assert {str(dag.pk), f"{run}/recovery.dag.nodes.log"} <= set(begun.split())
    assert {"9", "completed"} <= set(ended.split())


def test_it_reads_what_there_is_and_goes_on_later(run: Path) -> None:
    log = run / "recovery.dag.nodes.log"
    whole = log.read_bytes()
    log.write_bytes(whole[:2000])
    follow(run, "--once")
    dag = Dag.objects.get()
    log.write_bytes(whole)

    said = follow(run, "--once", "--dag", dag.pk)

    dag.refresh_from_db()
    assert dag.state == "completed"
    assert said.split()[-1] == "completed"
    assert Dag.objects.count() == 1


def test_a_log_that_has_become_shorter_is_an_error(run: Path) -> None:
    log = run / "recovery.dag.nodes.log"
    log.write_bytes(log.read_bytes()[:2000])
    follow(run, "--once")
    log.write_bytes(b"")

    with pytest.raises(CommandError, match=r"shorter.* 0 bytes"):
        follow(run, "--once", "--dag", Dag.objects.get().pk)


def test_what_cannot_be_followed_is_told(run: Path) -> None:
    (run / "broken.dag").write_text("JOB A\n")

    with pytest.raises(CommandError, match="nobody"):
        follow(run, owner="nobody")
    with pytest.raises(CommandError, match=r"broken\.dag:1: "):
        follow(run, name="broken")
    (run / "recovery.dag.nodes.log").unlink()
    with pytest.raises(CommandError, match="is not there"):
        follow(run, "--once")


def test_a_run_that_began_from_a_rescue_is_followed_from_there(tmp_path: Path) -> None:
    run = Path(shutil.copytree(SAMPLES / "rescued", tmp_path / "run"))

    follow(run, "--rescue", "1", name="sample")

    dag = Dag.objects.get()
    assert (dag.state, dag.rescue_number, dag.done_count) == ("completed", 1, 10)


def test_a_log_that_makes_no_sense_is_told(run: Path) -> None:
    log = run / "recovery.dag.nodes.log"
    log.write_bytes(log.read_bytes().replace(b"DAG Node: A", b"DAG Node: C"))

    with pytest.raises(CommandError, match="node C began"):
        follow(run)


def test_a_log_that_was_packed_is_followed(run: Path) -> None:
    log = run / "recovery.dag.nodes.log"
    packed = log.with_name(log.name + ".gz")
    packed.write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()

    call_command("follow_log", run / "recovery.dag", packed, "--owner", "alice", "--once")

    assert Dag.objects.get().state == "completed"
