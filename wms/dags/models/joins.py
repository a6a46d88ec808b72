"""Models of nodes that decide: conditions of arcs, and joins with the counts of arcs that hold."""

from __future__ import annotations

from django.db import models

from wms.dags.models.nodes import Node


class Condition(models.Model):
    """WHEN of one arc: an expression over the parent's outcome, and what came of it.

    The arc itself is an `Edge`; the few that have a condition have a row here as well.
    """

    parent = models.ForeignKey(
        Node, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    child = models.ForeignKey(
        Node, on_delete=models.CASCADE, related_name="conditions", db_constraint=False
    )
    expression = models.TextField(help_text="In ClassAd language.")
    holds = models.BooleanField(null=True, help_text="Empty until the parent has ended.")
    reason = models.TextField(
        blank=True, default="", db_default="", help_text="Why it does or not."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["parent", "child"], name="condition_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.parent_id} -> {self.child_id} when {self.expression}"


class Join(models.Model):
    """Counts of the arcs of a node that may be skipped: those that hold, and those that do not.

    A node has one if it, or any node above it, has a JOIN or comes after a condition. Each arc is
    counted once, when its parent has ended; `lost_count` are those that do not hold because of a
    failure that nothing handles.
    """

    node = models.OneToOneField(
        Node, primary_key=True, on_delete=models.CASCADE, related_name="join", db_constraint=False
    )
    needed_count = models.PositiveIntegerField(help_text="So many arcs have to hold.")
    arc_count = models.PositiveIntegerField()
    held_count = models.PositiveIntegerField(default=0, db_default=0)
    ruled_out_count = models.PositiveIntegerField(default=0, db_default=0)
    lost_count = models.PositiveIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(
                    arc_count__gte=models.F("held_count")
                    + models.F("ruled_out_count")
                    + models.F("lost_count")
                ),
                name="join_counts_each_arc_once",
            ),
        ]

    def __str__(self) -> str:
        return f"join of node {self.node_id}: {self.held_count} of {self.needed_count}"
