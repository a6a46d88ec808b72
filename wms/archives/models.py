"""Model of a kept archive: where its file is, and what a list tells of its DAG."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from wms.accounting.models import AccountingGroup
from wms.dags.states import DAG_TERMINAL, DagState
from wms.jobs.models import Blob


class ArchivedDag(models.Model):
    """An archive of a DAG that was imported to be looked at: it never runs, and counts nowhere.

    Its columns are copied from the manifest of its file. Of a DAG that is known here it has owner
    and group by their keys, for the walls between frontends.
    """

    blob = models.OneToOneField(
        Blob, on_delete=models.PROTECT, related_name="+", help_text="The file."
    )
    installation = models.CharField(
        max_length=1000, blank=True, help_text="Address of the portal where it was written."
    )
    dag_id = models.BigIntegerField(help_text="Number of the DAG there.")
    name = models.CharField(max_length=255)
    owner_name = models.CharField(max_length=150)
    group_name = models.CharField(max_length=64, blank=True)
    is_foreign = models.BooleanField(
        help_text="The DAG is none of this installation: names in it mean nobody here, and "
        "operators alone see it."
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    accounting_group = models.ForeignKey(
        AccountingGroup, null=True, on_delete=models.PROTECT, related_name="+"
    )
    state = models.CharField(max_length=16, choices=DagState)
    state_reason = models.TextField(blank=True)
    product_version = models.CharField(max_length=64, blank=True, help_text="That wrote it.")
    node_counts = models.JSONField(help_text="Nodes of the DAG itself by state.")
    job_counts = models.JSONField(help_text="Jobs by state, of the DAGs inside of it, too.")
    row_counts = models.JSONField(help_text="Rows of the file by kind.")
    failures = models.JSONField(help_text="The first events by which nodes failed.")
    submitted_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    imported_at = models.DateTimeField(db_default=Now())
    imported_by = models.CharField(max_length=160)

    class Meta:
        indexes = [models.Index(fields=["state", "id"], name="archive_by_state")]
        constraints = [
            models.UniqueConstraint(
                fields=["installation", "dag_id", "submitted_at"], name="archive_of_dag_once"
            ),
            models.CheckConstraint(
                condition=Q(state__in=sorted(DAG_TERMINAL)), name="archive_has_ended"
            ),
            models.CheckConstraint(
                condition=Q(is_foreign=True, owner=None, accounting_group=None)
                | Q(is_foreign=False, owner__isnull=False),
                name="archive_own_has_owner",
            ),
        ]

    def __str__(self) -> str:
        return f"archive of DAG {self.dag_id}, {self.name}"

    @property
    def node_count(self) -> int:
        """Number of nodes of the DAG itself."""
        return sum(self.node_counts.values())
