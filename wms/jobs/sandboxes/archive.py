"""Archive of the output sandboxes of many jobs as one tar, streamed in the memory of a batch.

A tar and no zip, because a zip ends with a list of all its files, which would be kept until then.
The last file is the manifest: what is in the archive and what lacks. An archive without it was cut.
"""

from __future__ import annotations

import json
import os
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import IO, Any, Final

from django.db.models import QuerySet

from wms.core.errors import NotFound, PilotageError
from wms.jobs.content.blobs import open_blob
from wms.jobs.models import Job
from wms.jobs.sandboxes.files import Lack, SandboxFile, files_of_jobs, unsent_outputs
from wms.jobs.sandboxes.leases import without_outputs
from wms.jobs.states import TERMINAL

MANIFEST: Final = "MANIFEST.json"
_JOBS_AT_ONCE = 500
_CHUNK_BYTES = 256 * 1024
#: What lacks is kept in memory up to here, then in a file.
_SPOOLED_BYTES = 1024 * 1024


class ContentCut(PilotageError):
    """A stored content is shorter than it was; the archive cannot go on."""

    status = 500


def batches_of_cluster(jobs: QuerySet[Job]) -> Iterator[list[Job]]:
    """Jobs of one cluster, those of a queryset, by their processes."""
    # Most have one description in common, or a few.
    ordered, after = jobs.order_by("process").prefetch_related("description"), -1
    while batch := list(ordered.filter(process__gt=after)[:_JOBS_AT_ONCE]):
        yield batch
        after = batch[-1].process


def stream_archive(
    batches: Iterable[Sequence[Job]], *, now: datetime, about: Mapping[str, Any] | None = None
) -> Iterator[bytes]:
    """The sandboxes of jobs as a tar, in the order of the jobs; files are `PROCESS/name`.

    `about` goes into the manifest. A content that is lost is told there; one that turns out to be
    cut while it is sent ends the stream by an error, without the end of a tar.
    """
    with tempfile.SpooledTemporaryFile(max_size=_SPOOLED_BYTES) as lacks:
        manifest = _Manifest(lacks)
        for batch in batches:
            files, removed = files_of_jobs(batch), without_outputs(batch)
            for job in batch:
                if job.pk in removed:
                    manifest.lack(job, Lack.REMOVED)
                else:
                    yield from _members(job, files[job.pk], manifest)
        size_bytes = manifest.close(about or {})
        yield _header(MANIFEST, size_bytes, now)
        lacks.seek(0)
        yield from _padded(lacks, size_bytes)
    yield bytes(2 * tarfile.BLOCKSIZE)


class _Manifest:
    """What the archive has, counted, and what it has not, written to a file as it is found."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._file.write(b'{"missing": [')
        self._lacks = 0
        self._counts = {"jobs": 0, "files": 0, "bytes": 0}

    def add(self, *, jobs: int = 0, files: int = 0, size_bytes: int = 0) -> None:
        for name, more in (("jobs", jobs), ("files", files), ("bytes", size_bytes)):
            self._counts[name] += more

    def lack(self, job: Job, cause: Lack, **facts: str) -> None:
        entry = {"process": job.process, "job": job.pk, "cause": cause, **facts}
        self._file.write(b",\n" if self._lacks else b"\n")
        self._file.write(json.dumps(entry).encode())
        self._lacks += 1

    def close(self, about: Mapping[str, Any]) -> int:
        """Write the end; the size of all."""
        rest = {**about, **self._counts, "missing_count": self._lacks}
        self._file.write(b"\n], " + json.dumps(rest).encode()[1:] + b"\n")
        return self._file.tell()


def _members(job: Job, files: Sequence[SandboxFile], manifest: _Manifest) -> Iterator[bytes]:
    if job.state not in TERMINAL:
        manifest.lack(job, Lack.NOT_ENDED)
        return
    manifest.add(jobs=1)
    for name in unsent_outputs(job, files):
        manifest.lack(job, Lack.NOT_SENT, name=name)
    for file in files:
        yield from _member(job, file, manifest)


def _member(job: Job, file: SandboxFile, manifest: _Manifest) -> Iterator[bytes]:
    try:
        stored = open_blob(file.sha256)
    except NotFound:
        manifest.lack(job, Lack.CONTENT_LOST, name=file.name)
        return
    with stored:
        if stored.seek(0, os.SEEK_END) != file.size_bytes:
            manifest.lack(job, Lack.CONTENT_LOST, name=file.name)
            return
        stored.seek(0)
        manifest.add(files=1, size_bytes=file.size_bytes)
        yield _header(f"{job.process}/{file.name}", file.size_bytes, file.modified_at)
        yield from _padded(stored, file.size_bytes)


def _header(name: str, size_bytes: int, modified_at: datetime) -> bytes:
    member = tarfile.TarInfo(name)
    member.size = size_bytes
    member.mtime = int(modified_at.timestamp())
    return member.tobuf(tarfile.PAX_FORMAT)


def _padded(file: IO[bytes], size_bytes: int) -> Iterator[bytes]:
    """So many bytes of a file, and zeros up to a whole block."""
    left = size_bytes
    while left:
        chunk = file.read(min(left, _CHUNK_BYTES))
        if not chunk:
            raise ContentCut
        left -= len(chunk)
        yield chunk
    yield bytes(-size_bytes % tarfile.BLOCKSIZE)
