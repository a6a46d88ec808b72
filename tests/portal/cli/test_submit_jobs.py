"""Submission of jobs from a shell: the same service as that of page and API."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests import factories
from wms.jobs.models import Cluster

pytestmark = pytest.mark.django_db


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    factories.people()
    (tmp_path / "sweep.sub").write_text("executable = run.sh\nqueue n from table.csv\n")
    (tmp_path / "run.sh").write_text("#!/bin/sh\n")
    (tmp_path / "table.csv").write_text("1\n2\n3\n")
    return tmp_path


def submit(folder: Path, *arguments: str) -> None:
    files = [str(folder / name) for name in ("sweep.sub", "run.sh", "table.csv")]
    call_command("submit_jobs", *files, "--user", "alice", *arguments)


def test_files_of_a_folder_become_a_cluster(folder: Path, capsys) -> None:
    submit(folder, "--options", '{"name": "threes"}')

    cluster = Cluster.objects.get()
    assert (cluster.name, cluster.size, cluster.owner.username) == ("threes", 3, "alice")
    assert sorted(cluster.workspace.files.values_list("path", flat=True)) == [
        "run.sh",
        "table.csv",
    ]
    assert str(cluster.pk) in capsys.readouterr().out


def test_the_same_key_submits_once(folder: Path) -> None:
    submit(folder, "--key", "monday")
    submit(folder, "--key", "monday")

    assert Cluster.objects.count() == 1


def test_a_check_stores_nothing(folder: Path, capsys) -> None:
    submit(folder, "--check")

    assert "3" in capsys.readouterr().out
    assert not Cluster.objects.exists()


@pytest.mark.parametrize("arguments", [(), ("--check",)])
def test_faults_are_told_by_line(folder: Path, arguments: tuple[str, ...]) -> None:
    (folder / "sweep.sub").write_text("executable = run.sh\nrequest_cpus = many\nqueue\n")

    with pytest.raises(CommandError, match=r"sweep\.sub:2"):
        submit(folder, *arguments)

    assert not Cluster.objects.exists()


def test_an_unknown_user_submits_nothing(folder: Path) -> None:
    with pytest.raises(CommandError):
        call_command("submit_jobs", str(folder / "sweep.sub"), "--user", "nobody")
