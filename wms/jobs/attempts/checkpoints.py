"""Checkpoints of payloads: the files from which a job goes on, each set kept as a whole.

A pilot sends the files of a checkpoint one by one and then says that they are complete: only from
then on they take the place of those before.
"""

from __future__ import annotations

from collections.abc import Collection

from django.db import models, transaction

from wms.core.actors import Actor
from wms.core.errors import InvalidInput
from wms.jobs import lifecycle
from wms.jobs.attempts.guard import live_attempt, report_guard
from wms.jobs.content.job_files import listed_names
from wms.jobs.models import AttemptFile, Blob, Job

_Kind = AttemptFile.Kind


def keep_checkpoint(
    job_id: int, number: int, *, pilot_id: int, files: Collection[str], actor: Actor
) -> None:
    """Keep these files, which the attempt has sent, as the job's checkpoint.

    Repeating it changes nothing. Raises AttemptSuperseded, and InvalidInput for files that did not
    come.
    """
    with (
        report_guard(job_id, number, "checkpointed", pilot_id=pilot_id, actor=actor),
        transaction.atomic(),
    ):
        Job.objects.select_for_update(of=("self",)).get(pk=job_id)
        attempt = live_attempt(job_id, number, pilot_id=pilot_id)
        new = attempt.files.filter(kind=_Kind.NEW_CHECKPOINT)
        if missing := set(files) - set(new.values_list("path", flat=True)):
            kept = set(attempt.files.filter(kind=_Kind.CHECKPOINT).values_list("path", flat=True))
            if kept == set(files):
                return
            message = f"the checkpoint lacks {listed_names(sorted(missing))}"
            raise InvalidInput.of(message, field="files")
        _checkpoint_files(job_id).delete()
        new.exclude(path__in=files).delete()
        new.update(kind=_Kind.CHECKPOINT)
        lifecycle.note("checkpoint", {job_id: {"files": len(files)}}, actor=actor)


def checkpoint_blobs(job: Job) -> dict[str, Blob]:
    """The files of the job's last checkpoint, by name; none before the first."""
    return {file.path: file.blob for file in _checkpoint_files(job.pk).select_related("blob")}


def has_checkpoint(job_id: int) -> bool:
    """Whether a job has a checkpoint to go on from."""
    return _checkpoint_files(job_id).exists()


def _checkpoint_files(job_id: int) -> models.QuerySet[AttemptFile]:
    return AttemptFile.objects.filter(attempt__job_id=job_id, kind=_Kind.CHECKPOINT)
