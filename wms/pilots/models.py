"""Models of pilots, their events and logs, added node checks and results, files and manifests.

Pilots fetch the files (agent, scripts of checks) and the manifests by their SHA-256.
"""

from __future__ import annotations

import uuid

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Now

from wms.accounting.models import AccountingGroup, Frontend
from wms.core.models import EventRecord
from wms.pilots import (  # noqa: F401 - Django looks for models here only.
    connection_models,
    credential_models,
    factory_models,
    pressure_models,
    published_models,
    suspect_models,
)
from wms.pilots.states import ALIVE, PilotState, PilotTest
from wms.sites.models import Queue, Site


class Pilot(models.Model):
    """One pilot, from the row that is written before its submission to its end."""

    uuid = models.UUIDField(unique=True, default=uuid.uuid4)
    queue = models.ForeignKey(Queue, on_delete=models.PROTECT, related_name="pilots")
    state = models.CharField(max_length=16, choices=PilotState, default=PilotState.SUBMITTED)
    state_since = models.DateTimeField(db_default=Now())
    state_reason = models.TextField(blank=True)
    batch = models.CharField(
        max_length=64,
        db_index=True,
        help_text="Name of the batch job that the pilot was submitted in.",
    )
    native_id = models.CharField(max_length=128, blank=True, help_text="The batch system's own id.")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="A private pilot's; it keeps the identity that it was submitted with.",
    )
    owner_group = models.ForeignKey(
        AccountingGroup, null=True, on_delete=models.PROTECT, related_name="+"
    )
    test = models.CharField(
        max_length=8,
        choices=PilotTest,
        blank=True,
        default=PilotTest.NONE,
        db_default="",
        help_text="What a test pilot is for; empty: it was sent for the jobs that wait.",
    )
    frontend = models.ForeignKey(
        Frontend,
        null=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
        help_text="For whose jobs it was sent; empty: for those of the default frontend.",
    )
    credential = models.ForeignKey(
        credential_models.Credential,
        null=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
        help_text="With which it was submitted; empty: with what its queue's settings name.",
    )
    is_remote = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Sent for another installation: it registers there, and here only its batch "
        "system is asked.",
    )
    secret_sha256 = models.CharField(
        max_length=64, help_text="One-time secret for the registration."
    )
    token_sha256 = models.CharField(max_length=64, blank=True, help_text="Chosen by the pilot.")
    node = models.JSONField(default=dict, help_text="What the pilot reported of its node.")
    published = models.JSONField(
        default=dict, db_default={}, help_text="What checks published of its node, by check."
    )
    variables = models.JSONField(
        default=dict, db_default={}, help_text="What checks published for payloads, by check."
    )
    missing_polls = models.PositiveSmallIntegerField(
        default=0, help_text="Answers of the batch system, one after another, that did not know it."
    )
    missing_since = models.DateTimeField(null=True, help_text="Of those answers, the first.")
    batch_state = models.CharField(
        max_length=16, blank=True, default="", db_default="", help_text="As it was told last."
    )
    batch_reason = models.TextField(blank=True, default="", db_default="")
    batch_since = models.DateTimeField(null=True, help_text="Since when that is told.")
    batch_node = models.CharField(
        max_length=255,
        blank=True,
        default="",
        db_default="",
        help_text="Worker node, as the batch system told it last.",
    )
    batch_exit_code = models.IntegerField(null=True, help_text="As the batch system told it.")
    holds = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="How often the batch system has held it."
    )
    is_forgotten = models.BooleanField(
        default=False, help_text="The batch system keeps nothing of it any more."
    )
    created_at = models.DateTimeField(db_default=Now())
    registered_at = models.DateTimeField(null=True)
    heartbeat_at = models.DateTimeField(null=True)
    fruitless_at = models.DateTimeField(
        null=True, help_text="When it was told last that there is no job for it."
    )
    ended_at = models.DateTimeField(null=True)
    heartbeat_sequence = models.BigIntegerField(
        default=0, db_default=0, help_text="Number of its latest heartbeat, as it counts them."
    )
    load = models.JSONField(null=True, help_text="What it told of its node at last.")
    is_draining = models.BooleanField(
        default=False, db_default=False, help_text="It says that it takes no more jobs."
    )
    drain_reason = models.TextField(
        blank=True, default="", db_default="", help_text="Why it was told to take no more jobs."
    )
    validation_s = models.FloatField(
        null=True, help_text="What its checks took, as far as it told."
    )
    totals = models.JSONField(null=True, help_text="What it told of its life when it ended.")
    accounts = models.JSONField(
        null=True, help_text="Its core-seconds and waste, stored once after its end."
    )

    class Meta:
        indexes = [
            models.Index(
                fields=["ended_at"],
                condition=models.Q(accounts__isnull=True, ended_at__isnull=False),
                name="pilot_to_be_accounted",
            ),
            models.Index(fields=["queue", "state"], name="pilot_by_queue_and_state"),
            models.Index(
                fields=["queue", "ended_at"],
                condition=models.Q(is_forgotten=False, ended_at__isnull=False),
                name="pilot_to_be_forgotten",
            ),
            models.Index(
                fields=["ended_at"],
                condition=models.Q(ended_at__isnull=False),
                name="pilot_by_end",
            ),
            models.Index(
                fields=["credential", "state"],
                condition=models.Q(credential__isnull=False),
                name="pilot_by_credential",
            ),
            models.Index(
                fields=["queue", "-id"],
                condition=~models.Q(test=""),
                name="pilot_test_by_queue",
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=PilotState.values), name="pilot_state_known"
            ),
            models.CheckConstraint(
                condition=~models.Q(state__in=["running", "stalled", "done"])
                | ~models.Q(token_sha256="")
                | models.Q(is_remote=True),
                name="pilot_running_is_registered",
            ),
            models.CheckConstraint(
                condition=models.Q(test__in=PilotTest.values), name="pilot_test_known"
            ),
            models.UniqueConstraint(
                fields=["queue"],
                condition=models.Q(state__in=sorted(ALIVE)) & ~models.Q(test=""),
                name="one_open_test_of_a_queue",
            ),
        ]

    def __str__(self) -> str:
        return f"pilot {self.uuid}"


class PilotEvent(EventRecord):
    """One change of a pilot."""

    pilot = models.ForeignKey(Pilot, on_delete=models.CASCADE, related_name="events")

    class Meta:
        indexes = [models.Index(fields=["pilot", "id"], name="pilotevent_by_pilot")]

    def __str__(self) -> str:
        return f"pilot {self.pilot_id}: {self.event}"


class PilotLog(models.Model):
    """Log that a pilot has sent up to now, piece by piece; kept when the pilot dies.

    The bytes are in a file; only the first `size_bytes` of it count. See `wms.jobs.output.streams`.
    """

    pilot = models.OneToOneField(
        Pilot, on_delete=models.CASCADE, primary_key=True, related_name="stored_log"
    )
    size_bytes = models.BigIntegerField(default=0)
    updated_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"log of pilot {self.pilot_id}"


class NodeCheck(models.Model):
    """Added check of worker nodes: a script that judges a node for its pilot.

    Without a site it is for the nodes of all sites, without a group for the pilots of everybody.
    """

    name = models.SlugField(max_length=64, unique=True)
    site = models.ForeignKey(
        Site,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="node_checks",
        help_text="Only at this site; empty: at all.",
    )
    group = models.ForeignKey(
        AccountingGroup,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="Only for private pilots of this group; empty: for all pilots.",
    )
    position = models.PositiveIntegerField(
        default=100, help_text="Checks run in ascending order of this, after the built-in ones."
    )
    script = models.TextField(
        help_text="What runs on the node: its first line names the interpreter, as #!/bin/sh."
    )
    settings = models.JSONField(
        default=dict, blank=True, help_text="What the script is given as settings: a JSON object."
    )
    time_limit_s = models.PositiveIntegerField(
        default=60,
        validators=[MinValueValidator(1), MaxValueValidator(3600)],
        help_text="A check that takes longer has failed.",
    )
    period_s = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Time between repetitions while the pilot runs jobs; empty: only at its start.",
    )
    is_enabled = models.BooleanField(default=True)
    attributes = models.JSONField(
        default=dict,
        db_default={},
        blank=True,
        help_text="Attributes of the node that it may publish, with their types (boolean, integer, "
        'real, string), as {"Available": "boolean"}. Jobs ask for NAME_Available.',
    )
    variables = models.JSONField(
        default=list,
        db_default=[],
        blank=True,
        help_text='Variables that it may publish for payloads, as ["SOFTWARE_DIR"].',
    )

    class Meta:
        ordering = ["position", "name"]

    def __str__(self) -> str:
        return self.name


class PilotFile(models.Model):
    """A file that pilots fetch by the SHA-256 of its content; it never changes."""

    sha256 = models.CharField(max_length=64, primary_key=True)
    content = models.BinaryField()
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"file {self.sha256[:12]} for pilots"


class PilotManifest(models.Model):
    """Manifest of what a pilot fetches and runs; its SHA-256 is in the submitted script."""

    sha256 = models.CharField(max_length=64, primary_key=True)
    content = models.BinaryField()
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"manifest {self.sha256[:12]}"


class PilotCheck(models.Model):
    """Result of one check on a pilot's node: all of the start, later failures and changes."""

    pilot = models.ForeignKey(Pilot, on_delete=models.CASCADE, related_name="checks")
    name = models.CharField(max_length=64)
    is_ok = models.BooleanField()
    kind = models.CharField(max_length=32, blank=True, help_text="What sort of failure it is.")
    reason = models.TextField(blank=True)
    metrics = models.JSONField(default=dict)
    skipped = models.TextField(
        blank=True, default="", db_default="", help_text="What it may not publish, and why."
    )
    seconds = models.FloatField()
    key = models.CharField(max_length=64, help_text="The pilot's name for this result.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["pilot", "key"], name="pilotcheck_told_once"),
        ]
        indexes = [
            models.Index(
                fields=["created_at"],
                condition=models.Q(is_ok=False),
                name="pilotcheck_failed",
            ),
            # What the ads of sites tell of software: few checks name any.
            models.Index(
                fields=["pilot"],
                condition=models.Q(is_ok=True, metrics__has_key="software"),
                name="pilotcheck_found_software",
            ),
            models.Index(
                fields=["name", "created_at"],
                condition=~models.Q(skipped=""),
                name="pilotcheck_skipped",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} of pilot {self.pilot_id}: {'ok' if self.is_ok else self.reason}"
