"""Model of the growth of a DAG while it runs: passes of repeated nodes, fragments."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from wms.dags.models.dags import Dag
from wms.dags.models.nodes import Node
from wms.dags.states import GrowthKind
from wms.jobs.content.paths import MAX_PATH_BYTES


class Growth(models.Model):
    """One insertion of nodes into a DAG; they have the places from `first_ordinal` on.

    Nodes and arcs themselves are rows like all others. What stood in the DAG files is not here.
    """

    dag = models.ForeignKey(
        Dag, on_delete=models.CASCADE, related_name="growths", db_index=False, db_constraint=False
    )
    number = models.PositiveIntegerField(help_text="Of the insertions of this DAG, from 1 on.")
    kind = models.CharField(max_length=8, choices=GrowthKind)
    node = models.OneToOneField(
        Node,
        null=True,
        on_delete=models.CASCADE,
        related_name="growth",
        db_constraint=False,
        help_text="The node after whose end they were inserted.",
    )
    path = models.CharField(
        max_length=MAX_PATH_BYTES,
        blank=True,
        default="",
        help_text="The copy of the fragment in the workspace; empty for a pass.",
    )
    after = ArrayField(
        models.CharField(),
        default=list,
        help_text="Names of the nodes that a fragment was added behind.",
    )
    before = ArrayField(
        models.CharField(), default=list, help_text="And of those that it was added before."
    )
    first_ordinal = models.PositiveIntegerField()
    node_count = models.PositiveIntegerField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["dag", "number"], name="growth_number_unique"),
            models.CheckConstraint(
                condition=models.Q(kind__in=GrowthKind.values), name="growth_kind_known"
            ),
        ]

    def __str__(self) -> str:
        return f"growth {self.number} of DAG {self.dag_id}"
