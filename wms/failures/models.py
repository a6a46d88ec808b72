"""Models of failure groups and their events, failures, counts by time, and normalisation rules.

The rule book holds the version of the rules, and how far failures are regrouped by them.
"""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.db.models.functions import Now

from wms.core.models import EventRecord
from wms.failures.patterns import MAX_PATTERN, BadPattern, check_pattern
from wms.failures.states import GroupState


class Kind(models.TextChoices):
    """Kinds of failed objects."""

    JOB = "job", "job"
    NODE = "node", "node or script"
    PILOT = "pilot", "pilot"


class Category(models.TextChoices):
    """Categories of causes: payload, data, site, system or person."""

    UNKNOWN = "unknown", "not known"
    PAYLOAD = "payload", "payload"
    DATA = "data", "data"
    SITE = "site", "site"
    SYSTEM = "system", "system"
    PERSON = "person", "person"


class FailureGroup(models.Model):
    """Failures of one kind of thing whose messages mean the same."""

    fingerprint = models.CharField(max_length=64, unique=True)
    kind = models.CharField(max_length=8, choices=Kind)
    text = models.TextField(help_text="The message without what differs each time.")
    sample = models.TextField(help_text="A message as it came.")
    category = models.CharField(max_length=16, choices=Category, default=Category.UNKNOWN)
    state = models.CharField(max_length=16, choices=GroupState, default=GroupState.ACTIVE)
    state_since = models.DateTimeField(db_default=Now())
    state_reason = models.TextField(blank=True)
    total = models.BigIntegerField(default=0, db_default=0)
    first_seen = models.DateTimeField()
    last_seen = models.DateTimeField(db_index=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=GroupState.values), name="failuregroup_state_known"
            ),
            models.CheckConstraint(
                condition=models.Q(category__in=Category.values), name="failuregroup_category_known"
            ),
            models.CheckConstraint(
                condition=~models.Q(state__in=["muted", "resolved"]) | ~models.Q(state_reason=""),
                name="failuregroup_state_has_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"failure group {self.pk}"


class FailureGroupEvent(EventRecord):
    """One change of a group by a person, or because it happened again."""

    group = models.ForeignKey(FailureGroup, on_delete=models.CASCADE, related_name="events")

    class Meta:
        indexes = [models.Index(fields=["group", "id"], name="failuregroupevent_by_group")]

    def __str__(self) -> str:
        return f"failure group {self.group_id}: {self.event}"


class Failure(models.Model):
    """One failure: the event that told of it, and the group that it belongs to.

    Its message is the reason of that event, which stays where it is.
    """

    group = models.ForeignKey(
        FailureGroup, on_delete=models.PROTECT, related_name="failures", db_index=False
    )
    kind = models.CharField(max_length=8, choices=Kind)
    event_id = models.BigIntegerField()
    subject_id = models.BigIntegerField(help_text="The job, node or pilot.")
    dag_id = models.BigIntegerField(null=True)
    owner_id = models.BigIntegerField(null=True)
    site_name = models.CharField(max_length=64, blank=True)
    at = models.DateTimeField()
    rules_version = models.PositiveIntegerField(help_text="By which rules it was grouped.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["kind", "event_id"], name="failure_told_once"),
        ]
        indexes = [
            models.Index(fields=["group", "id"], name="failure_by_group"),
            models.Index(fields=["group", "subject_id"], name="failure_by_group_and_subject"),
            models.Index(fields=["owner_id", "at"], name="failure_by_owner"),
            models.Index(
                fields=["dag_id", "group"],
                condition=models.Q(dag_id__isnull=False),
                name="failure_by_dag",
            ),
            models.Index(
                fields=["dag_id", "at"],
                condition=models.Q(dag_id__isnull=False),
                name="failure_by_dag_and_time",
            ),
            models.Index(fields=["rules_version", "id"], name="failure_by_rules"),
        ]

    def __str__(self) -> str:
        return f"failure of {self.kind} {self.subject_id}"


class FailureBin(models.Model):
    """Number of failures of a group in an hour or on a day (UTC), at a site or in all.

    The sums over all sites have bins of their own, so that who asks for causes reads no sites.
    """

    class Span(models.TextChoices):
        """Spans of bins: an hour or a day, of one site or of all."""

        HOUR = "hour", "hour"
        DAY = "day", "day"
        SITE_HOUR = "hour@", "hour at a site"
        SITE_DAY = "day@", "day at a site"

    group = models.ForeignKey(
        FailureGroup, on_delete=models.CASCADE, related_name="bins", db_index=False
    )
    span = models.CharField(max_length=5, choices=Span)
    start = models.DateTimeField()
    site_name = models.CharField(max_length=64, blank=True)
    count = models.IntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["group", "span", "start", "site_name"], name="failurebin_unique"
            ),
        ]
        indexes = [models.Index(fields=["span", "start"], name="failurebin_by_start")]

    def __str__(self) -> str:
        return f"{self.count} in the {self.span} from {self.start}"


class FailureRule(models.Model):
    """One normalisation rule: it replaces a variable part of messages, such as a number."""

    position = models.PositiveIntegerField(
        default=1000, help_text="Rules apply in ascending order of this."
    )
    name = models.CharField(max_length=64, unique=True)
    pattern = models.CharField(
        max_length=MAX_PATTERN,
        help_text="A regular expression of RE2; {owner}, {site} and {host} stand for the names of "
        "what failed. A group (?P<it>...) is what is replaced.",
    )
    keeps = models.BooleanField(
        default=False, help_text="Leave what is found as it is, and out of the rules that follow."
    )
    placeholder = models.CharField(
        max_length=12,
        blank=True,
        validators=[RegexValidator(r"\A[a-z]*\Z", "Use small letters from a to z.")],
        help_text="What stands there instead, in < >; empty: nothing.",
    )
    note = models.CharField(max_length=200, blank=True, help_text="What it is for.")
    is_enabled = models.BooleanField(default=True)

    class Meta:
        ordering = ["position", "pk"]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Refuse an expression that cannot be read."""
        super().clean()
        faults: dict[str, Any] = {}
        try:
            check_pattern(self.pattern)
        except BadPattern as error:
            faults["pattern"] = str(error)
        if self.keeps and self.placeholder:
            faults["placeholder"] = "A rule that keeps what it finds puts nothing in its place."
        if faults:
            raise ValidationError(faults)


class RuleBook(models.Model):
    """Version of the rules, and progress of regrouping, in a single row."""

    version = models.PositiveIntegerField(default=1)
    changed_at = models.DateTimeField(db_default=Now())
    to_regroup = models.BigIntegerField(default=0, help_text="Failures when the rules changed.")
    regrouped = models.BigIntegerField(default=0)
    finished_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"rules of failures, version {self.version}"
