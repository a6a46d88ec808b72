"""Models of a followed DAG: its HTCondor job event log, clusters and processes.

The log's row has the read position, and the irregularities found.
"""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from wms.dags.models.dags import Dag
from wms.dags.models.nodes import Node


class FollowedLog(models.Model):
    """Read position in the log of a followed DAG, and the irregularities found in it."""

    dag = models.OneToOneField(Dag, on_delete=models.CASCADE, related_name="followed_log")
    name = models.CharField(max_length=1024, help_text="Where the log lies, for people.")
    time_zone = models.CharField(
        max_length=64, default="UTC", help_text="Of times in the log that do not tell theirs."
    )
    allow_events = models.PositiveSmallIntegerField(
        help_text="Bad events that are no error, as in DAGMAN_ALLOW_EVENTS."
    )
    byte_offset = models.BigIntegerField(
        default=0, help_text="Behind the last complete event that was taken in."
    )
    event_count = models.PositiveBigIntegerField(default=0)
    warning_count = models.PositiveIntegerField(default=0)
    warnings = models.JSONField(default=list, help_text="The latest ones.")
    fault = models.TextField(blank=True, help_text="Why nothing more is taken in.")
    last_event_at = models.DateTimeField(null=True, blank=True)
    taken_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.name


class FollowedCluster(models.Model):
    """One submission of a node of a followed DAG. Of foreign ones the node is empty.

    NOOP nodes all have cluster 0; `part` is their subprocess, and 0 for real clusters.
    """

    log = models.ForeignKey(
        FollowedLog, on_delete=models.CASCADE, related_name="clusters", db_index=False
    )
    cluster = models.BigIntegerField()
    part = models.BigIntegerField(default=0)
    node = models.ForeignKey(
        Node, null=True, on_delete=models.CASCADE, related_name="followed_clusters"
    )
    submitted = models.PositiveIntegerField(default=0)
    running = models.PositiveIntegerField(default=0)
    held = models.PositiveIntegerField(default=0)
    ended = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    code = models.IntegerField(default=0, help_text="Of the first process that failed.")
    reason = models.TextField(blank=True)
    is_growing = models.BooleanField(default=False, help_text="More of its jobs may be made.")
    is_closed = models.BooleanField(default=False, help_text="Its node has gone on.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["log", "cluster", "part"], name="followed_cluster_unique"
            ),
        ]

    def __str__(self) -> str:
        return f"cluster {self.cluster} of followed log {self.log_id}"


class FollowedProcess(models.Model):
    """A process of a cluster, with the events that may come once only."""

    class Phase(models.TextChoices):
        """Phase of the job."""

        IDLE = "idle", "idle"
        RUNNING = "running", "running"
        HELD = "held", "held"
        ENDED = "ended", "ended"

    cluster = models.ForeignKey(
        FollowedCluster, on_delete=models.CASCADE, related_name="processes", db_index=False
    )
    process = models.BigIntegerField()
    phase = models.CharField(max_length=7, choices=Phase, default=Phase.IDLE)
    submits = models.PositiveIntegerField(default=0)
    executes = models.PositiveIntegerField(default=0)
    ends = models.PositiveIntegerField(default=0)
    aborts = models.PositiveIntegerField(default=0)
    posts = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "process"], name="followed_process_unique"),
            models.CheckConstraint(
                condition=models.Q(phase__in=["idle", "running", "held", "ended"]),
                name="followed_process_phase_known",
            ),
        ]

    def __str__(self) -> str:
        return f"process {self.process} of followed cluster {self.cluster_id}"
