"""Prepared statements of a job's way through its pilot: claim, start, end."""

from __future__ import annotations

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import BooleanField, F, Func, OuterRef, QuerySet
from django.db.models.functions import Coalesce, JSONObject

from wms.core.database.prepared import Parameter, PreparedInsert, PreparedQuery, PreparedUpdate
from wms.jobs.models import Attempt, AttemptFile, Job, WorkspaceFile


def _attempt() -> QuerySet[Attempt]:
    files = AttemptFile.objects.filter(attempt=OuterRef("pk")).order_by("pk")
    file = JSONObject(kind="kind", path="path", blob="blob_id")
    about = {name: Parameter(name) for name in ("job_id", "number", "pilot_id")}
    return Attempt.objects.filter(**about).annotate(sent=ArraySubquery(files.values(file=file)))


def _inputs() -> QuerySet[WorkspaceFile]:
    is_named = Func(
        F("path"),
        Parameter("paths"),
        template="(%(expressions)s))",
        arg_joiner=" = ANY(",
        output_field=BooleanField(),
    )
    in_place = WorkspaceFile.objects.filter(is_named, workspace_id=Parameter("workspace_id"))
    return in_place.select_related("blob")


JOB = PreparedQuery(lambda: Job.objects.filter(pk=Parameter("job_id")))
#: Only the job of an attempt that is this pilot's: no pilot locks the job of another. What the row
#: of the attempt says is read after the lock.
LOCKED_JOB = PreparedQuery(
    lambda: Job.objects.select_for_update(of=("self",)).filter(
        pk=Parameter("job_id"),
        attempts__number=Parameter("number"),
        attempts__pilot_id=Parameter("pilot_id"),
    )
)
#: One attempt of one pilot; `sent_files` tells the files that came with it.
ATTEMPT = PreparedQuery(_attempt)
NEW_ATTEMPT = PreparedInsert(
    Attempt, "job", "number", "pilot_id", "site_name", "host", "claim_key", "job_type",
    "owner_group", "cores", "memory_mb", "gpus", "outcome", "reason",
)  # fmt: skip
_ENDED = (
    "exit_code", "signal", "wall_s", "cpu_s", "max_rss_mb", "stopped_by", "usage", "outcome",
    "reason", "ended_at",
)  # fmt: skip
END_OF_ATTEMPT = PreparedUpdate(
    lambda: Attempt.objects.filter(pk=Parameter("attempt_id")),
    lambda: {
        "started_at": Coalesce("started_at", Parameter("began_at")),
        **{name: Parameter(name) for name in _ENDED},
    },
)
#: Those of the named files that are in a workspace, with their contents.
INPUTS = PreparedQuery(_inputs)


def sent_files(attempt: Attempt) -> list[dict[str, str]]:
    """Kinds, paths and blobs of the files that an attempt read by `ATTEMPT` has sent."""
    files: list[dict[str, str]] = vars(attempt)["sent"]
    return files
