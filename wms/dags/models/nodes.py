"""Models of nodes and arcs of DAGs, node timers and events, and shared submit descriptions.

Also of a node's work beyond one job: scripts, lists of jobs, inner DAG, placement request.
"""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from wms.core.models import EventRecord
from wms.dags.models.dags import Dag
from wms.dags.states import NodeCause, NodeKind, NodeState
from wms.jobs.content.paths import MAX_PATH_BYTES
from wms.jobs.models import Job
from wms.placement.models import PlacementRequest


class SubmitDescription(models.Model):
    """A submit file of a DAG, shared by the nodes that name it."""

    dag = models.ForeignKey(Dag, on_delete=models.CASCADE, related_name="submit_descriptions")
    name = models.CharField(max_length=MAX_PATH_BYTES)
    content = models.JSONField(help_text="Commands and attributes, macros not yet expanded.")
    sha256 = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="Of the file that it was read from; empty where it stands in the DAG file.",
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["dag", "name"], name="submit_description_unique"),
        ]

    def __str__(self) -> str:
        return self.name


class Node(models.Model):
    """One node of a DAG: one cluster of jobs, inner DAG or placement at a time, retried.

    Properties that few nodes have are in `features`, so that rows stay small: see
    `wms.dags.engine.node_features`.
    """

    dag = models.ForeignKey(
        Dag, on_delete=models.CASCADE, related_name="nodes", db_index=False, db_constraint=False
    )
    name = models.CharField(max_length=255)
    kind = models.CharField(max_length=12, choices=NodeKind, default=NodeKind.JOB, db_default="job")
    ordinal = models.PositiveIntegerField(help_text="Place in the DAG file.")
    submit_description = models.ForeignKey(
        SubmitDescription,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="nodes",
        db_index=False,
        db_constraint=False,
        help_text="Empty while its file is not there, and for nodes that run something else.",
    )
    directory = models.CharField(
        max_length=MAX_PATH_BYTES,
        blank=True,
        db_default="",
        help_text="Where in the workspace it runs.",
    )
    variables = models.JSONField(
        default=dict, help_text="VARS of the node that stand before its description."
    )
    features = models.JSONField(null=True, blank=True)
    priority = models.IntegerField(default=0, db_default=0)
    category = models.CharField(max_length=255, blank=True, db_default="")
    state = models.CharField(max_length=16, choices=NodeState, default=NodeState.WAITING)
    state_since = models.DateTimeField(db_default=Now())
    state_reason = models.TextField(blank=True)
    state_cause = models.CharField(
        max_length=16,
        choices=NodeCause,
        blank=True,
        default="",
        db_default="",
        help_text="Why it came into its state; empty where nothing went wrong and nobody acted.",
    )
    ready_rank = models.BigIntegerField(
        null=True, help_text="Place in the ready queue among equal priorities, while it is ready."
    )
    unfinished_parents = models.PositiveIntegerField(default=0)
    max_retries = models.PositiveIntegerField(default=0)
    retry_number = models.PositiveIntegerField(default=0)
    job = models.ForeignKey(
        Job,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="nodes",
        db_index=False,
        db_constraint=False,
        help_text="The first job of its latest cluster.",
    )
    is_plain = models.BooleanField(
        default=False,
        db_default=False,
        help_text="All that becomes of it follows from its one job's end: see engine.node_work.",
    )

    class Meta:
        ordering = ["ordinal"]
        indexes = [
            models.Index(fields=["dag", "ordinal"], name="node_by_dag_and_place"),
            # No index tells of the state: so most changes of it need no new entries in any.
            models.Index(
                fields=["dag", "-priority", "ready_rank", "ordinal"],
                condition=models.Q(ready_rank__isnull=False),
                name="node_ready_queue",
            ),
            # Without those that have none yet: they would have entries for nothing.
            models.Index(fields=["job"], condition=models.Q(job__isnull=False), name="node_by_job"),
            # FINAL and its like, and gates: few of a DAG's nodes.
            models.Index(
                fields=["dag", "kind"],
                condition=models.Q(kind__in=["final", "service", "provisioner", "gate"]),
                name="node_rare_kinds",
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["dag", "name"], name="node_name_unique"),
            models.CheckConstraint(
                condition=models.Q(state__in=NodeState.values), name="node_state_known"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class NodeWork(models.Model):
    """Work of a node beyond one job: scripts, lists of jobs, inner DAGs, placements, gates.

    Nodes without such have no row; it is written, read and deleted in `wms.dags.engine.node_work`
    alone.
    """

    node = models.OneToOneField(
        Node, primary_key=True, on_delete=models.CASCADE, related_name="work", db_constraint=False
    )
    pre_code = models.IntegerField(null=True, help_text="What PRE gave in this attempt.")
    inner_dag = models.ForeignKey(
        Dag,
        null=True,
        # One that is gone is told so.
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_index=False,
        db_constraint=False,
        help_text="The DAG inside of it.",
    )
    request = models.ForeignKey(
        PlacementRequest,
        null=True,
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_index=False,
        db_constraint=False,
        help_text="The placement that it runs.",
    )
    job_count = models.PositiveIntegerField(default=1, help_text="Of its list of jobs.")
    jobs_left = models.PositiveIntegerField(default=1, help_text="That have not ended.")
    jobs_failed = models.PositiveIntegerField(default=0)
    failure_code = models.IntegerField(null=True, help_text="Of the first job that failed.")
    failure_reason = models.TextField(blank=True, default="")
    hold_count = models.PositiveIntegerField(default=0, help_text="How often its jobs were held.")
    is_provisioned = models.BooleanField(
        default=False, help_text="A provisioner that has said that it is ready."
    )
    is_fresh = models.BooleanField(
        default=False, help_text="Its inner DAG begins anew, and from no rescue."
    )
    waits_since = models.DateTimeField(
        null=True, help_text="When a gate began to wait for a person, or for its time."
    )
    is_tolerated = models.BooleanField(
        default=False,
        db_default=False,
        help_text="It failed, and its category tolerates that: its children go on.",
    )

    class Meta:
        indexes = [
            models.Index(
                fields=["request"],
                condition=models.Q(request__isnull=False),
                name="node_by_request",
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(inner_dag=None) | models.Q(request=None),
                name="node_runs_one_thing",
            ),
            models.CheckConstraint(
                condition=models.Q(jobs_left__lte=models.F("job_count")),
                name="node_has_no_more_jobs_left_than_all",
            ),
        ]

    def __str__(self) -> str:
        return f"work of node {self.node_id}"


class NodeTimer(models.Model):
    """Deadline of an attempt of a node, in the queue or running, or of a gate."""

    class Kind(models.TextChoices):
        """Kind of the deadline."""

        QUEUE = "queue", "in the queue"
        RUN = "run", "running"
        GATE = "gate", "of a gate"

    dag = models.ForeignKey(Dag, on_delete=models.CASCADE, related_name="+", db_index=False)
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="timers")
    kind = models.CharField(max_length=5, choices=Kind)
    retry_number = models.PositiveIntegerField(help_text="Of the node's attempt.")
    limit_s = models.PositiveIntegerField()
    due_at = models.DateTimeField(db_index=True)

    class Meta:
        indexes = [models.Index(fields=["dag", "due_at"], name="timer_by_dag")]

    def __str__(self) -> str:
        return f"{self.kind} limit of node {self.node_id}"


class Edge(models.Model):
    """An arc from a parent to a child, which waits for it; over a weak one, whatever its result."""

    parent = models.ForeignKey(
        Node,
        on_delete=models.CASCADE,
        related_name="child_edges",
        db_index=False,
        db_constraint=False,
    )
    child = models.ForeignKey(
        Node, on_delete=models.CASCADE, related_name="parent_edges", db_constraint=False
    )
    is_weak = models.BooleanField(default=False, db_default=False)
    is_joined = models.BooleanField(
        default=False,
        db_default=False,
        help_text="The child has a `Join`, in which it counts, and not among unfinished parents.",
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["parent", "child"], name="edge_unique")]

    def __str__(self) -> str:
        return f"{self.parent_id} -> {self.child_id}"


class NodeEvent(EventRecord):
    """One change of a node. Within a DAG the ids are in the order of the changes.

    There is no index of the ids alone: an event is found with its DAG or node, or as a failure.
    """

    dag = models.ForeignKey(
        Dag,
        on_delete=models.CASCADE,
        related_name="node_events",
        db_index=False,
        db_constraint=False,
    )
    node = models.ForeignKey(
        Node, on_delete=models.CASCADE, related_name="events", db_index=False, db_constraint=False
    )
    cause = models.CharField(
        max_length=16, choices=NodeCause, blank=True, default="", db_default=""
    )

    class Meta:
        indexes = [
            # Without the event's id: the few events of a node are put in order.
            models.Index(fields=["node"], name="nodeevent_by_node"),
            models.Index(
                fields=["dag", "created_at"],
                condition=models.Q(event__in=["fail", "retry"]),
                name="nodeevent_failures",
            ),
            # By what announces them.
            models.Index(
                fields=["id"],
                condition=models.Q(event__in=["fail", "retry"]),
                name="nodeevent_announced",
            ),
        ]
        constraints = [
            # In place of a primary key of the ids alone, which would be an index more.
            models.UniqueConstraint(fields=["dag", "id"], name="nodeevent_by_dag"),
        ]

    def __str__(self) -> str:
        return f"node {self.node_id}: {self.event}"
