"""Models of stored contents (blobs), of workspaces of files, and of the bytes stored there.

Jobs pass files on to each other in a workspace; the bytes count for a user and group, for quotas.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class Blob(models.Model):
    """Content in the store, named by its SHA-256. Equal files are kept once."""

    sha256 = models.CharField(max_length=64, primary_key=True)
    size_bytes = models.BigIntegerField()
    created_at = models.DateTimeField(db_default=Now())
    unnamed_since = models.DateTimeField(
        null=True, blank=True, help_text="When nothing was found to name it; empty while in use."
    )

    class Meta:
        indexes = [
            # What the sweeper looks at.
            models.Index(
                fields=["unnamed_since"],
                condition=models.Q(unnamed_since__isnull=False),
                name="blob_unnamed",
            ),
        ]

    def __str__(self) -> str:
        return self.sha256[:12]


class Workspace(models.Model):
    """The files of one DAG, cluster or single job: what was submitted and what came back.

    It is what the submit directory is to DAGMan: jobs take their input files from it by name, and
    the output files of a completed job appear in it, but for jobs of a cluster of their own.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    owner_group = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="The group in whose name it was submitted, for quotas.",
    )
    # No foreign key: without its frontend it is to reach nothing, and not everything.
    limited_to = models.BigIntegerField(
        null=True,
        blank=True,
        editable=False,
        help_text="Id of the frontend that the token was limited to by which it was submitted: "
        "its owner's data are within reach as far as they are this one's. Empty: all are.",
    )
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"workspace {self.pk}"


class StoredBytes(models.Model):
    """An entry in the size of all files in the workspaces of a user and group; the sum counts.

    Triggers of the table of workspace files add entries, in the statement that adds, replaces or
    deletes files, whoever it comes from; so nobody waits for others. `wms.jobs.quotas`
    sums them up.
    """

    # Its check would lock the user's row at the end of every job.
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_constraint=False
    )
    owner_group = models.CharField(max_length=64, blank=True, db_default="")
    size_bytes = models.BigIntegerField(help_text="What came; negative: went.")

    class Meta:
        indexes = [
            models.Index(fields=["owner_group"], name="stored_bytes_by_group"),
        ]

    def __str__(self) -> str:
        return f"user {self.owner_id}, group {self.owner_group!r}: {self.size_bytes:+} bytes"
