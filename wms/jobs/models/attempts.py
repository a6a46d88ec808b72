"""Models of attempts of jobs, their output streams and files, and of files of workspaces."""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.indexes import BrinIndex, GinIndex
from django.db import models
from django.db.models.functions import Now

from wms.core.database.actor_field import ActorField
from wms.core.database.hex_field import HexField
from wms.core.database.packed_numbers import PackedNumbersField
from wms.jobs.content.paths import MAX_PATH_BYTES
from wms.jobs.models.contents import Blob, Workspace
from wms.jobs.models.jobs import Job

#: What of the use of an ended attempt has a column, and which.
USED_IN_COLUMNS = {"wall_s": "wall_s", "cpu_s": "cpu_s", "memory_mb": "max_rss_mb"}

#: What else is told of it.
_USED_BESIDES = (
    *USED_IN_COLUMNS, "disk_mb", "files", "processes", "read_mb", "written_mb", "network_mb",
)  # fmt: skip


class Attempt(models.Model):
    """One try of a job in one pilot. `outcome` is empty while it is open."""

    class Outcome(models.TextChoices):
        """Outcomes of an attempt."""

        DONE = "done", "done"
        FAILED = "failed", "failed"
        LOST = "lost", "lost"
        NOT_RUN = "not_run", "not run"
        KILLED = "killed", "killed"

    class StoppedBy(models.TextChoices):
        """Actors that may stop a payload before its own end."""

        WATCHDOG = "watchdog", "the watchdog"
        SERVER = "server", "a command of the portal"
        PREEMPTION = "preemption", "pre-emption by the batch system"
        PILOT = "pilot", "its pilot"
        PILOT_TIME = "pilot_time", "the end of its pilot's time"

    # Its index is `attempt_number_unique`.
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="attempts", db_index=False)
    number = models.PositiveSmallIntegerField()
    pilot_id = models.BigIntegerField(db_index=True)
    site_name = models.CharField(max_length=64)
    host = models.CharField(max_length=255, blank=True)
    claim_key = HexField(
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
    disk_mb = models.PositiveIntegerField(db_default=0)
    limits = models.JSONField(
        null=True, help_text="What it uses of concurrency limits, by name; null: nothing."
    )
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
    usage = PackedNumbersField(
        null=True,
        names=_USED_BESIDES,
        help_text="What it used, by its latest heartbeat or its report, but for its columns.",
    )
    peek_until = models.DateTimeField(
        null=True, help_text="Until then its pilot is asked for what it has printed."
    )

    actor = ActorField(
        max_length=160, blank=True, default="", db_default="", help_text="Of its two events."
    )
    # Ids of events that this row tells; empty where they have rows of their own, or did not happen.
    match_event = models.BigIntegerField(null=True)
    start_event = models.BigIntegerField(null=True)

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["job", "number"], name="attempt_number_unique"),
            # At most one is open, and after one that is done there is none.
            models.UniqueConstraint(
                fields=["job"],
                condition=models.Q(outcome__in=["", "done"]),
                name="job_open_or_done_once",
            ),
            # Of one that has ended the claim is told by its pilot's attempts.
            models.UniqueConstraint(
                fields=["pilot_id", "claim_key"],
                condition=models.Q(outcome="") & ~models.Q(claim_key=""),
                name="claim_key_open_once",
            ),
        ]
        indexes = [
            # What running limits count.
            models.Index(
                fields=["site_name", "job_type", "owner_group"],
                condition=models.Q(outcome=""),
                name="attempt_open_by_kind",
            ),
            GinIndex(
                fields=["limits"],
                condition=models.Q(outcome="") & models.Q(limits__isnull=False),
                name="attempt_with_limits",
            ),
            # Few end so: jobs are found by their exit code or signal.
            models.Index(
                fields=["exit_code", "job"],
                condition=models.Q(exit_code__gt=0),
                name="attempt_by_exit_code",
            ),
            models.Index(
                fields=["signal", "job"],
                condition=models.Q(signal__gt=0),
                name="attempt_by_signal",
            ),
            # As `jobevent_by_time`: starts are counted by their times.
            BrinIndex(
                fields=["started_at"], name="attempt_by_start", autosummarize=True,
                pages_per_range=32,
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"attempt {self.number} of job {self.job_id}"

    @property
    def transferring(self) -> str:
        """What its pilot moves by URL now, as its latest heartbeat tells; empty for nothing."""
        used = {} if self.outcome else self.usage or {}
        if "sent_mb" in used:
            return "outputs"
        return "inputs" if "fetched_mb" in used and self.started_at is None else ""

    @property
    def whole_usage(self) -> dict[str, Any] | None:
        """What it used, by its latest heartbeat or its report; None where nothing is known."""
        if self.usage is None:
            return None
        columns = {name: getattr(self, column) for name, column in USED_IN_COLUMNS.items()}
        told = {n: value for n, value in columns.items() if value is not None}
        return {**told, **self.usage}


class EndedAttempt(models.Model):
    """Entry of an attempt that has ended, until its core-seconds are in the accounts.

    Written with the end, deleted with the sum. A mark on the attempt's own row would write this
    row and its entries in every index once more.
    """

    attempt = models.OneToOneField(
        Attempt,
        primary_key=True,
        # Who looks for one that is gone finds nothing.
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_constraint=False,
    )

    def __str__(self) -> str:
        return f"end of attempt {self.attempt_id}"


class Stream(models.Model):
    """Output of an attempt, sent piece by piece while it runs.

    The bytes are in files; only those before `size_bytes` and outside `gaps` count. See
    `wms.jobs.output.streams`.
    """

    class Kind(models.TextChoices):
        """Standard output and standard error."""

        STDOUT = "stdout", "stdout"
        STDERR = "stderr", "stderr"

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="streams")
    kind = models.CharField(max_length=8, choices=Kind)
    size_bytes = models.BigIntegerField(default=0)
    gaps = models.JSONField(
        default=list, db_default=[], help_text="Pairs of bytes: what is not here, from and up to."
    )
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["attempt", "kind"], name="stream_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of attempt {self.attempt_id}"


class AttemptFile(models.Model):
    """A file that an attempt sent back."""

    class Kind(models.TextChoices):
        """Role of the file."""

        STDOUT = "stdout", "stdout"
        STDERR = "stderr", "stderr"
        OUTPUT = "output", "output"
        NEW_CHECKPOINT = "incoming", "checkpoint under way"
        CHECKPOINT = "checkpoint", "checkpoint"

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="files")
    kind = models.CharField(max_length=16, choices=Kind)
    path = models.CharField(max_length=MAX_PATH_BYTES)
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
    path = models.CharField(max_length=MAX_PATH_BYTES)
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
