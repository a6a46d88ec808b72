"""Archives of sandboxes: what they have, what they tell of what lacks, and how they are cut."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from tests.stored_files import blob_path
from tests.wms.jobs.sandboxes.samples import (
    cluster_of,
    end,
    ended_cluster,
    job_of,
    send,
    take_next,
)
from wms.core.models import User
from wms.jobs.models import Cluster, Job
from wms.jobs.sandboxes import archive, sweep
from wms.jobs.sandboxes.files import sandbox_files

NOW = timezone.now()


def archive_of(cluster: Cluster) -> bytes:
    jobs = Job.objects.filter(cluster_id=cluster.pk)
    batches = archive.batches_of_cluster(jobs)
    return b"".join(archive.stream_archive(batches, now=NOW, about={"cluster": cluster.pk}))


def read(content: bytes) -> tuple[dict[str, bytes], dict[str, Any]]:
    """The files of an archive, in their order, and its manifest."""
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
        files = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
    assert list(files)[-1] == archive.MANIFEST
    return files, json.loads(files.pop(archive.MANIFEST))


@pytest.mark.process
def test_an_archive_has_each_file_under_the_number_of_its_job(alice: User, tmp_path: Path) -> None:
    cluster = ended_cluster(alice, 3)

    content = archive_of(cluster)

    files, manifest = read(content)
    assert files == {"0/out.root": b"of 0", "1/out.root": b"of 1", "2/out.root": b"of 2"}
    assert list(files) == ["0/out.root", "1/out.root", "2/out.root"]
    assert manifest == {
        "missing": [], "cluster": cluster.pk, "jobs": 3, "files": 3, "bytes": 12,
        "missing_count": 0,
    }  # fmt: skip
    assert archive_of(cluster) == content
    (tmp_path / "a.tar").write_bytes(content)
    subprocess.run(["tar", "-xf", "a.tar"], cwd=tmp_path, check=True)
    assert (tmp_path / "1" / "out.root").read_bytes() == b"of 1"


def test_jobs_are_in_the_order_of_their_numbers_over_many_batches(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "_JOBS_AT_ONCE", 2)

    files, _ = read(archive_of(ended_cluster(alice, 11)))

    assert list(files) == [f"{n}/out.root" for n in range(11)]


def test_the_manifest_tells_what_lacks_and_why(alice: User) -> None:
    cluster = cluster_of(alice, 3)
    attempts = {each.job.process: each for each in (take_next(), take_next(), take_next())}
    end(attempts[0], exit_code=1)
    send(attempts[1], {"out.root": b"lost"})
    lost = end(attempts[1])
    blob_path(sandbox_files(lost)[0].sha256).unlink()

    files, manifest = read(archive_of(cluster))

    assert files == {}
    assert manifest["missing"] == [
        {"process": 0, "job": attempts[0].job_id, "cause": "not_sent", "name": "out.root"},
        {"process": 1, "job": lost.pk, "cause": "content_lost", "name": "out.root"},
        {"process": 2, "job": attempts[2].job_id, "cause": "not_ended"},
    ]
    assert (manifest["missing_count"], manifest["jobs"], manifest["files"]) == (3, 2, 0)


def test_jobs_whose_outputs_went_are_told_as_removed(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = ended_cluster(alice, 2)
    monkeypatch.setattr(sweep, "_JOBS_AT_ONCE", 1)
    sweep.remove_next(cluster.output_lease.kept_until + timezone.timedelta(seconds=1))

    files, manifest = read(archive_of(cluster))

    assert list(files) == ["1/out.root"]
    assert manifest["missing"] == [{"process": 0, "job": job_of(cluster, 0).pk, "cause": "removed"}]


def test_a_content_that_ends_too_early_breaks_the_stream_before_its_end(alice: User) -> None:
    cluster = ended_cluster(alice, 2)
    stream = archive.stream_archive(
        archive.batches_of_cluster(Job.objects.filter(cluster_id=cluster.pk)), now=NOW
    )
    sent = [next(stream)]
    [file] = sandbox_files(job_of(cluster, 0))
    with blob_path(file.sha256).open("wb"):
        pass

    with pytest.raises(archive.ContentCut):
        sent.extend(stream)

    with pytest.raises(tarfile.ReadError):
        read(b"".join(sent))


def test_a_content_with_another_size_than_its_row_is_not_sent(alice: User) -> None:
    cluster = ended_cluster(alice, 1)
    [file] = sandbox_files(job_of(cluster, 0))
    blob_path(file.sha256).write_bytes(b"longer than it was")

    files, manifest = read(archive_of(cluster))

    assert (files, manifest["missing"][0]["cause"]) == ({}, "content_lost")


def test_names_of_any_length_and_alphabet_come_through(alice: User) -> None:
    name = f"{'ä' * 100}/{'b' * 200}/c"
    description = f"executable = /bin/true\ntransfer_output_files = {name}\n"
    cluster = cluster_of(alice, 1, description)
    attempt = take_next()
    send(attempt, {name: b"x"})
    end(attempt)

    files, _ = read(archive_of(cluster))

    assert files == {f"0/{name}": b"x"}


def test_a_large_content_takes_little_memory(alice: User) -> None:
    cluster = cluster_of(alice, 1)
    attempt = take_next()
    send(attempt, {"out.root": bytes(32 * 1024 * 1024)})
    end(attempt)
    jobs = Job.objects.filter(cluster_id=cluster.pk)

    tracemalloc.start()
    size = sum(
        len(each) for each in archive.stream_archive(archive.batches_of_cluster(jobs), now=NOW)
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert size > 32 * 1024 * 1024
    assert peak < 8 * 1024 * 1024


def test_queries_are_those_of_batches(
    alice: User, django_assert_num_queries: Callable[..., Any]
) -> None:
    cluster = ended_cluster(alice, 5)

    with django_assert_num_queries(5):
        archive_of(cluster)
