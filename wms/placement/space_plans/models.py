"""Model of plans: what the data nodes of a DAG take of storages and give back, in which order."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from wms.jobs.models import Workspace


class SpacePlan(models.Model):
    """Allocations of a DAG that has not ended, by the places at which they are made and released.

    A DAG of which no order was found that fits into the storages has none.
    """

    dag = models.BigIntegerField(unique=True, help_text="The key of its requests' topic.")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    mark = models.CharField(
        max_length=64, help_text="Of the nodes and the site for which it was made."
    )
    claims = models.JSONField(
        default=list, help_text="Name, storage, bytes, place of the making and of the release."
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-dag"]

    def __str__(self) -> str:
        return f"space plan of DAG {self.dag}"
