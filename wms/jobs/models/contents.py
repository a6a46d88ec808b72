"""Stored contents, and the workspaces in which files pass from job to job."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class Blob(models.Model):
    """Content in the store, named by its SHA-256. Equal files are kept once."""

    sha256 = models.CharField(max_length=64, primary_key=True)
    size_bytes = models.BigIntegerField()
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.sha256[:12]


class Workspace(models.Model):
    """The files of one DAG, or of one single job: what was submitted and what came back.

    It is what the submit directory is to DAGMan: jobs take their input files from it by name, and
    the output files of a completed job appear in it.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"workspace {self.pk}"
