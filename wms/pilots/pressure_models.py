"""Models of pilot pressure: requests of frontends for pilots, history, back-off, pilot limits.

The back-off (`ElementContact`) has failures and pauses of a queue's batch system by kind of
question; pilot limits bound the pilots of all queues, of a site or of a group.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from wms.accounting.models import AccountingGroup, Frontend
from wms.pilots.credential_models import Credential
from wms.sites.models import Queue, Site


def _frontend() -> models.ForeignKey[Frontend | None, Frontend | None]:
    return models.ForeignKey(
        Frontend,
        null=True,
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,
        help_text="Whose request it is; empty: of the default frontend.",
    )


class PressureRequest(models.Model):
    """Latest request of a frontend for one queue: level and ceiling, honoured until its lease ends.

    `reasons` and `turn_reasons` tell what cut the numbers down: from wanted to granted, and from
    granted to what the last turn submitted.
    """

    queue = models.ForeignKey(
        Queue, on_delete=models.CASCADE, related_name="requests", db_index=False
    )
    frontend = _frontend()
    wanted = models.PositiveIntegerField(
        default=0, help_text="Pilots that its share of the waiting jobs fills."
    )
    granted = models.PositiveIntegerField(
        default=0, help_text="The level: pilots that should wait in the batch system."
    )
    ceiling = models.PositiveIntegerField(default=0, help_text="Pilots in all, at most.")
    waiting_jobs = models.PositiveIntegerField(default=0, help_text="Its share of those.")
    reasons = models.JSONField(default=list)
    owners = models.JSONField(
        default=list,
        db_default=models.Value([], models.JSONField()),
        help_text="Where each pilot is private to somebody else: who needs how many.",
    )
    demand_gone_at = models.DateTimeField(
        null=True, help_text="Since when no job waits for this queue."
    )
    idle_since = models.DateTimeField(
        null=True, help_text="Since when no running pilot of it has had a job."
    )
    updated_at = models.DateTimeField()
    lease_until = models.DateTimeField(db_index=True)
    expired_at = models.DateTimeField(
        null=True, help_text="When it was found that its lease has ended without a renewal."
    )
    recorded_at = models.DateTimeField(null=True, help_text="When it was kept as a record.")
    submitted = models.PositiveIntegerField(default=0, help_text="In its last turn.")
    turn_reasons = models.JSONField(default=list)
    served_at = models.DateTimeField(null=True, help_text="When its last turn was.")
    removed_at = models.DateTimeField(null=True, help_text="When pilots were taken back last.")
    submitted_since = models.PositiveIntegerField(default=0, help_text="Since the last record.")
    removed_since = models.PositiveIntegerField(default=0, help_text="Since the last record.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["queue", "frontend"], nulls_distinct=False, name="one_request_of_a_frontend"
            ),
        ]

    def __str__(self) -> str:
        return f"request for {self.queue_id}: {self.granted} of {self.wanted}"


class PressureRecord(models.Model):
    """Request of a frontend and its results at one queue at one time.

    One a minute is kept, for a while.
    """

    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="pressure_records")
    frontend = _frontend()
    at = models.DateTimeField()
    wanted = models.PositiveIntegerField()
    granted = models.PositiveIntegerField()
    ceiling = models.PositiveIntegerField()
    waiting_jobs = models.PositiveIntegerField()
    submitted = models.PositiveIntegerField(help_text="Since the record before.")
    removed = models.PositiveIntegerField(help_text="Since the record before.")
    reasons = models.JSONField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["queue", "at", "frontend"],
                nulls_distinct=False,
                name="one_record_of_a_frontend_at_a_time",
            ),
        ]
        indexes = [models.Index(fields=["at"], name="pressurerecord_by_time")]

    def __str__(self) -> str:
        return f"pressure on {self.queue_id} at {self.at:%Y-%m-%d %H:%M}"


class ElementContact(models.Model):
    """Failures and back-off of a queue's batch system for one kind of question.

    After `failures` in a row it is left alone until `next_at`; the pause doubles each time. Without
    failures `next_at` is when it is asked again. Each credential that it is shown has its own.
    """

    class Kind(models.TextChoices):
        """Kind of question to the batch system."""

        SUBMIT = "submit", "submission"
        START = "start", "start of pilots"
        POLL = "poll", "status"

    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="contacts")
    kind = models.CharField(max_length=8, choices=Kind)
    credential = models.ForeignKey(
        Credential,
        null=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="What it was shown; empty: what the queue's settings name.",
    )
    failures = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField(null=True)
    reason = models.TextField(blank=True, default="")
    next_at = models.DateTimeField(null=True)
    answered_at = models.DateTimeField(null=True)
    seen_pilots = models.PositiveIntegerField(
        default=0, help_text="Pilots that the last answer which was acted upon knew."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["queue", "kind", "credential"],
                nulls_distinct=False,
                name="one_contact_of_a_kind",
            ),
            models.CheckConstraint(
                condition=Q(kind__in=["submit", "start", "poll"]), name="contact_kind_known"
            ),
            models.CheckConstraint(
                condition=Q(failures=0) | ~Q(reason=""), name="contact_failure_has_reason"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} of queue {self.queue_id}"


class PilotLimit(models.Model):
    """Limits on pilots of many queues together: of all, of a site, or in the name of a group.

    A limit of sites (groups, frontends) that names none holds for each of those that have none of
    their own.
    At a curb the pressure on every queue concerned is halved.
    """

    class Scope(models.TextChoices):
        """Scope of a limit: whose pilots are counted together."""

        WHOLE = "whole", "all pilots"
        SITE = "site", "the pilots of a site"
        GROUP = "group", "the private pilots in the name of a group"
        FRONTEND = "frontend", "the pilots of a frontend"

    scope = models.CharField(max_length=8, choices=Scope)
    site = models.ForeignKey(
        Site, null=True, blank=True, on_delete=models.CASCADE, related_name="pilot_limits"
    )
    group = models.ForeignKey(
        AccountingGroup, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    frontend = models.ForeignKey(
        Frontend, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    max_pilots = models.PositiveIntegerField(
        null=True, blank=True, help_text="Waiting and running pilots, at most; empty: no limit."
    )
    curb_pilots = models.PositiveIntegerField(
        null=True, blank=True, help_text="From so many on the pressure is halved."
    )
    max_cores = models.PositiveIntegerField(
        null=True, blank=True, help_text="Cores of those pilots, at most; empty: no limit."
    )
    max_idle_pilots = models.PositiveIntegerField(
        null=True, blank=True, help_text="With so many running without a job none is sent."
    )
    curb_idle_pilots = models.PositiveIntegerField(
        null=True, blank=True, help_text="From so many of those on the pressure is halved."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["scope", "site", "group", "frontend"],
                nulls_distinct=False,
                name="one_pilot_limit_of_a_scope",
            ),
            models.CheckConstraint(
                condition=Q(scope="whole", site=None, group=None, frontend=None)
                | Q(scope="site", group=None, frontend=None)
                | Q(scope="group", site=None, frontend=None)
                | Q(scope="frontend", site=None, group=None),
                name="pilot_limit_names_its_scope",
            ),
        ]

    def __str__(self) -> str:
        named = self.site or self.group or self.frontend
        return f"{self.get_scope_display()} {named}" if named else self.get_scope_display()
