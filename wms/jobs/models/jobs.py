"""Models of jobs and of their events.

A job reads executable, files, needs and the like from its shared description and its own values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models.functions import Now

from wms.core.database.actor_field import ActorField
from wms.core.database.packed_numbers import PackedNumbersField
from wms.core.models import EventRecord
from wms.jobs.clusters.states import TOPIC as CLUSTER_TOPIC
from wms.jobs.models.contents import Workspace
from wms.jobs.models.descriptions import (
    MAPS,
    OF_ROW,
    Described,
    JobDescription,
    base_of,
    merged,
    own_entries,
)
from wms.jobs.states import JobCause, JobState

#: Facts that each event of a payload's end has.
EVENT_NUMBERS = ("exit_code", "signal", "cpu_s")
#: What the values of a job's description are read from.
DESCRIBED_COLUMNS = ("description", "own", "name", "topic_key")


class Job(models.Model):
    """One payload to be run once with success, in as many attempts as it takes up to a limit."""

    name = models.CharField(max_length=255)
    # Its index is `job_by_owner`. To check it for each of thousands of new jobs costs as much as
    # an index.
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        related_name="jobs",
        db_index=False,
        db_constraint=False,
    )
    # As the owner; and nobody asks for the jobs of a workspace.
    workspace = models.ForeignKey(
        Workspace,
        on_delete=models.PROTECT,
        related_name="jobs",
        db_index=False,
        db_constraint=False,
    )
    state = models.CharField(max_length=16, choices=JobState, default=JobState.RECEIVED)
    state_since = models.DateTimeField(db_default=Now())
    state_reason = models.TextField(blank=True)
    state_cause = models.CharField(
        max_length=16,
        choices=JobCause,
        blank=True,
        default="",
        db_default="",
        help_text="Why it came into its state; empty where nothing went wrong and nobody acted.",
    )
    # As the workspace; descriptions are never deleted.
    description = models.ForeignKey(
        JobDescription,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
        db_constraint=False,
        help_text="What it shares with other jobs.",
    )
    own = models.JSONField(
        null=True, help_text="Values that differ from those of its description; empty: none."
    )
    priority = models.PositiveSmallIntegerField(
        default=1,
        db_default=1,
        help_text="From 0 to 10: how much more likely it is drawn than others of its TaskQueue.",
    )
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
    payload_failures = models.PositiveSmallIntegerField(default=0, db_default=0)
    hold_count = models.PositiveSmallIntegerField(default=0, db_default=0)
    has_periodic = models.BooleanField(
        default=False, db_default=False, help_text="It has expressions, see `periodic`."
    )
    not_before = models.DateTimeField(
        null=True, help_text="A job that was rescheduled joins no TaskQueue before."
    )
    created_at = models.DateTimeField(db_default=Now())
    enqueue_event = models.BigIntegerField(
        null=True,
        help_text="Its first event, which this row tells; empty where that has a row of its own.",
    )
    submitted_by = ActorField(
        max_length=160, blank=True, default="", db_default="", help_text="Actor of that event."
    )

    class Meta:
        # A job's state changes some four times, and each time every index gets a new entry: so
        # there are few, and of equal values, which PostgreSQL keeps in some bytes a row.
        indexes = [
            # What the loop of the rescheduled jobs looks at.
            models.Index(
                fields=["not_before"],
                condition=models.Q(state="received", not_before__isnull=False),
                name="job_rescheduled",
            ),
            models.Index(fields=["topic", "topic_key", "state"], name="job_by_topic"),
            # All but the first of a list, which has its id: see `wms.jobs.selectors.of_clusters`.
            models.Index(
                fields=["cluster_id"],
                condition=~models.Q(cluster_id=models.F("id")),
                name="job_by_cluster",
            ),
            # What the loop of the periodic expressions looks at.
            models.Index(
                fields=["id"],
                condition=models.Q(has_periodic=True)
                & ~models.Q(state__in=["done", "failed", "killed"]),
                name="job_with_periodic",
            ),
            # What the list of jobs is asked for: those of an owner or site, counted by state; those
            # of a time, and those that were tried again.
            models.Index(fields=["owner", "state"], name="job_by_owner"),
            models.Index(
                fields=["site_name", "state"],
                condition=~models.Q(site_name=""),
                name="job_by_site",
            ),
            models.Index(fields=["created_at"], name="job_by_time"),
            # Those in a state; the latest change, and the order of changes: of jobs in a state, or
            # of each state. Those that are done come last: at its end an index grows page by page,
            # in the midst of others it leaves pages half empty.
            models.Index(fields=["-state", "state_since", "id"], name="job_by_last_change"),
            # Names that begin so; whatever order the texts of the database have.
            models.Index(fields=["name"], name="job_by_name", opclasses=["varchar_pattern_ops"]),
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
            # Each row of a cluster's table becomes one job; also the order of its jobs.
            models.UniqueConstraint(
                fields=["cluster_id", "process"],
                condition=models.Q(topic=CLUSTER_TOPIC),
                name="job_of_cluster_once",
            ),
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

    executable = Described(str)
    arguments = Described(list[str])
    environment = Described(dict[str, str])
    input_files = Described(list[str])
    output_files = Described(list[str])
    stdout_name = Described(str)
    stderr_name = Described(str)
    needs = Described(dict[str, Any])
    #: Other keys of the submit description.
    attributes = Described(dict[str, Any])
    wall_limit_s = Described(int)
    #: So often a payload that failed is run again.
    max_retries = Described(int)
    #: Expressions by what they do: hold, release, remove, retry; None if it has none.
    periodic = Described(dict[str, str])
    #: See `wms.jobs.directives`; None if it has none.
    directives = Described(dict[str, Any])
    #: Where in the workspace its files have their names; not the executable.
    directory = Described(str)
    #: Worker nodes that have failed it, which it leaves to others for a while.
    avoided_hosts = Described(list[str])
    #: What a claim fills in for its site, and whose sites these are; None for a job that is bound
    #: to its site before.
    late = Described(dict[str, Any])

    def __str__(self) -> str:
        return f"{self.name} ({self.pk})"

    @property
    def described(self) -> dict[str, Any]:
        """Its description with its own values in it, which nobody changes."""
        known: tuple[Any, int, dict[str, Any]] | None = self.__dict__.get("_described")
        if known is None or known[0] is not self.own or known[1] != self.description_id:
            values = merged(self.description.content, self.own)
            if of_row := values.pop(OF_ROW, None):
                attributes = {name: getattr(self, column) for name, column in of_row.items()}
                values["attributes"] = {**attributes, **values["attributes"]}
            known = self.__dict__["_described"] = self.own, self.description_id, values
        return known[2]

    def give(self, **values: Any) -> None:
        """Give it values of its own, in `own`, which the caller stores; maps as a whole."""
        content, own = self.description.content, dict(self.own or {})
        for name, value in values.items():
            own[name] = own_entries(base_of(content, name), value) if name in MAPS else value
        self.own = own

    def give_attributes(self, values: Mapping[str, Any]) -> None:
        """Give it further attributes, or other values of some, in `own`."""
        own = self.own or {}
        self.own = {**own, "attributes": {**own.get("attributes", {}), **values}}


class JobEvent(EventRecord):
    """One change of a job that no other row tells.

    What only reads events reads `LoggedJobEvent`, unless it has their ids.
    """

    facts = PackedNumbersField(default=dict, blank=True, names=EVENT_NUMBERS)

    # Its index, without the event's id, takes a third: the few events of a job are put in order.
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="+", db_constraint=False)
    cause = models.CharField(max_length=16, choices=JobCause, blank=True, default="", db_default="")

    class Meta:
        indexes = [
            # Events come in the order of their times, nearly: a small index finds the latest.
            BrinIndex(
                fields=["created_at"], name="jobevent_by_time", autosummarize=True,
                pages_per_range=32,
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"job {self.job_id}: {self.event}"


class LoggedJobEvent(EventRecord):
    """One event of a job's log, which has them all: a view, to be read by the jobs.

    Beside the rows of `JobEvent` it has what other rows tell, so that no event says it once more:
    "enqueue" of the first time the job, "match" and "start" its attempts. There is no index of its
    ids: who has the id of an event that was announced finds it among the rows of `JobEvent`.
    """

    facts = PackedNumbersField(default=dict, blank=True, names=EVENT_NUMBERS)
    job = models.ForeignKey(
        Job, on_delete=models.DO_NOTHING, related_name="events", db_constraint=False
    )
    cause = models.CharField(max_length=16, choices=JobCause, blank=True)

    class Meta:
        managed = False

    def __str__(self) -> str:
        return f"job {self.job_id}: {self.event}"
