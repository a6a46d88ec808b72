"""Jobs, their attempts, their files, and the workspaces in which files pass from job to job."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import BrinIndex
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Now

from matching.resources import JobKind
from wms.core.models import EventRecord
from wms.jobs.states import JobState
from wms.sites.models import Site


class Blob(models.Model):
    """Content in the store, named by its SHA-256. Equal files are kept once."""

    sha256 = models.CharField(max_length=64, primary_key=True)
    size_bytes = models.BigIntegerField()
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.sha256[:12]


class Workspace(models.Model):
    """The files of one DAG, or of one single job: what was submitted and what came back.

    It is what the submit directory is to DAGMan: jobs take their input files from it by name, and
    the output files of a completed job appear in it.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"workspace {self.pk}"


class Job(models.Model):
    """One payload to be run once with success, in as many attempts as it takes up to a limit."""

    name = models.CharField(max_length=255)
    # Its index is `job_by_owner`.
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="jobs", db_index=False
    )
    # Checking it for each of thousands of new jobs costs as much as an index.
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="jobs", db_constraint=False
    )
    state = models.CharField(max_length=16, choices=JobState, default=JobState.RECEIVED)
    state_since = models.DateTimeField(db_default=Now())
    state_reason = models.TextField(blank=True)
    executable = models.CharField(max_length=1024)
    arguments = ArrayField(models.TextField(), default=list)
    environment = models.JSONField(default=dict)
    input_files = ArrayField(models.CharField(max_length=255), default=list)
    output_files = ArrayField(models.CharField(max_length=255), default=list)
    stdout_name = models.CharField(max_length=255, blank=True, help_text="Name in the workspace.")
    stderr_name = models.CharField(max_length=255, blank=True, help_text="Name in the workspace.")
    needs = models.JSONField()
    priority = models.PositiveSmallIntegerField(
        default=1,
        db_default=1,
        help_text="From 0 to 10: how much more likely it is drawn than others of its TaskQueue.",
    )
    attributes = models.JSONField(default=dict, help_text="Other keys of the submit description.")
    wall_limit_s = models.PositiveIntegerField()
    max_attempts = models.PositiveSmallIntegerField(default=5)
    attempt_number = models.PositiveSmallIntegerField(
        default=0, help_text="The latest attempt; 0 before the first."
    )
    site_name = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="Where the latest attempt is or was; empty before the first.",
    )
    topic = models.CharField(
        max_length=16, blank=True, help_text="Which inbox hears of the job's end."
    )
    topic_key = models.BigIntegerField(default=0)
    cluster_id = models.BigIntegerField(
        default=0,
        db_default=0,
        help_text="The first job of those that were submitted with it as one list; 0 if alone.",
    )
    process = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Its place in the cluster, from 0."
    )
    max_retries = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="So often a payload that failed is run again."
    )
    payload_failures = models.PositiveSmallIntegerField(default=0, db_default=0)
    hold_count = models.PositiveSmallIntegerField(default=0, db_default=0)
    periodic = models.JSONField(
        null=True,
        blank=True,
        help_text="Expressions by what they do: hold, release, remove, retry.",
    )
    request_disk_mb = models.PositiveIntegerField(default=0, db_default=0)
    directory = models.CharField(
        max_length=255,
        blank=True,
        default="",
        db_default="",
        help_text="Where in the workspace its files have their names; not the executable.",
    )
    not_before = models.DateTimeField(
        null=True, help_text="A job that was rescheduled joins no TaskQueue before."
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [
            models.Index(fields=["state", "id"], name="job_by_state"),
            # What the loop of the rescheduled jobs looks at.
            models.Index(
                fields=["not_before"],
                condition=models.Q(state="received", not_before__isnull=False),
                name="job_rescheduled",
            ),
            models.Index(fields=["topic", "topic_key", "state"], name="job_by_topic"),
            models.Index(
                fields=["cluster_id", "process"],
                condition=~models.Q(cluster_id=0),
                name="job_by_cluster",
            ),
            # What the loop of the periodic expressions looks at.
            models.Index(
                fields=["id"],
                condition=models.Q(periodic__isnull=False)
                & ~models.Q(state__in=["done", "failed", "killed"]),
                name="job_with_periodic",
            ),
            # What the list of jobs is asked for: those of an owner or site, counted by state; those
            # of a time, and those that were tried again.
            models.Index(fields=["owner", "state", "id"], name="job_by_owner"),
            models.Index(
                fields=["site_name", "state", "id"],
                condition=~models.Q(site_name=""),
                name="job_by_site",
            ),
            models.Index(fields=["created_at"], name="job_by_time"),
            models.Index(fields=["state_since"], name="job_by_change"),
            models.Index(
                fields=["state", "id"], condition=~models.Q(state_reason=""), name="job_with_reason"
            ),
            models.Index(
                fields=["attempt_number"],
                condition=models.Q(attempt_number__gt=1),
                name="job_tried_again",
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=JobState.values), name="job_state_known"
            ),
            models.CheckConstraint(
                condition=~models.Q(state__in=["matched", "running", "stalled", "done"])
                | models.Q(attempt_number__gte=1),
                name="job_with_pilot_has_attempt",
            ),
            models.CheckConstraint(condition=models.Q(priority__lte=10), name="job_priority_known"),
            models.CheckConstraint(
                condition=~models.Q(state="held") | ~models.Q(state_reason=""),
                name="job_held_has_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.pk})"


class Attempt(models.Model):
    """One try of a job in one pilot. `outcome` is empty while it is open."""

    class Outcome(models.TextChoices):
        """How an attempt ended."""

        DONE = "done", "done"
        FAILED = "failed", "failed"
        LOST = "lost", "lost"
        NOT_RUN = "not_run", "not run"
        KILLED = "killed", "killed"

    class StoppedBy(models.TextChoices):
        """Who stopped the payload of an attempt that did not come to its own end."""

        WATCHDOG = "watchdog", "the watchdog"
        SERVER = "server", "a command of the portal"
        PREEMPTION = "preemption", "pre-emption by the batch system"
        PILOT = "pilot", "its pilot"

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveSmallIntegerField()
    pilot_id = models.BigIntegerField(db_index=True)
    site_name = models.CharField(max_length=64)
    host = models.CharField(max_length=255, blank=True)
    claim_key = models.CharField(
        max_length=64,
        blank=True,
        db_default="",
        help_text="Chosen by the pilot for the claim: the same one is given the same attempt.",
    )
    job_type = models.CharField(max_length=64, blank=True, db_default="")
    owner_group = models.CharField(max_length=64, blank=True, db_default="")
    cores = models.PositiveIntegerField(db_default=1, help_text="What it may use of its pilot.")
    memory_mb = models.PositiveIntegerField(db_default=0)
    gpus = models.PositiveIntegerField(db_default=0)
    matched_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=16, choices=Outcome, blank=True)
    reason = models.TextField(blank=True)
    exit_code = models.IntegerField(null=True)
    signal = models.IntegerField(null=True)
    wall_s = models.FloatField(null=True)
    cpu_s = models.FloatField(null=True)
    max_rss_mb = models.FloatField(null=True)
    stopped_by = models.CharField(max_length=16, choices=StoppedBy, blank=True, db_default="")
    usage = models.JSONField(
        null=True, help_text="What it used, by its latest heartbeat or its report."
    )
    peek_until = models.DateTimeField(
        null=True, help_text="Until then its pilot is asked for what it has printed."
    )
    is_accounted = models.BooleanField(
        default=False, db_default=False, help_text="Its core-seconds are in the accounts."
    )

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["job", "number"], name="attempt_number_unique"),
            models.UniqueConstraint(
                fields=["job"], condition=models.Q(outcome="done"), name="job_done_once"
            ),
            models.UniqueConstraint(
                fields=["job"], condition=models.Q(outcome=""), name="job_has_one_open_attempt"
            ),
            models.UniqueConstraint(
                fields=["pilot_id", "claim_key"],
                condition=~models.Q(claim_key=""),
                name="claim_key_used_once",
            ),
        ]
        indexes = [
            # What running limits count.
            models.Index(
                fields=["site_name", "job_type", "owner_group"],
                condition=models.Q(outcome=""),
                name="attempt_open_by_kind",
            ),
            models.Index(
                fields=["id"],
                condition=models.Q(is_accounted=False) & ~models.Q(outcome=""),
                name="attempt_to_be_accounted",
            ),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of job {self.job_id}"


class Stream(models.Model):
    """What an attempt has printed up to now, sent piece by piece while it runs.

    The bytes are in a file; only the first `size_bytes` of it count. See `wms.jobs.streams`.
    """

    class Kind(models.TextChoices):
        """The two that every process has."""

        STDOUT = "stdout", "stdout"
        STDERR = "stderr", "stderr"

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="streams")
    kind = models.CharField(max_length=8, choices=Kind)
    size_bytes = models.BigIntegerField(default=0)
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["attempt", "kind"], name="stream_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of attempt {self.attempt_id}"


class RunningLimit(models.Model):
    """How many jobs of a kind may run at once, and how soon after one another they may start.

    An empty site, job type or group stands for any: without a site the limit is over all sites
    together. The claim keeps it exactly; see `wms.jobs.limits`.
    """

    site = models.ForeignKey(
        Site, null=True, blank=True, on_delete=models.CASCADE, related_name="running_limits"
    )
    job_type = models.CharField(max_length=64, blank=True)
    owner_group = models.CharField(max_length=64, blank=True)
    maximum = models.PositiveIntegerField(
        null=True, blank=True, help_text="Jobs with a pilot at once: matched, running or stalled."
    )
    min_interval_s = models.FloatField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0.0), MaxValueValidator(86_400.0)],
        help_text="Seconds between two matches.",
    )
    last_match_at = models.DateTimeField(null=True, editable=False)
    note = models.CharField(max_length=200, blank=True, help_text="What it protects.")

    class Meta:
        ordering = ["site__name", "job_type", "owner_group"]
        constraints = [
            models.UniqueConstraint(
                fields=["site", "job_type", "owner_group"],
                name="running_limit_unique",
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                condition=models.Q(maximum__isnull=False) | models.Q(min_interval_s__isnull=False),
                name="running_limit_limits",
            ),
        ]

    def __str__(self) -> str:
        kind = JobKind(self.job_type, self.owner_group)
        return f"{kind} at {self.site.name if self.site else 'all sites together'}"


class AttemptFile(models.Model):
    """A file that an attempt sent back."""

    class Kind(models.TextChoices):
        """What the file is to the job."""

        STDOUT = "stdout", "stdout"
        STDERR = "stderr", "stderr"
        OUTPUT = "output", "output"

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="files")
    kind = models.CharField(max_length=8, choices=Kind)
    path = models.CharField(max_length=255)
    blob = models.ForeignKey(Blob, on_delete=models.PROTECT, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["attempt", "kind", "path"], name="attempt_file_unique"),
        ]

    def __str__(self) -> str:
        return self.path


class WorkspaceFile(models.Model):
    """A file of a workspace; `attempt` tells which one made it, if it was not submitted."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="files")
    path = models.CharField(max_length=255)
    blob = models.ForeignKey(Blob, on_delete=models.PROTECT, related_name="+")
    attempt = models.ForeignKey(Attempt, null=True, on_delete=models.SET_NULL, related_name="+")
    modified_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["path"]
        constraints = [
            models.UniqueConstraint(fields=["workspace", "path"], name="workspace_path_unique"),
        ]

    def __str__(self) -> str:
        return self.path


class JobEvent(EventRecord):
    """One change of a job."""

    job = models.ForeignKey(
        Job, on_delete=models.CASCADE, related_name="events", db_constraint=False
    )

    class Meta:
        indexes = [
            models.Index(fields=["job", "id"], name="jobevent_by_job"),
            # Events come in the order of their times, nearly: a small index finds the latest.
            BrinIndex(
                fields=["created_at"], name="jobevent_by_time", autosummarize=True,
                pages_per_range=32,
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"job {self.job_id}: {self.event}"
