"""Sites, their queues, and the ads under which they are matched."""

from __future__ import annotations

from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.db.models.functions import Now

from wms.core.models import EventRecord
from wms.elements.registry import ELEMENTS

_NAME = RegexValidator(
    r"\A[A-Za-z0-9][A-Za-z0-9_.-]*\Z", "Use letters, digits, points, hyphens and underscores."
)


def _element_choices() -> list[tuple[str, str]]:
    return [(kind, kind) for kind in sorted(ELEMENTS)]


class Site(models.Model):
    """A place with its own batch queues, to which whole DAGs are matched."""

    name = models.CharField(max_length=64, unique=True, validators=[_NAME])
    is_enabled = models.BooleanField(
        default=True, help_text="A site that is off takes no DAG and no pilot."
    )
    max_matches = models.PositiveIntegerField(
        default=2, help_text="How many DAGs may be bound to the site at once (MaxMatches)."
    )
    requirements = models.TextField(
        default="CurMatches < MaxMatches",
        help_text="ClassAd expression: which DAGs the site takes. TARGET is the DAG's ad.",
    )
    rank = models.TextField(
        default="0.0",
        help_text="ClassAd expression: which DAGs the site prefers; larger is better.",
    )
    environment = models.TextField(
        blank=True,
        help_text="One NAME=value a line: SiteEnvironment, what $ENV(NAME) means at this site.",
    )
    attributes = models.TextField(
        blank=True, help_text="Further ad attributes, one `Name = expression` a line."
    )

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Queue(models.Model):
    """One entry of a site's batch system, to which pilots are submitted."""

    site = models.ForeignKey(Site, on_delete=models.CASCADE, related_name="queues")
    name = models.CharField(max_length=64, validators=[_NAME])
    element = models.CharField(max_length=16, choices=_element_choices)
    settings = models.JSONField(
        default=dict, blank=True, help_text="What the element needs to know, as a JSON object."
    )
    is_enabled = models.BooleanField(default=True)
    max_pilots = models.PositiveIntegerField(
        default=10, help_text="Queued and running pilots in all."
    )
    max_queued_pilots = models.PositiveIntegerField(
        default=5, help_text="Pilots that wait in the batch system."
    )
    cores = models.PositiveIntegerField(
        default=1, validators=[MinValueValidator(1)], help_text="Cores of a pilot."
    )
    memory_mb = models.PositiveIntegerField(default=2000, help_text="Memory of a pilot in MB.")
    wall_time_s = models.PositiveIntegerField(
        default=86_400, help_text="Longest life of a pilot in seconds."
    )
    platform = models.CharField(max_length=64, blank=True)
    tags = models.JSONField(
        default=list, blank=True, help_text="Tags that jobs may require, as a JSON list."
    )

    class Meta:
        ordering = ["site__name", "name"]
        constraints = [
            models.UniqueConstraint(fields=["site", "name"], name="queue_name_unique_in_site"),
            models.CheckConstraint(condition=models.Q(cores__gte=1), name="queue_has_a_core"),
        ]

    def __str__(self) -> str:
        return f"{self.site.name}/{self.name}"


class SiteAd(models.Model):
    """The ad under which a site was last published."""

    site = models.OneToOneField(Site, on_delete=models.CASCADE, related_name="ad")
    text = models.TextField()
    sequence = models.BigIntegerField(
        help_text="UpdateSequenceNumber: larger with each publication."
    )
    cur_matches = models.PositiveIntegerField()
    published_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"ad of {self.site.name}, number {self.sequence}"


class SiteEvent(EventRecord):
    """One change of a site's configuration or state."""

    site = models.ForeignKey(Site, on_delete=models.CASCADE, related_name="events")
    created_at = models.DateTimeField(db_default=Now(), db_index=True)

    def __str__(self) -> str:
        return f"{self.site.name}: {self.event}"
