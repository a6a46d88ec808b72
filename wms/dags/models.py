"""DAGs, their nodes and edges, and the submit descriptions that nodes share."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models.functions import Now

from wms.accounting.models import AccountingGroup
from wms.core.models import EventRecord
from wms.dags.states import DagState, NodeState
from wms.jobs.models import Job, Workspace
from wms.sites.models import Site


class Dag(models.Model):
    """A workflow, matched to a site as a whole.

    The counters follow the nodes' states in the transactions that change them, so that progress
    is read without counting nodes.
    """

    name = models.CharField(max_length=255)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="dags"
    )
    workspace = models.OneToOneField(Workspace, on_delete=models.PROTECT, related_name="dag")
    idempotency_key = models.CharField(max_length=128, null=True, blank=True)
    state = models.CharField(max_length=16, choices=DagState, default=DagState.IDLE)
    state_since = models.DateTimeField(db_default=Now())
    state_reason = models.TextField(blank=True)
    ad_attributes = models.JSONField(
        default=dict,
        help_text="Expressions of the DAG's own ad by name, Requirements and Rank among them.",
    )
    environment_template = models.TextField(
        default="$$(SiteEnvironment:)", help_text="The DAG's environment before the match."
    )
    site = models.ForeignKey(
        Site, null=True, blank=True, on_delete=models.PROTECT, related_name="dags"
    )
    matched_at = models.DateTimeField(null=True, blank=True)
    match_attributes = models.JSONField(
        default=dict, help_text="The site's ad at the time of the match."
    )
    environment = models.JSONField(default=dict, help_text="What $ENV(NAME) means in the nodes.")
    substitutions = models.JSONField(
        default=dict,
        db_default=models.Value({}, models.JSONField()),
        help_text="What $$(...) stood for in the environment, as MATCH_<Attr>.",
    )
    accounting_group = models.ForeignKey(
        AccountingGroup, null=True, blank=True, on_delete=models.PROTECT, related_name="dags"
    )
    concurrency_limits = models.JSONField(
        default=dict, help_text="How much of each limit the DAG takes while it runs, by name."
    )
    rematch_expression = models.TextField(
        blank=True, help_text="When true for a running DAG, its match is taken back."
    )
    rematch_count = models.PositiveSmallIntegerField(default=0, db_default=0)
    policy_rematch_count = models.PositiveSmallIntegerField(
        default=0,
        db_default=0,
        help_text="Rematches by policy since a person last rematched or released the DAG.",
    )
    looked_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="When a negotiation that could not look at all DAGs looked at this one.",
    )
    unmatched_reason = models.TextField(
        blank=True, help_text="Why the last negotiation found no site."
    )
    node_count = models.PositiveIntegerField(default=0)
    done_count = models.PositiveIntegerField(default=0)
    failed_count = models.PositiveIntegerField(default=0)
    futile_count = models.PositiveIntegerField(default=0)
    submitted_count = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["state", "id"], name="dag_by_state"),
            models.Index(fields=["site", "state"], name="dag_by_site_and_state"),
            models.Index(
                fields=["looked_at"],
                condition=models.Q(looked_at__isnull=False),
                name="dag_looked_at",
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=DagState.values), name="dag_state_known"
            ),
            models.CheckConstraint(
                condition=~models.Q(state="running") | models.Q(site__isnull=False),
                name="dag_running_has_site",
            ),
            models.CheckConstraint(
                condition=~models.Q(state="held") | ~models.Q(state_reason=""),
                name="dag_held_has_reason",
            ),
            models.UniqueConstraint(fields=["owner", "idempotency_key"], name="dag_submitted_once"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.pk})"


class MatchRecord(models.Model):
    """One stay of a DAG at a site, from the match to its end; open while `ended_at` is empty."""

    class End(models.TextChoices):
        """How a stay ended."""

        COMPLETE = "complete", "completed"
        FAIL = "fail", "failed"
        REMOVE = "remove", "removed"
        HOLD = "hold", "held before it began"
        UNFIT = "unfit", "no queue could run it"
        REMATCH = "rematch", "rematched by hand"
        POLICY = "policy", "rematched by policy"

    dag = models.ForeignKey(Dag, on_delete=models.CASCADE, related_name="matches")
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="matches")
    matched_at = models.DateTimeField()
    dag_rank = models.FloatField(default=0.0)
    site_rank = models.FloatField(default=0.0)
    ended_at = models.DateTimeField(null=True, blank=True)
    end = models.CharField(max_length=32, choices=End, blank=True)
    reason = models.TextField(blank=True)
    avoided_until = models.DateTimeField(
        null=True, blank=True, help_text="The DAG does not come back before this time."
    )

    class Meta:
        indexes = [
            models.Index(fields=["dag", "-matched_at"], name="match_by_dag"),
            models.Index(fields=["site", "ended_at"], name="match_by_site_and_end"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["dag"], condition=models.Q(ended_at=None), name="dag_has_one_open_match"
            ),
        ]

    def __str__(self) -> str:
        return f"DAG {self.dag_id} at site {self.site_id}"


class SubmitDescription(models.Model):
    """A submit file of a DAG, shared by the nodes that name it."""

    dag = models.ForeignKey(Dag, on_delete=models.CASCADE, related_name="submit_descriptions")
    name = models.CharField(max_length=255)
    content = models.JSONField(help_text="Commands and attributes, macros not yet expanded.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["dag", "name"], name="submit_description_unique"),
        ]

    def __str__(self) -> str:
        return self.name


class Node(models.Model):
    """One node of a DAG: one job at a time, retried up to `max_retries` times."""

    dag = models.ForeignKey(Dag, on_delete=models.CASCADE, related_name="nodes")
    name = models.CharField(max_length=255)
    ordinal = models.PositiveIntegerField(help_text="Place in the DAG file.")
    submit_description = models.ForeignKey(
        SubmitDescription, on_delete=models.PROTECT, related_name="nodes"
    )
    variables = models.JSONField(default=dict, help_text="VARS of the node.")
    state = models.CharField(max_length=16, choices=NodeState, default=NodeState.WAITING)
    state_since = models.DateTimeField(db_default=Now())
    state_reason = models.TextField(blank=True)
    unfinished_parents = models.PositiveIntegerField(default=0)
    max_retries = models.PositiveIntegerField(default=0)
    retry_number = models.PositiveIntegerField(default=0)
    job = models.ForeignKey(
        Job, null=True, blank=True, on_delete=models.SET_NULL, related_name="nodes"
    )

    class Meta:
        ordering = ["ordinal"]
        indexes = [
            models.Index(fields=["dag", "state", "ordinal"], name="node_by_dag_state_and_place"),
            models.Index(fields=["dag", "ordinal"], name="node_by_dag_and_place"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["dag", "name"], name="node_name_unique"),
            models.CheckConstraint(
                condition=models.Q(state__in=NodeState.values), name="node_state_known"
            ),
            models.CheckConstraint(
                condition=~models.Q(state="submitted") | models.Q(job__isnull=False),
                name="node_submitted_has_job",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Edge(models.Model):
    """An arc from a parent to a child, which waits for it."""

    dag = models.ForeignKey(Dag, on_delete=models.CASCADE, related_name="edges")
    parent = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="child_edges")
    child = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="parent_edges")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["parent", "child"], name="edge_unique")]

    def __str__(self) -> str:
        return f"{self.parent_id} -> {self.child_id}"


class DagEvent(EventRecord):
    """One change of a DAG as a whole."""

    dag = models.ForeignKey(Dag, on_delete=models.CASCADE, related_name="events")

    class Meta:
        indexes = [models.Index(fields=["dag", "id"], name="dagevent_by_dag")]

    def __str__(self) -> str:
        return f"DAG {self.dag_id}: {self.event}"


class NodeEvent(EventRecord):
    """One change of a node. Within a DAG the ids are in the order of the changes."""

    dag = models.ForeignKey(Dag, on_delete=models.CASCADE, related_name="node_events")
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="events")

    class Meta:
        indexes = [
            models.Index(fields=["dag", "id"], name="nodeevent_by_dag"),
            models.Index(fields=["node", "id"], name="nodeevent_by_node"),
            models.Index(
                fields=["dag", "created_at"],
                condition=models.Q(event__in=["fail", "retry"]),
                name="nodeevent_failures",
            ),
        ]

    def __str__(self) -> str:
        return f"node {self.node_id}: {self.event}"


class MatchmakingPolicy(models.Model):
    """What operators set for all DAGs: one row."""

    rematch_expression = models.TextField(
        blank=True,
        help_text="ClassAd expression over a running DAG's figures; when true, its match is taken "
        "back. For DAGs without their own.",
    )
    max_rematches = models.PositiveSmallIntegerField(
        default=5, help_text="After so many rematches by policy a DAG is held instead."
    )
    avoid_s = models.PositiveIntegerField(
        default=3600, help_text="So long a DAG does not go back to a site that it was taken from."
    )
    priority_half_life_s = models.PositiveIntegerField(
        default=86_400,
        validators=[MinValueValidator(60)],
        help_text="After this time used slots count half in a submitter's priority.",
    )

    class Meta:
        verbose_name_plural = "matchmaking policy"
        constraints = [
            models.CheckConstraint(condition=models.Q(pk=1), name="one_matchmaking_policy"),
        ]

    def __str__(self) -> str:
        return "matchmaking policy"


class NegotiationCycle(models.Model):
    """What one negotiation did and how long its phases took."""

    started_at = models.DateTimeField(db_index=True)
    publish_s = models.FloatField()
    read_s = models.FloatField()
    decide_s = models.FloatField()
    carry_out_s = models.FloatField()
    ads = models.PositiveIntegerField()
    requests = models.PositiveIntegerField()
    autoclusters = models.PositiveIntegerField()
    matches = models.PositiveIntegerField()
    bound = models.PositiveIntegerField()
    reasons = models.JSONField(default=dict, help_text="DAGs left over, by the kind of reason.")

    def __str__(self) -> str:
        return f"negotiation of {self.started_at:%Y-%m-%d %H:%M:%S}"

    @property
    def duration_s(self) -> float:
        """The time of all phases."""
        return self.publish_s + self.read_s + self.decide_s + self.carry_out_s

    @property
    def unmatched(self) -> int:
        """How many DAGs were left over."""
        return sum(self.reasons.values())
