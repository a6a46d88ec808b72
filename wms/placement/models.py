"""Models of placement requests, their attempts and events, and of allocations."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Coalesce, Now

from wms.core.models import EventRecord
from wms.jobs.content.paths import MAX_PATH_BYTES
from wms.jobs.models import Workspace
from wms.placement import (
    credential_models,  # noqa: F401 - Django looks here.
    reservation_models,  # noqa: F401 - Django looks here.
)
from wms.placement.catalogue import models as catalogue_models  # noqa: F401 - Django looks here.
from wms.placement.feeding import models as feeding_models  # noqa: F401 - Django looks here.
from wms.placement.space_plans import models as plan_models  # noqa: F401 - Django looks here.
from wms.placement.states import RequestKind, RequestState
from wms.placement.storages import models as storage_models  # Django looks here only.

_WAITING = models.Q(state__in=["received", "rescheduled"])


def _lane() -> list[models.expressions.Combinable]:
    """Whose requests between which storages: limits hold for all of a lane alike.

    In the words of `wms.placement.sql`, so that its statement is served.
    """
    storages = ("source_storage", "destination_storage")
    return [models.F("owner"), *(Coalesce(name, models.Value(0)) for name in storages)]


class PlacementRequest(models.Model):
    """A transfer of a file or other work on storage, tried until it succeeds, within a limit.

    Each attempt of a transfer goes another way until all were gone: by the primary schemes or the
    alternatives, from one replica or another. Requests of one text are a batch, led by the first.
    """

    kind = models.CharField(
        max_length=16,
        choices=RequestKind,
        default=RequestKind.TRANSFER,
        db_default=RequestKind.TRANSFER,
    )
    leader = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="followers",
        help_text="The first request of the same text.",
    )

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="placement_requests"
    )
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="placement_requests"
    )
    directory = models.CharField(
        max_length=MAX_PATH_BYTES,
        blank=True,
        help_text="Where in the workspace relative names begin.",
    )
    source_url = models.TextField(blank=True)
    destination_url = models.TextField(blank=True)
    source_storage = models.ForeignKey(
        storage_models.Storage,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="requests_from",
        help_text="In which the source lies, as far as it is in one.",
    )
    destination_storage = models.ForeignKey(
        storage_models.Storage,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="requests_to",
    )
    site = models.ForeignKey(
        "sites.Site",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        db_index=False,
        help_text="Of the DAG: replicas near it are read first.",
    )
    host = models.CharField(
        max_length=255, blank=True, default="", db_default="", help_text="Where space is allocated."
    )
    allocation_name = models.CharField(
        max_length=64, blank=True, default="", db_default="", help_text="The allocation_id."
    )
    duration_s = models.BigIntegerField(null=True, help_text="Of an allocation.")
    choice = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text="Why this storage, where the request left it open.",
    )
    arguments = models.TextField(blank=True, help_text="For the module.")
    alternatives = ArrayField(
        models.CharField(max_length=64),
        default=list,
        blank=True,
        help_text="Further pairs of schemes, such as http-file.",
    )
    expected_sha256 = models.CharField(max_length=64, blank=True)
    expected_md5 = models.CharField(max_length=32, blank=True, default="", db_default="")
    expected_adler32 = models.CharField(max_length=8, blank=True, default="", db_default="")
    expected_bytes = models.BigIntegerField(
        null=True, help_text="Of the file, or of the space that is allocated."
    )
    attributes = models.JSONField(default=dict, help_text="The whole ad: expressions by name.")
    state = models.CharField(max_length=16, choices=RequestState, default=RequestState.RECEIVED)
    state_since = models.DateTimeField(db_default=Now())
    state_reason = models.TextField(blank=True)
    max_attempts = models.PositiveSmallIntegerField(default=10)
    attempt_number = models.PositiveSmallIntegerField(
        default=0, help_text="How many attempts have begun."
    )
    due_at = models.DateTimeField(null=True, help_text="The next attempt not before this time.")
    topic = models.CharField(
        max_length=16, blank=True, help_text="Which inbox hears of the request's end."
    )
    topic_key = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["pk"]
        indexes = [
            models.Index(fields=["topic", "topic_key"], name="placement_by_topic"),
            # The rest of a batch.
            models.Index(
                fields=["leader"],
                condition=models.Q(state__in=["received", "processing", "rescheduled"]),
                name="placement_batch_not_ended",
            ),
            # What is granted next: lane by lane, those that never were tried and the others.
            models.Index(
                *_lane(), models.F("due_at"), condition=_WAITING, name="placement_waiting_by_lane"
            ),
            models.Index(
                *_lane(),
                models.F("id"),
                condition=_WAITING & models.Q(due_at=None),
                name="placement_untried_by_lane",
            ),
            # What waits for space.
            models.Index(
                fields=["due_at"],
                condition=_WAITING & models.Q(kind="allocate"),
                name="placement_waiting_for_space",
            ),
            # What the service looks at.
            models.Index(
                fields=["state", "id"],
                condition=models.Q(state__in=["received", "processing", "rescheduled"]),
                name="placement_not_ended",
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=RequestState.values), name="placement_state_known"
            ),
            models.CheckConstraint(
                condition=models.Q(kind__in=RequestKind.values), name="placement_kind_known"
            ),
            models.CheckConstraint(
                condition=~models.Q(state__in=["processing", "completed"])
                | models.Q(attempt_number__gte=1),
                name="placement_under_way_has_attempt",
            ),
            models.CheckConstraint(
                condition=models.Q(attempt_number__lte=models.F("max_attempts")),
                name="placement_attempts_limited",
            ),
        ]

    def __str__(self) -> str:
        return f"placement request {self.pk}"


class PlacementAllocation(models.Model):
    """Space of a host that is kept for the files of its owner, until it is released or expires.

    It is found by its name: in the workspace of the DAG whose node made it, or, made by a request
    of its own, among those of its owner.
    """

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="placement_allocations"
    )
    workspace = models.ForeignKey(
        Workspace,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="placement_allocations",
        help_text="Empty for one that no DAG made.",
    )
    name = models.CharField(max_length=64)
    host = models.CharField(max_length=255, help_text="As the request named the storage.")
    storage = models.ForeignKey(
        storage_models.Storage,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="allocations",
        help_text="Empty for one that was made before there were storages.",
    )
    size_bytes = models.BigIntegerField()
    expires_at = models.DateTimeField()
    released_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())
    endpoint = models.TextField(
        blank=True, db_default="", default="", help_text="Whose server keeps the space, too."
    )
    reservation = models.CharField(
        max_length=255,
        blank=True,
        db_default="",
        default="",
        help_text="What that server calls it.",
    )
    returned_at = models.DateTimeField(
        null=True,
        help_text="When that server was asked to give it back, or it was written down as owed.",
    )

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "name"],
                condition=models.Q(released_at=None, workspace__isnull=False),
                name="placement_allocation_of_dag_once",
            ),
            models.UniqueConstraint(
                fields=["owner", "name"],
                condition=models.Q(released_at=None, workspace=None),
                name="placement_allocation_of_owner_once",
            ),
            models.CheckConstraint(
                condition=models.Q(size_bytes__gt=0), name="placement_allocation_has_size"
            ),
        ]
        indexes = [
            # What is taken of a storage, and what has expired.
            models.Index(
                fields=["storage", "expires_at"],
                condition=models.Q(released_at=None),
                name="placement_allocation_held",
            ),
            # What a server still keeps.
            models.Index(
                fields=["expires_at"],
                condition=models.Q(released_at__isnull=False, returned_at=None)
                & ~models.Q(reservation=""),
                name="placement_allocation_kept",
            ),
        ]

    def __str__(self) -> str:
        return f"allocation {self.name} at {self.host}"


class PlacementAttempt(models.Model):
    """One try of a request, with one pair of schemes; open while it has no exit code."""

    request = models.ForeignKey(PlacementRequest, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveSmallIntegerField(help_text="From 1.")
    source_scheme = models.CharField(max_length=32)
    destination_scheme = models.CharField(max_length=32)
    source_url = models.TextField(
        blank=True, default="", db_default="", help_text="What a logical name led to."
    )
    destination_url = models.TextField(blank=True, default="", db_default="")
    source_end = models.CharField(
        max_length=255,
        blank=True,
        default="",
        db_default="",
        help_text="The storage from which this transfer read, or the host where it is in none.",
    )
    destination_end = models.CharField(max_length=255, blank=True, default="", db_default="")
    choice = models.JSONField(
        null=True, help_text="Why this way, where there was more than one: a code, and figures."
    )
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    lease = models.CharField(max_length=64, blank=True, help_text="Of the service that runs it.")
    lease_until = models.DateTimeField(null=True)
    exit_code = models.IntegerField(
        null=True, help_text="0 for a success, 111 without a module for the pair of schemes."
    )
    message = models.TextField(blank=True)
    size_bytes = models.BigIntegerField(null=True, help_text="Of the file, once it is there.")
    note = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text="How the file went, where there is more than one way.",
    )
    allocation = models.ForeignKey(
        PlacementAllocation,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="attempts",
        help_text="Into which the file is written.",
    )
    held_bytes = models.BigIntegerField(
        null=True, help_text="Of the allocation, for this attempt while it runs."
    )

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(
                fields=["request", "number"], name="placement_attempt_number_unique"
            ),
            models.UniqueConstraint(
                fields=["request"],
                condition=models.Q(exit_code=None),
                name="placement_has_one_open_attempt",
            ),
        ]
        indexes = [
            models.Index(
                fields=["lease_until"],
                condition=models.Q(exit_code=None),
                name="placement_attempt_open",
            ),
            # How links do of late.
            models.Index(fields=["ended_at"], name="placement_attempt_by_end"),
            # How one of them does.
            models.Index(
                fields=["source_end", "destination_end", "ended_at"],
                condition=~models.Q(source_end=""),
                name="placement_attempt_by_ends",
            ),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of placement request {self.request_id}"

    @property
    def bytes_per_s(self) -> float | None:
        """Throughput of an attempt that has brought a file."""
        if self.exit_code != 0 or self.size_bytes is None or self.ended_at is None:
            return None
        # The clock of the host that ran it: two readings may be the same.
        return self.size_bytes / max((self.ended_at - self.started_at).total_seconds(), 0.001)


class PlacementEvent(EventRecord):
    """One change of a placement request."""

    request = models.ForeignKey(PlacementRequest, on_delete=models.CASCADE, related_name="events")

    class Meta:
        indexes = [models.Index(fields=["request", "id"], name="placementevent_by_request")]

    def __str__(self) -> str:
        return f"placement request {self.request_id}: {self.event}"
