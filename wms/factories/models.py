"""Models of remote factories, their entries as they advertise them, and pilots ordered of them."""

from __future__ import annotations

import uuid

from django.contrib.postgres.functions import RandomUUID
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q, Value
from django.db.models.functions import Now

_NAME = RegexValidator(
    r"\A[A-Za-z0-9][A-Za-z0-9_.-]*\Z", "Use letters, digits, points, hyphens and underscores."
)
#: Address of another installation.
INSTALLATION_URL = RegexValidator(
    r"\Ahttps?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?\Z",
    "Use https://HOST, https://HOST:PORT or either with a path; without account and query.",
)


class RemoteFactory(models.Model):
    """Another installation of Pilotage, which submits pilots for this one to queues of its own.

    One of the two calls the other: the factory with the token that is made here or, where there is
    an address, this installation with the factory's token, which is a file then. `token_sha256` is
    of either.
    """

    name = models.CharField(max_length=64, unique=True, validators=[_NAME])
    description = models.TextField(blank=True, help_text="Who runs it, and whom to ask.")
    is_enabled = models.BooleanField(
        default=True,
        db_default=True,
        help_text="One that is off is sent no orders, and its calls are refused.",
    )
    sites = models.JSONField(
        default=list,
        blank=True,
        db_default=Value([], models.JSONField()),
        help_text="Names of the sites whose queues it may serve; none: all.",
    )
    url = models.CharField(
        max_length=200,
        blank=True,
        default="",
        db_default="",
        validators=[INSTALLATION_URL],
        help_text="Address of its portal, as https://HOST, where this installation calls it; "
        "empty: it calls this one.",
    )
    frontend_name = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        validators=[_NAME],
        help_text="What it calls this installation; with an address only.",
    )
    token_sha256 = models.CharField(max_length=64, blank=True, default="", db_default="")
    token_at = models.DateTimeField(null=True, blank=True, help_text="When its token was made.")
    instance = models.UUIDField(
        null=True, blank=True, help_text="The installation that was heard with this token first."
    )
    caller = models.UUIDField(
        default=uuid.uuid4,
        db_default=RandomUUID(),
        editable=False,
        help_text="What this installation tells of itself where it calls.",
    )
    seen_at = models.DateTimeField(null=True, blank=True, help_text="When it was heard last.")
    refused_at = models.DateTimeField(
        null=True, blank=True, help_text="When a call was refused last."
    )
    refused_reason = models.TextField(blank=True, default="", db_default="")
    called_at = models.DateTimeField(
        null=True, blank=True, help_text="When this installation called it last."
    )
    failures = models.PositiveIntegerField(
        default=0, db_default=0, blank=True, help_text="Calls in a row without an answer."
    )
    next_at = models.DateTimeField(null=True, blank=True, help_text="It is not called before.")
    error = models.TextField(
        blank=True, default="", db_default="", help_text="Why the last call of it failed."
    )

    class Meta:
        verbose_name_plural = "remote factories"
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class FactoryEntry(models.Model):
    """Entry of a factory, as it was advertised last: a queue to which the factory submits.

    `facts` has the attributes of its pilots, and counts of those that it submitted for us.
    """

    factory = models.ForeignKey(RemoteFactory, on_delete=models.CASCADE, related_name="entries")
    name = models.CharField(max_length=129)
    is_open = models.BooleanField(default=True)
    reason = models.TextField(blank=True, help_text="Why it takes no pilots.")
    facts = models.JSONField(default=dict)
    refusal = models.TextField(blank=True, help_text="Why this installation does not use it.")
    seen_at = models.DateTimeField()

    class Meta:
        ordering = ["factory__name", "name"]
        constraints = [
            models.UniqueConstraint(fields=["factory", "name"], name="one_ad_of_a_factorys_entry"),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.factory_id}"


class OrderBatch(models.Model):
    """Batch of pilots that were ordered together: one script for slots of one size."""

    name = models.CharField(max_length=64, unique=True)
    factory = models.ForeignKey(RemoteFactory, on_delete=models.PROTECT, related_name="batches")
    entry = models.CharField(max_length=129)
    script = models.TextField()
    cores = models.PositiveIntegerField()
    memory_mb = models.PositiveIntegerField()
    gpus = models.PositiveIntegerField()
    minutes = models.PositiveIntegerField()
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.name


class PilotOrder(models.Model):
    """Order of one pilot, by the uuid that this installation knows it by, and what became of it.

    `state` is a word of `elements.protocol.BatchState`; empty until the factory has confirmed it.
    """

    batch = models.ForeignKey(OrderBatch, on_delete=models.CASCADE, related_name="orders")
    index = models.PositiveIntegerField()
    uuid = models.UUIDField(unique=True)
    sealed = models.TextField(blank=True, help_text="Its secret, until the order is confirmed.")
    sent_at = models.DateTimeField(
        null=True, blank=True, help_text="When it was sent to the factory last."
    )
    is_cancelled = models.BooleanField(default=False, help_text="It is not wanted any more.")
    state = models.CharField(max_length=16, blank=True, default="")
    reason = models.TextField(blank=True, default="")
    node = models.CharField(
        max_length=255,
        blank=True,
        default="",
        db_default="",
        help_text="Worker node, as the factory's batch system told it.",
    )
    exit_code = models.IntegerField(null=True, blank=True)
    log = models.TextField(
        blank=True, default="", db_default="", help_text="End of the batch system's log."
    )
    told_at = models.DateTimeField(
        null=True, blank=True, help_text="When the factory told of it last."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["batch", "index"], name="order_by_batch_and_index"),
        ]
        indexes = [
            models.Index(
                fields=["id"],
                condition=~Q(state__in=["done", "failed", "cancelled"]),
                name="order_that_is_open",
            ),
        ]

    def __str__(self) -> str:
        return f"order of pilot {self.uuid}"
