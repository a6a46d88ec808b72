"""Models of script runs, of rescues and save points, and of submission limits that DAGs share."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from wms.dags.models.dags import Dag
from wms.dags.models.nodes import Node
from wms.dags.states import ScriptKind, ScriptState
from wms.jobs.content.paths import MAX_PATH_BYTES
from wms.jobs.models import Blob, Workspace
from wms.sites.models import Site


class ScriptRun(models.Model):
    """One run of a script of a node: requested and granted by the engine, run by the script
    service.

    It runs at most once to its end: the end is recorded once, by the holder of the lease.
    `arguments` have their macros expanded.
    """

    dag = models.ForeignKey(Dag, on_delete=models.CASCADE, related_name="script_runs")
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="script_runs")
    kind = models.CharField(max_length=4, choices=ScriptKind)
    retry_number = models.PositiveIntegerField(help_text="Of the node's attempt.")
    run_number = models.PositiveIntegerField(default=0, help_text="0, and more after DEFER.")
    executable = models.CharField(max_length=1024)
    arguments = ArrayField(models.TextField(), default=list)
    directory = models.CharField(max_length=MAX_PATH_BYTES, blank=True)
    state = models.CharField(max_length=8, choices=ScriptState, default=ScriptState.WAITING)
    asked_at = models.DateTimeField(db_default=Now())
    due_at = models.DateTimeField(null=True, help_text="Not before this time.")
    started_at = models.DateTimeField(null=True)
    lease = models.CharField(max_length=64, blank=True, help_text="Of the service that runs it.")
    lease_until = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    exit_code = models.IntegerField(
        null=True, help_text="Of its end; minus the signal's number. 1 if it could not be started."
    )
    failure = models.TextField(blank=True, help_text="Why it could not be started, or was ended.")
    output = models.ForeignKey(
        Blob, null=True, on_delete=models.PROTECT, related_name="+", help_text="stdout and stderr."
    )

    class Meta:
        ordering = ["pk"]
        indexes = [
            models.Index(fields=["node", "id"], name="script_by_node"),
            # The queue of the engine and of the service.
            models.Index(
                fields=["dag", "kind", "state", "id"],
                condition=~models.Q(state="ended"),
                name="script_not_ended",
            ),
            models.Index(
                fields=["state", "id"],
                condition=models.Q(state__in=["granted", "running"]),
                name="script_for_the_service",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["node"],
                condition=~models.Q(state="ended") & ~models.Q(kind="hold"),
                name="node_has_one_script_at_a_time",
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=ScriptState.values), name="script_state_known"
            ),
            models.CheckConstraint(
                condition=~models.Q(state="ended") | models.Q(exit_code__isnull=False),
                name="script_ended_has_code",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} script of node {self.node_id}, run {self.run_number}"


class Rescue(models.Model):
    """A rescue file or save point in the workspace: the progress of a run."""

    class Kind(models.TextChoices):
        """Purpose of the file."""

        RESCUE = "rescue", "rescue"
        SAVE_POINT = "save", "save point"

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="rescues")
    dag_file = models.CharField(
        max_length=MAX_PATH_BYTES, help_text="Whose progress it is, in the workspace."
    )
    kind = models.CharField(max_length=6, choices=Kind, default=Kind.RESCUE)
    number = models.PositiveSmallIntegerField(help_text="0 for save points.")
    path = models.CharField(max_length=MAX_PATH_BYTES, help_text="The file in the workspace.")
    dag = models.ForeignKey(
        Dag, null=True, on_delete=models.SET_NULL, related_name="rescues", help_text="Who wrote it."
    )
    blob = models.ForeignKey(Blob, on_delete=models.PROTECT, related_name="+")
    done_count = models.PositiveIntegerField()
    failed_count = models.PositiveIntegerField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["pk"]
        indexes = [
            models.Index(fields=["workspace", "dag_file", "number"], name="rescue_by_file"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["workspace", "path"], name="rescue_path_unique"),
        ]

    def __str__(self) -> str:
        return self.path


class SharedLimit(models.Model):
    """Limit on submitted nodes over all DAGs of a user, at a site, or both.

    With a category it counts the nodes of that category only.
    """

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="dag_limits",
    )
    site = models.ForeignKey(
        Site, null=True, blank=True, on_delete=models.CASCADE, related_name="dag_limits"
    )
    category = models.CharField(max_length=255, blank=True)
    max_jobs = models.PositiveIntegerField(help_text="Nodes submitted at once; 0 lets none be.")
    note = models.CharField(max_length=200, blank=True, help_text="What it protects.")

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "site", "category"],
                name="shared_limit_unique",
                nulls_distinct=False,
            ),
        ]

    def __str__(self) -> str:
        whose = f"DAGs of {self.owner}" if self.owner else "all DAGs"
        where = f" at {self.site}" if self.site else ""
        of = f" of category {self.category}" if self.category else ""
        return f"nodes{of} of {whose}{where}"
