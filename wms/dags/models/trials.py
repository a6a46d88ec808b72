"""Models of trials: checks and dry runs of sent files, with their progress and reports."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from wms.core.models import EventRecord
from wms.dags.trials.states import ACTIVE, TERMINAL, TrialKind, TrialState


class Trial(models.Model):
    """Check or dry run of DAG files. The files are kept as one archive until it ends."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="dag_trials"
    )
    kind = models.CharField(max_length=8, choices=TrialKind)
    request = models.JSONField(
        help_text="The DAG files, from where names are looked up, how nodes behave."
    )
    archive = models.CharField(max_length=64, unique=True, help_text="Name of the kept files.")
    size_bytes = models.BigIntegerField(help_text="Of the kept files.")
    state = models.CharField(max_length=8, choices=TrialState, default=TrialState.WAITING)
    state_since = models.DateTimeField(db_default=Now())
    state_reason = models.TextField(blank=True)
    attempt_number = models.PositiveSmallIntegerField(default=0)
    lease = models.CharField(max_length=64, blank=True, help_text="Of the worker that is at it.")
    lease_until = models.DateTimeField(null=True)
    node_count = models.PositiveIntegerField(default=0, help_text="Of the DAG in a dry run.")
    ended_count = models.PositiveIntegerField(default=0, help_text="So many have ended in it.")
    exit_code = models.SmallIntegerField(null=True, help_text="As of the command; 1: not well.")
    report = models.TextField(blank=True, help_text="In JSON, as the command prints it.")
    text = models.TextField(blank=True, help_text="The report for people.")
    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["owner", "id"], name="trial_by_owner"),
            models.Index(fields=["id"], condition=Q(state__in=ACTIVE), name="trial_to_do"),
            models.Index(fields=["ended_at"], name="trial_by_end"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=TrialState.values), name="trial_state_known"
            ),
            models.CheckConstraint(
                condition=~Q(state=TrialState.RUNNING) | Q(lease_until__isnull=False),
                name="trial_running_has_lease",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=TERMINAL) | Q(ended_at__isnull=False),
                name="trial_end_has_time",
            ),
            models.CheckConstraint(
                condition=~Q(state=TrialState.DONE) | ~Q(report=""),
                name="trial_done_has_report",
            ),
        ]

    def __str__(self) -> str:
        return f"trial {self.pk}"


class TrialEvent(EventRecord):
    """Event of a trial: started, lost, ended, stopped."""

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="events")

    class Meta:
        indexes = [models.Index(fields=["trial", "id"], name="trialevent_by_trial")]

    def __str__(self) -> str:
        return f"trial {self.trial_id}: {self.event}"
