"""Clusters of jobs with their tables of parameters, their faulty rows and their events, as rows."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from wms.accounting.models import AccountingGroup
from wms.core.models import EventRecord
from wms.jobs.clusters.states import CLUSTER_ALIVE, ClusterCause, ClusterState
from wms.jobs.models.contents import Blob, Workspace

#: Jobs that wait, and that are there and not ended, before no more are made.
DEFAULT_MAX_IDLE = 2_000
DEFAULT_MAX_MATERIALIZE = 20_000


class Cluster(models.Model):
    """Jobs that were submitted as one, by one description and a table of parameters.

    Its id is of the sequence of the jobs' ids, so that the cluster of a job without a DAG is never
    mistaken for that of a node. Rows of the table become jobs one after the other; `next_process`
    moves in the transaction that stores them. The counts are of rows that have ended: what is alive
    is the rest of those made.
    """

    class Language(models.TextChoices):
        """Languages of descriptions."""

        SUBMIT = "submit", "submit language"
        JSON = "json", "JSON"

    id = models.BigIntegerField(primary_key=True)
    name = models.CharField(max_length=255)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="clusters", db_index=False
    )
    accounting_group = models.ForeignKey(
        AccountingGroup, null=True, blank=True, on_delete=models.PROTECT, related_name="clusters"
    )
    labels = ArrayField(models.CharField(), default=list, blank=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="clusters")
    state = models.CharField(max_length=16, choices=ClusterState, default=ClusterState.ACTIVE)
    state_since = models.DateTimeField(db_default=Now())
    state_reason = models.TextField(blank=True)
    state_cause = models.CharField(
        max_length=16,
        choices=ClusterCause,
        blank=True,
        default="",
        db_default="",
        help_text="Why it came into its state; empty where nothing went wrong and nobody acted.",
    )
    language = models.CharField(max_length=8, choices=Language)
    description = models.ForeignKey(Blob, on_delete=models.PROTECT, related_name="+")
    selection = models.ForeignKey(
        Blob,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="Which jobs of its tables it has, as a rerun; all without.",
    )
    size = models.BigIntegerField(help_text="Rows of its table, each of which is one job.")
    next_process = models.BigIntegerField(default=0, db_default=0, help_text="Rows made so far.")
    done_count = models.BigIntegerField(default=0, db_default=0)
    failed_count = models.BigIntegerField(default=0, db_default=0)
    killed_count = models.BigIntegerField(default=0, db_default=0)
    faulty_count = models.BigIntegerField(
        default=0, db_default=0, help_text="Rows that no job could be made of."
    )
    max_idle = models.PositiveIntegerField(default=DEFAULT_MAX_IDLE, db_default=DEFAULT_MAX_IDLE)
    max_materialize = models.PositiveIntegerField(
        default=DEFAULT_MAX_MATERIALIZE, db_default=DEFAULT_MAX_MATERIALIZE
    )
    overrides = models.JSONField(
        default=dict,
        db_default=models.Value({}, models.JSONField()),
        blank=True,
        help_text="What was changed since: priority, sites, banned_sites, memory_mb.",
    )
    pending_changes = models.JSONField(
        null=True, blank=True, help_text="Those that jobs made before have not all got yet."
    )
    pending_from = models.BigIntegerField(
        default=0, db_default=0, help_text="Jobs before this process have them."
    )
    deadline = models.DateTimeField(null=True, blank=True, help_text="It is removed then.")
    look_at = models.DateTimeField(
        null=True, blank=True, db_default=Now(), help_text="When to look whether rows can be made."
    )
    delay_reason = models.CharField(
        max_length=200, blank=True, db_default="", help_text="Why no rows are made at present."
    )
    previous = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="reruns",
        help_text="The cluster whose failed rows it runs again.",
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [
            # The list of clusters: those of an owner, and those in a state, latest first.
            models.Index(fields=["owner", "-id"], name="cluster_by_owner"),
            models.Index(fields=["state", "-id"], name="cluster_by_state"),
            # What the materialiser has to look at, and what has a deadline.
            models.Index(
                fields=["look_at", "id"], condition=Q(look_at__isnull=False), name="cluster_due"
            ),
            models.Index(
                fields=["deadline"],
                condition=Q(deadline__isnull=False, state__in=sorted(CLUSTER_ALIVE)),
                name="cluster_by_deadline",
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=ClusterState.values), name="cluster_state_known"
            ),
            models.CheckConstraint(condition=Q(size__gte=1), name="cluster_has_jobs"),
            models.CheckConstraint(
                condition=Q(next_process__gte=0, next_process__lte=F("size")),
                name="cluster_process_in_table",
            ),
            models.CheckConstraint(
                condition=Q(
                    done_count__gte=0, failed_count__gte=0, killed_count__gte=0, faulty_count__gte=0
                )
                & Q(
                    next_process__gte=F("done_count")
                    + F("failed_count")
                    + F("killed_count")
                    + F("faulty_count")
                ),
                name="cluster_counts_agree",
            ),
            models.CheckConstraint(
                condition=~Q(state="completed")
                | Q(
                    size=F("done_count") + F("failed_count") + F("killed_count") + F("faulty_count")
                ),
                name="cluster_completed_has_ended",
            ),
            models.CheckConstraint(
                condition=~Q(state="held") | ~Q(state_reason=""), name="cluster_held_has_reason"
            ),
            models.CheckConstraint(
                condition=Q(max_idle__gte=1, max_materialize__gte=1),
                name="cluster_limits_positive",
            ),
        ]

    def __str__(self) -> str:
        return f"cluster {self.pk}"

    @property
    def made_count(self) -> int:
        """Rows that jobs were made of."""
        return self.next_process - self.faulty_count

    @property
    def ended_count(self) -> int:
        """Jobs that have ended."""
        return self.done_count + self.failed_count + self.killed_count

    @property
    def live_count(self) -> int:
        """Jobs that have not ended, as far as their ends were counted."""
        return self.made_count - self.ended_count

    @property
    def waiting_rows(self) -> int:
        """Rows that jobs will still be made of."""
        return 0 if self.state == ClusterState.REMOVED else self.size - self.next_process

    @property
    def never_made_count(self) -> int:
        """Rows that were left when it was removed."""
        return self.size - self.next_process if self.state == ClusterState.REMOVED else 0


class ClusterTable(models.Model):
    """The table of one queue statement: its rows, and how many jobs each of them makes.

    Few rows stand in `items`; many are a content, and `offsets` tells where every so many of them
    begin (`wms.jobs.clusters.parameters.row_index`), so that any row is read without those before
    it. A slice takes its rows from `first_row` on by steps.
    """

    class Kind(models.TextChoices):
        """How a row gives values to the variables."""

        NUMBERS = "numbers", "it has a number only"
        WORDS = "words", "as a whole, to the first variable"
        COMMAS = "commas", "separated by commas"
        BLANKS = "blanks", "separated by blanks; the last variable gets the rest"
        CELLS = "cells", "separated by the character 31"

    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, related_name="tables", db_index=False
    )
    place = models.PositiveSmallIntegerField(help_text="Of the statement in the description.")
    kind = models.CharField(max_length=8, choices=Kind)
    first_process = models.BigIntegerField()
    row_count = models.BigIntegerField()
    jobs_per_row = models.BigIntegerField()
    items = models.JSONField(null=True, blank=True)
    content = models.ForeignKey(
        Blob, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    offsets = models.BinaryField(null=True, blank=True)
    first_row = models.BigIntegerField(default=0, db_default=0)
    row_step = models.BigIntegerField(default=1, db_default=1)

    class Meta:
        ordering = ["place"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "place"], name="cluster_table_unique"),
            models.CheckConstraint(
                condition=Q(kind="numbers", items__isnull=True, content__isnull=True)
                | (
                    ~Q(kind="numbers")
                    & (
                        Q(items__isnull=False, content__isnull=True)
                        | Q(items__isnull=True, content__isnull=False, offsets__isnull=False)
                    )
                ),
                name="cluster_table_stored_once",
            ),
        ]

    def __str__(self) -> str:
        return f"table {self.place} of cluster {self.cluster_id}"


class ClusterFault(models.Model):
    """A row that no job could be made of; of very many only the first are kept."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="faults")
    process = models.BigIntegerField()
    reason = models.CharField(max_length=1000)

    class Meta:
        ordering = ["process"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "process"], name="cluster_fault_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.cluster_id}.{self.process}: {self.reason}"


class ClusterEvent(EventRecord):
    """One change of a cluster."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="events")
    cause = models.CharField(
        max_length=16, choices=ClusterCause, blank=True, default="", db_default=""
    )

    def __str__(self) -> str:
        return f"cluster {self.cluster_id}: {self.event}"
