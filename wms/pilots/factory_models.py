"""Models of remote frontends, for which this installation is a factory, and of their orders."""

from __future__ import annotations

import uuid

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q, Value
from django.db.models.functions import Now

from wms.accounting.models import Frontend
from wms.factories.models import INSTALLATION_URL
from wms.sites.models import Queue

_NAME = RegexValidator(
    r"\A[A-Za-z0-9][A-Za-z0-9_.-]*\Z", "Use letters, digits, points, hyphens and underscores."
)


class RemoteFrontend(models.Model):
    """Another installation of Pilotage, which has the jobs; this one submits pilots for it.

    It is a frontend here, whose entries, shares and limits are those of any other one. One of the
    two calls the other: this installation where there is an address, with the frontend's token;
    else the frontend, with the token that is made here.
    """

    frontend = models.OneToOneField(
        Frontend,
        on_delete=models.PROTECT,
        related_name="remote",
        help_text="What it is here: its entries say where it may have pilots.",
    )
    url = models.CharField(
        max_length=200,
        blank=True,
        default="",
        validators=[INSTALLATION_URL],
        help_text="Address of its portal, as https://HOST, where this installation calls it; "
        "empty: it calls this one.",
    )
    factory_name = models.CharField(
        max_length=64,
        blank=True,
        default="",
        validators=[_NAME],
        help_text="What it calls this installation; with an address only.",
    )
    is_enabled = models.BooleanField(
        default=True,
        db_default=True,
        help_text="One that is off is not called or answered; what waits for it is taken back.",
    )
    instance = models.UUIDField(default=uuid.uuid4, help_text="What this installation tells of it.")
    called_at = models.DateTimeField(null=True, blank=True)
    answered_at = models.DateTimeField(null=True, blank=True)
    lease_until = models.DateTimeField(
        null=True,
        blank=True,
        help_text="Its orders are followed until then, unless it answers again.",
    )
    failures = models.PositiveIntegerField(
        default=0, blank=True, help_text="Calls in a row without an answer."
    )
    next_at = models.DateTimeField(null=True, blank=True, help_text="It is not called before.")
    error = models.TextField(blank=True, default="", help_text="Why the last call failed.")
    refused = models.JSONField(
        default=dict, blank=True, help_text="Entries of ours that it does not use, with the reason."
    )
    token_sha256 = models.CharField(max_length=64, blank=True, default="", db_default="")
    token_at = models.DateTimeField(
        null=True, blank=True, help_text="When its token was made, where it calls."
    )
    caller = models.UUIDField(
        null=True, blank=True, help_text="The installation that called with this token first."
    )
    refused_at = models.DateTimeField(
        null=True, blank=True, help_text="When a call of it was refused last."
    )
    refused_reason = models.TextField(blank=True, default="", db_default="")
    turn = models.UUIDField(null=True, blank=True, help_text="Its call that brings no orders yet.")
    turn_at = models.DateTimeField(null=True, blank=True)
    turn_told = models.JSONField(
        default=dict,
        blank=True,
        db_default=Value({}, models.JSONField()),
        help_text="States that the report of this turn told, by the order's id.",
    )

    class Meta:
        ordering = ["frontend__name"]

    def __str__(self) -> str:
        return f"{self.frontend.name} at {self.url}" if self.url else self.frontend.name

    @property
    def is_caller(self) -> bool:
        """Whether the frontend calls this installation, and not the other way round."""
        return not self.url


class RemoteBatch(models.Model):
    """Pilots that were ordered together: one script for slots of one size."""

    remote = models.ForeignKey(RemoteFrontend, on_delete=models.CASCADE, related_name="batches")
    name = models.CharField(max_length=64)
    script = models.TextField()
    cores = models.PositiveIntegerField()
    memory_mb = models.PositiveIntegerField()
    gpus = models.PositiveIntegerField()
    minutes = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["remote", "name"], name="one_batch_of_a_remote"),
        ]

    def __str__(self) -> str:
        return self.name


class RemoteOrder(models.Model):
    """Order of one pilot, by the uuid that the remote frontend knows it by.

    One that waits has no pilot yet; one that was returned never got any, or will not be told of
    by its pilot.
    """

    class State(models.TextChoices):
        """Fate of an order here."""

        WAITING = "waiting", "waiting"
        SUBMITTED = "submitted", "submitted"
        RETURNED = "returned", "returned"

    remote = models.ForeignKey(RemoteFrontend, on_delete=models.PROTECT, related_name="orders")
    batch = models.ForeignKey(
        RemoteBatch, null=True, on_delete=models.PROTECT, related_name="orders"
    )
    queue = models.ForeignKey(Queue, null=True, on_delete=models.CASCADE, related_name="+")
    uuid = models.UUIDField()
    sealed = models.TextField(blank=True, help_text="Its secret, until it is submitted.")
    state = models.CharField(max_length=16, choices=State, default=State.WAITING)
    is_failed = models.BooleanField(
        default=False, help_text="It was returned because it could not be carried out."
    )
    is_cancelled = models.BooleanField(default=False, help_text="The frontend wants it no more.")
    reason = models.TextField(blank=True, default="", help_text="Why it was returned.")
    pilot = models.OneToOneField(
        "pilots.Pilot", null=True, on_delete=models.SET_NULL, related_name="order"
    )
    log = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text="End of the batch system's log of a pilot that went wrong, until it was told.",
    )
    told = models.CharField(
        max_length=16, blank=True, default="", help_text="The state that the frontend was told."
    )
    is_settled = models.BooleanField(default=False, help_text="It was told how the order ended.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["remote", "uuid"], name="one_order_of_a_pilot"),
            models.CheckConstraint(
                condition=~Q(state="waiting") | (~Q(sealed="") & Q(queue__isnull=False)),
                name="order_waiting_can_be_submitted",
            ),
        ]
        indexes = [
            models.Index(
                fields=["remote", "id"], condition=Q(is_settled=False), name="order_to_be_told"
            ),
            models.Index(
                fields=["queue", "remote", "id"],
                condition=Q(state="waiting"),
                name="order_to_be_submitted",
            ),
            models.Index(
                fields=["created_at"], condition=Q(is_settled=True), name="order_to_be_forgotten"
            ),
        ]

    def __str__(self) -> str:
        return f"order of pilot {self.uuid}"
