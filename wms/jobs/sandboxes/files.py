"""Output sandbox of a job of a cluster: outputs and logs of the attempt that ended it, by name.

Also its announced outputs that did not come, and the causes why an archive lacks a file.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from django.db.models import F
from django.db.models.functions import Coalesce

from wms.core.errors import NotFound
from wms.jobs.binding.late_values import recall_latest
from wms.jobs.content.publishing import name_of_output
from wms.jobs.directives import announced_as
from wms.jobs.models import Attempt, AttemptFile, Job
from wms.jobs.states import TERMINAL, JobState

_Kind = AttemptFile.Kind
_Outcome = Attempt.Outcome
#: Checkpoints are for further attempts.
KEPT_KINDS = (_Kind.OUTPUT, _Kind.STDOUT, _Kind.STDERR)
#: What a lost attempt has sent is nobody's.
_ENDING = (_Outcome.DONE, _Outcome.FAILED, _Outcome.KILLED)


@dataclass(frozen=True, slots=True)
class SandboxFile:
    """A file of a sandbox; its name is unique there. It was sent under its path."""

    name: str
    path: str
    kind: str
    sha256: str
    size_bytes: int
    modified_at: datetime


class Lack(StrEnum):
    """Causes for which a file, or all of a job's, is not in an archive."""

    NOT_ENDED = "not_ended"
    NOT_SENT = "not_sent"
    REMOVED = "removed"
    CONTENT_LOST = "content_lost"


def sandbox_files(job: Job) -> list[SandboxFile]:
    """The files of one job by name; none before it has ended."""
    return files_of_jobs([job])[job.pk]


def files_of_jobs(jobs: Sequence[Job]) -> dict[int, list[SandboxFile]]:
    """The files of these jobs by name, under the jobs' ids. One query, or two."""
    found: dict[int, list[SandboxFile]] = {job.pk: [] for job in jobs}
    rows = AttemptFile.objects.filter(
        attempt__job__in=[job.pk for job in jobs if job.state in TERMINAL],
        attempt__number=F("attempt__job__attempt_number"),
        attempt__outcome__in=_ENDING,
        kind__in=KEPT_KINDS,
    )
    # Values, because archives of millions are made of them.
    for job_id, *file in rows.values_list(
        "attempt__job_id", "path", "kind", "blob_id", "blob__size_bytes",
        Coalesce("attempt__ended_at", "attempt__matched_at"),
    ):  # fmt: skip
        found[job_id].append(SandboxFile(file[0], *file))
    recall_latest(jobs)
    return {job.pk: _named(job, found[job.pk]) for job in jobs}


def find_sandbox_file(job: Job, name: str) -> SandboxFile:
    """One file of a job. Raises NotFound."""
    for file in sandbox_files(job):
        if file.name == name:
            return file
    raise NotFound(f"Job {job.pk} has no output {name!r}.")


def unsent_outputs(job: Job, files: Collection[SandboxFile]) -> list[str]:
    """Outputs that the description of a job that has ended names, and that did not come."""
    if job.state == JobState.DONE:
        return []
    outputs = (file.path for file in files if file.kind == _Kind.OUTPUT)
    return sorted(
        set(job.output_files) - {announced_as(path, job.output_files) for path in outputs}
    )


def _named(job: Job, sent: Sequence[SandboxFile]) -> list[SandboxFile]:
    """Files by their names: outputs as they are published, logs as described or by their kind.

    A log whose name another file has is left out: it is read as the log of its attempt.
    """
    outputs = (file for file in sent if file.kind == _Kind.OUTPUT)
    by_name = {
        name: replace(file, name=name)
        for file in outputs
        if (name := name_of_output(job, file.path))
    }
    logs = {file.kind: file for file in sent if file.kind != _Kind.OUTPUT}
    for kind, given in ((_Kind.STDOUT, job.stdout_name), (_Kind.STDERR, job.stderr_name)):
        if kind in logs:
            name = given or kind.value
            by_name.setdefault(name, replace(logs[kind], name=name))
    return [by_name[name] for name in sorted(by_name)]
