"""The files of a job of a cluster are its own."""

from __future__ import annotations

import pytest
from django.db.models import Q

from tests.wms.jobs.clusters.samples import SYSTEM
from tests.wms.jobs.sandboxes.samples import (
    WRITES,
    cluster_of,
    end,
    ended_cluster,
    job_of,
    send,
    take_next,
)
from wms.core.errors import NotFound
from wms.core.models import User
from wms.jobs.attempts.progress import add_attempt_file
from wms.jobs.content.blobs import open_blob, store_bytes
from wms.jobs.models import Job, WorkspaceFile
from wms.jobs.operations import kill_jobs
from wms.jobs.sandboxes.files import find_sandbox_file, sandbox_files, unsent_outputs
from wms.jobs.sandboxes.sizes import kept_bytes


def contents(job: Job) -> dict[str, bytes]:
    found = {}
    for file in sandbox_files(job):
        with open_blob(file.sha256) as stored:
            found[file.name] = stored.read()
    return found


def test_jobs_that_write_the_same_name_keep_a_file_each(alice: User) -> None:
    cluster = ended_cluster(alice, 2)

    assert contents(job_of(cluster, 0)) == {"out.root": b"of 0"}
    assert contents(job_of(cluster, 1)) == {"out.root": b"of 1"}
    assert not WorkspaceFile.objects.filter(workspace=cluster.workspace, path="out.root").exists()


def test_a_log_has_the_name_of_the_description_or_of_its_kind(alice: User) -> None:
    cluster_of(alice, 1)
    attempt = take_next()
    send(attempt, {"out.root": b"x"}, log=b"printed")
    assert contents(end(attempt)) == {"out.root": b"x", "out.0.log": b"printed"}

    cluster_of(alice, 1, "executable = /bin/true\n")
    attempt = take_next()
    send(attempt, {}, log=b"printed")
    assert contents(end(attempt)) == {"stdout": b"printed"}


def test_an_output_goes_before_a_log_of_the_same_name(alice: User) -> None:
    cluster_of(alice, 1, WRITES.replace("out.$(Process).log", "out.root"))
    attempt = take_next()
    send(attempt, {"out.root": b"output"}, log=b"log")

    assert contents(end(attempt)) == {"out.root": b"output"}


def test_a_job_that_has_not_ended_has_no_files_yet(alice: User) -> None:
    cluster = cluster_of(alice, 1)
    send(take_next(), {"out.root": b"x"})

    assert sandbox_files(job_of(cluster, 0)) == []


def test_a_failed_job_keeps_what_it_sent_and_tells_what_it_did_not(alice: User) -> None:
    cluster_of(alice, 1, WRITES.replace("out.root", "a, b"))
    attempt = take_next()
    send(attempt, {"a": b"x"}, log=b"why")
    job = end(attempt, exit_code=1)

    assert (job.state, contents(job)) == ("failed", {"a": b"x", "out.0.log": b"why"})
    assert unsent_outputs(job, sandbox_files(job)) == ["b"]


def test_only_the_attempt_that_ended_the_job_counts(alice: User) -> None:
    cluster_of(alice, 1, f"{WRITES}max_retries = 1\n")
    first = take_next()
    send(first, {"out.root": b"first"})
    end(first, exit_code=1)
    second = take_next()
    send(second, {"out.root": b"second"})

    assert contents(end(second)) == {"out.root": b"second"}


def test_a_killed_job_has_what_was_sent_before(alice: User) -> None:
    cluster = cluster_of(alice, 1)
    send(take_next(), {"out.root": b"x"})
    kill_jobs([job_of(cluster, 0).pk], actor=SYSTEM, reason="x")

    assert contents(job_of(cluster, 0)) == {"out.root": b"x"}


def test_a_file_is_found_by_its_name(alice: User) -> None:
    job = job_of(ended_cluster(alice, 1), 0)

    assert find_sandbox_file(job, "out.root").size_bytes == 4
    with pytest.raises(NotFound):
        find_sandbox_file(job, "../out.root")


def test_outputs_have_the_names_that_the_description_gives_them(alice: User) -> None:
    remaps = 'transfer_output_remaps = "out.root = result.root"\n'
    cluster_of(alice, 1, f"{WRITES}{remaps}")
    attempt = take_next()
    send(attempt, {"out.root": b"x"})
    job = end(attempt)

    assert (contents(job), unsent_outputs(job, sandbox_files(job))) == ({"result.root": b"x"}, [])


def test_files_of_an_announced_folder_are_outputs(alice: User) -> None:
    cluster_of(alice, 1, WRITES.replace("out.root", "plots"))
    attempt = take_next()
    send(attempt, {"plots/a.png": b"a", "plots/b.png": b"b"})
    job = end(attempt, exit_code=1)

    assert set(contents(job)) == {"plots/a.png", "plots/b.png"}
    assert unsent_outputs(job, sandbox_files(job)) == []


def test_checkpoints_are_no_outputs(alice: User) -> None:
    cluster = cluster_of(alice, 1)
    attempt = take_next()
    for kind in ("incoming", "checkpoint"):
        add_attempt_file(attempt, kind=kind, path="state", blob=store_bytes(b"12345"))
    send(attempt, {"out.root": b"x"})

    assert contents(end(attempt)) == {"out.root": b"x"}
    assert kept_bytes(Q(cluster=cluster)) == 1
