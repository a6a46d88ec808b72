"""Models of DAGs and their events.

A DAG's row also has its files, the options of its run, its match (ad, needs, site, or why none),
how it ends, its outer DAG and previous run, and counters of its nodes, which change in the
transactions that move the nodes.
"""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models.functions import Now

from matching.task_queues.weighted_draws import MAX_JOB_PRIORITY
from wms.accounting.models import AccountingGroup
from wms.core.models import EventRecord
from wms.dags.language.origin import Origin
from wms.dags.states import Binding, DagCause, DagState, DagStatus, EndingEvent
from wms.jobs.content.paths import MAX_PATH_BYTES
from wms.jobs.models import Workspace
from wms.sites.models import Site


class Dag(models.Model):
    """A workflow, matched to a site as a whole.

    The counters follow the nodes' states in the transactions that change them, so that progress is
    read without counting nodes.
    """

    name = models.CharField(max_length=255)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="dags"
    )
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="dags")
    dag_files = ArrayField(
        models.CharField(),
        default=list,
        db_default=models.Value([], ArrayField(models.CharField())),
        help_text="The DAG files in the workspace; more than one run as one DAG.",
    )
    description_file = models.CharField(
        max_length=MAX_PATH_BYTES,
        blank=True,
        default="",
        db_default="",
        help_text="The file in the workspace with the DAG's own description; empty: none known.",
    )
    directory = models.CharField(
        max_length=MAX_PATH_BYTES,
        blank=True,
        db_default="",
        help_text="Where in the workspace it runs.",
    )
    root_path = models.CharField(
        max_length=1000,
        blank=True,
        db_default="",
        help_text="The absolute path that the workspace's top had where its files come from.",
    )
    uses_dag_dir = models.BooleanField(
        db_default=False, help_text="Names are looked up in the folder of each DAG file."
    )
    parent_node = models.ForeignKey(
        "dags.Node",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="inner_dags",
        help_text="The node of an outer DAG that this one is a run of.",
    )
    root = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="tree",
        help_text="The outermost DAG, if this is an inner one.",
    )
    # Of an edited copy it is the DAG that was edited, which is in another workspace.
    previous_run = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="next_runs"
    )
    rescue_number = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="The rescue that this run began from; 0 for none."
    )
    labels = ArrayField(
        models.CharField(),
        default=list,
        db_default=models.Value([], ArrayField(models.CharField())),
        blank=True,
        help_text="Words to find it by; those of a DAG are also those of the DAGs inside of it.",
    )
    priority = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        help_text="From 0 to 10: among the DAGs of its owner, and of all of its jobs. Empty: the "
        "usual one, and that of each job is in its description.",
    )
    state = models.CharField(max_length=16, choices=DagState, default=DagState.IDLE)
    state_since = models.DateTimeField(db_default=Now())
    state_reason = models.TextField(blank=True)
    state_cause = models.CharField(
        max_length=16,
        choices=DagCause,
        blank=True,
        default="",
        db_default="",
        help_text="Why it came into its state; empty where nothing went wrong and nobody acted.",
    )
    ad_attributes = models.JSONField(
        default=dict,
        help_text="Expressions of the DAG's own ad by name, Requirements and Rank among them.",
    )
    environment_template = models.TextField(
        default="$$(SiteEnvironment:)", help_text="The DAG's environment before the match."
    )
    binding = models.CharField(
        max_length=8,
        choices=Binding,
        default=Binding.SITE,
        db_default=Binding.SITE.value,
        help_text="What is bound to a site: the DAG, or each job at its claim.",
    )
    site = models.ForeignKey(
        Site, null=True, blank=True, on_delete=models.PROTECT, related_name="dags"
    )
    matched_at = models.DateTimeField(
        null=True, blank=True, help_text="Since when it may run, at its site or at those it has."
    )
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
    node_needs = models.JSONField(
        default=list,
        db_default=models.Value([], models.JSONField()),
        help_text="What its nodes need, as far as it was known at the submission: the largest "
        "needs, what differs from the defaults of each.",
    )
    need_nodes = ArrayField(
        models.CharField(),
        default=list,
        db_default=models.Value([], ArrayField(models.CharField())),
        help_text="The name of one node that has it, for each of these needs.",
    )
    # Sets of DAGs are never deleted, nor are DAGs, so nobody has to look for these.
    near_inputs = models.ForeignKey(
        "jobs.InputSet",
        null=True,
        blank=True,
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_index=False,
        db_constraint=False,
        help_text="Input data of its nodes, as far as they were known: sites near all of them.",
    )
    far_inputs = models.ForeignKey(
        "jobs.InputSet",
        null=True,
        blank=True,
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_index=False,
        db_constraint=False,
        help_text="Those that its nodes may fetch from afar: sites near most of them first.",
    )
    input_node = models.CharField(
        max_length=255, blank=True, db_default="", help_text="The name of one node that has any."
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
    unmatched_kind = models.CharField(
        max_length=40, blank=True, db_default="", help_text="The same in a kind that is counted."
    )
    options = models.JSONField(
        default=dict,
        db_default=models.Value({}, models.JSONField()),
        help_text="How the run is driven: what of RunOptions differs from its defaults.",
    )
    category_limits = models.JSONField(
        default=dict,
        db_default=models.Value({}, models.JSONField()),
        help_text="MAXJOBS by category.",
    )
    category_counts = models.JSONField(
        default=dict,
        db_default=models.Value({}, models.JSONField()),
        help_text="Submitted nodes by category, and failed ones that are tolerated.",
    )
    success_rule = models.TextField(
        blank=True, default="", db_default="", help_text="The expression of SUCCESS WHEN."
    )
    tolerances = models.JSONField(
        default=dict,
        db_default=models.Value({}, models.JSONField()),
        help_text="TOLERANCE by category: as it was given, and how many nodes that is.",
    )
    script_environment = models.JSONField(
        default=dict, db_default=models.Value({}, models.JSONField()), help_text="ENV SET."
    )
    exports = models.JSONField(
        default=dict,
        db_default=models.Value({}, models.JSONField()),
        help_text="Names of the files that the DAG file asks for: status, jobstate, dot.",
    )
    is_followed = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Somebody's HTCondor runs it: nothing of it is submitted, its log is read.",
    )
    has_joins = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Arcs of it have conditions, or nodes of it need not all of their arcs.",
    )
    round_number = models.BigIntegerField(
        default=0, db_default=0, help_text="The engine's last round: the order of the ready queue."
    )
    status = models.PositiveSmallIntegerField(
        choices=DagStatus, default=DagStatus.OK, db_default=DagStatus.OK.value
    )
    exit_code = models.SmallIntegerField(null=True, blank=True)
    ending_event = models.CharField(
        max_length=8,
        choices=EndingEvent,
        blank=True,
        default="",
        db_default="",
        help_text="How the DAG ends, once that is known, while its FINAL node runs.",
    )
    ending_status = models.PositiveSmallIntegerField(
        choices=DagStatus, default=DagStatus.OK, db_default=DagStatus.OK.value
    )
    ending_code = models.SmallIntegerField(default=0, db_default=0)
    ending_reason = models.TextField(blank=True, default="", db_default="")
    ending_cause = models.CharField(
        max_length=16, choices=DagCause, blank=True, default="", db_default=""
    )
    ending_rescue = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="The number of the rescue that was written for this end."
    )
    node_count = models.PositiveIntegerField(default=0)
    done_count = models.PositiveIntegerField(default=0)
    failed_count = models.PositiveIntegerField(default=0)
    futile_count = models.PositiveIntegerField(default=0)
    skipped_count = models.PositiveIntegerField(default=0, db_default=0)
    submitted_count = models.PositiveIntegerField(default=0)
    ready_count = models.PositiveIntegerField(default=0, db_default=0)
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["state", "id"], name="dag_by_state"),
            models.Index(fields=["site", "state"], name="dag_by_site_and_state"),
            # What each negotiation asks the sites about: few beside all that have ended.
            models.Index(
                fields=["state", "id"],
                condition=models.Q(binding="job", parent_node=None),
                name="dag_bound_by_job",
            ),
            models.Index(
                fields=["looked_at"],
                condition=models.Q(looked_at__isnull=False),
                name="dag_looked_at",
            ),
            # Whose ready nodes wait for room that other DAGs may free.
            models.Index(
                fields=["owner", "site"],
                condition=models.Q(state="running", ready_count__gt=0),
                name="dag_with_ready_nodes",
            ),
            GinIndex(fields=["labels"], name="dag_by_label"),
            # Whose sets of inputs are kept up to date: few beside all that have ended.
            *(
                models.Index(
                    fields=[name],
                    condition=models.Q((f"{name}__isnull", False), ("ended_at", None)),
                    name=f"open_dag_by_{name}",
                )
                for name in ("near_inputs", "far_inputs")
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=DagState.values), name="dag_state_known"
            ),
            models.CheckConstraint(
                condition=~models.Q(state="running")
                | models.Q(site__isnull=False)
                | models.Q(binding="job", matched_at__isnull=False)
                | models.Q(is_followed=True),
                name="dag_running_has_site",
            ),
            models.CheckConstraint(
                condition=models.Q(binding="site")
                | models.Q(binding="job", site__isnull=True, is_followed=False),
                name="dag_binding_known",
            ),
            models.CheckConstraint(
                condition=~models.Q(state="held") | ~models.Q(state_reason=""),
                name="dag_held_has_reason",
            ),
            models.CheckConstraint(
                condition=models.Q(ending_event__in=["", *EndingEvent.values]),
                name="dag_ending_known",
            ),
            models.CheckConstraint(
                condition=models.Q(priority__isnull=True)
                | models.Q(priority__lte=MAX_JOB_PRIORITY),
                name="dag_priority_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.pk})"

    @property
    def is_edited(self) -> bool:
        """Whether it was made from its previous run by an edit; that row must have been read."""
        before = self.previous_run
        return before is not None and before.workspace_id != self.workspace_id

    @property
    def binds_jobs(self) -> bool:
        """Whether each of its jobs is bound to a site by its claim, and not the DAG as a whole."""
        return self.binding == Binding.JOB

    @property
    def ended_count(self) -> int:
        """Number of nodes that have ended, however they did."""
        return self.done_count + self.failed_count + self.futile_count + self.skipped_count

    @property
    def is_placed(self) -> bool:
        """Whether it has what its jobs need to run: a site, or leave to run at several."""
        return self.site_id is not None or (self.binds_jobs and self.matched_at is not None)

    @property
    def scope_id(self) -> int | None:
        """Id of the sites that its jobs share with those of the DAGs around it; or None."""
        return (self.root_id or self.pk) if self.binds_jobs else None

    @property
    def is_ending(self) -> bool:
        """Whether its result is decided and only its FINAL node is still to run."""
        return self.ending_event != ""

    @property
    def origin(self) -> Origin:
        """Directory from which the names in its DAG files are resolved."""
        return Origin(self.directory, self.root_path, self.uses_dag_dir)


class DagEvent(EventRecord):
    """One change of a DAG as a whole."""

    dag = models.ForeignKey(Dag, on_delete=models.CASCADE, related_name="events")
    cause = models.CharField(max_length=16, choices=DagCause, blank=True, default="", db_default="")

    class Meta:
        indexes = [models.Index(fields=["dag", "id"], name="dagevent_by_dag")]

    def __str__(self) -> str:
        return f"DAG {self.dag_id}: {self.event}"
