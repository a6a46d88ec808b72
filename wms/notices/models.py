"""Models of subscriptions, notices, conditions, channels, deliveries and notices to be sent."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models.functions import Now

from wms.core.models import User
from wms.dags.models import Dag
from wms.sites.models import Site


class Rule(models.TextChoices):
    """Kinds of subscriptions."""

    DAG = "dag", "one DAG: it ends, fails, is failing or is held"
    MY_ENDED = "my-dags-ended", "a DAG of mine is completed or removed"
    MY_FAILED = "my-dags-failed", "a DAG of mine is failing or has failed"
    MY_HELD = "my-dags-held", "a DAG of mine is held or halted, or waits at a gate"
    MY_FAILURES = "my-failures", "what is mine fails for a new cause, or again for a resolved one"
    SITE = (
        "site",
        "a site is banned, drained or opened, a downtime begins or ends, or a node is suspected",
    )
    CREDENTIALS = "credentials", "a credential of a frontend of mine ends soon or has ended"
    LOOPS = "loops", "a control loop is late or fails"


class Subscription(models.Model):
    """One subscription of one user: to a rule, a DAG or a site."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="subscriptions")
    rule = models.CharField(max_length=16, choices=Rule)
    dag = models.ForeignKey(
        Dag, null=True, blank=True, on_delete=models.CASCADE, related_name="subscriptions"
    )
    site = models.ForeignKey(
        Site,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="subscriptions",
        help_text="Empty for the rule of sites: all of them.",
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(rule__in=Rule.values), name="subscription_rule_known"
            ),
            models.CheckConstraint(
                condition=models.Q(rule="dag", dag__isnull=False)
                | (~models.Q(rule="dag") & models.Q(dag=None)),
                name="subscription_of_a_dag_names_it",
            ),
            models.CheckConstraint(
                condition=models.Q(rule="site") | models.Q(site=None),
                name="subscription_names_sites_for_sites",
            ),
            models.UniqueConstraint(
                fields=["user", "rule", "dag", "site"],
                nulls_distinct=False,
                name="subscription_once",
            ),
        ]
        indexes = [models.Index(fields=["rule", "user"], name="subscription_by_rule")]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.rule}"


class SubjectKind(models.TextChoices):
    """Kinds of objects that notices are about."""

    DAG = "dag", "DAG"
    JOB = "job", "job"
    FAILURES = "failure-group", "failure group"
    SITE = "site", "site"
    FRONTEND = "frontend", "frontend"
    LOOP = "loop", "control loop"
    SCHEDULE = "schedule", "schedule"
    CHANNEL = "channel", "channel"


class Notice(models.Model):
    """One notice to one user, as the portal lists it."""

    class Kind(models.TextChoices):
        """Kinds of occurrences."""

        COMPLETED = "completed", "completed"
        FAILED = "failed", "failed"
        FAILING = "failing", "failing"
        HELD = "held", "held"
        HALTED = "halted", "halted"
        WAITING = "gate-waits", "gate waits"
        REMOVED = "removed", "removed"
        NEW_CAUSE = "new-cause", "new cause"
        REGRESSED = "regressed", "failing again"
        BANNED = "banned", "banned"
        DRAINING = "draining", "draining"
        OPENED = "opened", "opened"
        SUSPECTED = "node-suspected", "worker node suspected"
        CLEARED = "node-cleared", "worker node cleared"
        DOWN = "downtime-begun", "downtime begun"
        UP = "downtime-ended", "downtime ended"
        STALE = "loop-stale", "loop stale"
        WELL = "loop-well", "loop well again"
        CREDENTIAL_ENDS = "credential-ends", "credential ends soon"
        CREDENTIAL_ENDED = "credential-ended", "credential has ended"
        NOT_SUBMITTED = "not-submitted", "not submitted"
        ASSIGNED = "assigned", "assigned to you"
        SWITCHED_OFF = "switched-off", "switched off"

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="notices")
    kind = models.CharField(max_length=16, choices=Kind)
    subject_kind = models.CharField(max_length=16, choices=SubjectKind)
    subject_id = models.CharField(max_length=80)
    title = models.CharField(max_length=200)
    text = models.TextField(blank=True)
    count = models.IntegerField(
        default=1, help_text="How often it has happened, where that is counted."
    )
    key = models.CharField(max_length=120, help_text="What it tells of: it is told once.")
    happened_at = models.DateTimeField()
    created_at = models.DateTimeField(db_default=Now())
    read_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "key"], name="notice_told_once"),
        ]
        indexes = [
            models.Index(fields=["user", "-id"], name="notice_by_user"),
            models.Index(
                fields=["user"], condition=models.Q(read_at=None), name="notice_unread_by_user"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.title}"


class Condition(models.Model):
    """Something that begins and ends without an event of its own: a downtime, a stale loop.

    Also the end of a credential: `since` is its moment. The row says only which notices were made:
    the truth is in the downtimes, in the credentials and in the reports of the loops.
    """

    class Kind(models.TextChoices):
        """Kinds of conditions."""

        DOWNTIME = "downtime", "downtime"
        CREDENTIAL = "credential", "credential"
        LOOP = "loop", "control loop"

    kind = models.CharField(max_length=16, choices=Kind)
    subject = models.CharField(max_length=80)
    since = models.DateTimeField()
    told_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["kind", "subject"], name="condition_once"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"


class Channel(models.Model):
    """A channel to one user: e-mail to the account's address, or a webhook."""

    class Kind(models.TextChoices):
        """Kinds of channels."""

        EMAIL = "email", "e-mail"
        WEBHOOK = "webhook", "webhook"

    class Pace(models.TextChoices):
        """Pace of a channel: at once, or as a digest."""

        NOW = "now", "at once, floods as a summary"
        HOURLY = "hourly", "once an hour"
        DAILY = "daily", "once a day"

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="channels")
    kind = models.CharField(max_length=8, choices=Kind)
    url = models.CharField(max_length=500, blank=True)
    pace = models.CharField(max_length=8, choices=Pace, default=Pace.NOW)
    digest_hour = models.PositiveSmallIntegerField(
        default=7, db_default=7, help_text="At which hour of the day a daily digest leaves."
    )
    digest_zone = models.CharField(
        max_length=64, default="UTC", db_default="UTC", help_text="In which zone that hour is."
    )
    nonce = models.CharField(
        max_length=64, blank=True, help_text="Of which, with the portal's key, the secret is made."
    )
    secret_check = models.CharField(
        max_length=64, blank=True, help_text="By which a secret of another key is known."
    )
    sealed_secret = models.TextField(
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="The secret, encrypted, where a former key of the portal made it.",
    )
    is_enabled = models.BooleanField(default=True)
    off_reason = models.TextField(blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user"], condition=models.Q(kind="email"), name="channel_one_email"
            ),
            models.UniqueConstraint(
                fields=["user", "url"], condition=models.Q(kind="webhook"), name="channel_url_once"
            ),
            models.CheckConstraint(
                condition=models.Q(kind="email", url="")
                | (models.Q(kind="webhook") & ~models.Q(url="") & ~models.Q(nonce="")),
                name="channel_webhook_has_url",
            ),
            models.CheckConstraint(
                condition=models.Q(digest_hour__lt=24), name="channel_hour_of_a_day"
            ),
            models.CheckConstraint(
                condition=models.Q(is_enabled=True) | ~models.Q(off_reason=""),
                name="channel_off_has_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of user {self.user_id}"


class Delivery(models.Model):
    """One message to one channel; by its id, the same at every try, receivers know it again."""

    class State(models.TextChoices):
        """States of a delivery."""

        WAITING = "waiting", "waiting"
        SENT = "sent", "sent"
        GIVEN_UP = "given-up", "given up"
        DROPPED = "dropped", "nothing left to tell"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="deliveries")
    thread = models.CharField(
        max_length=120, blank=True, help_text="The one object that it is about; empty for several."
    )
    is_test = models.BooleanField(default=False)
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    attempts = models.PositiveIntegerField(default=0)
    next_at = models.DateTimeField()
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=300, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=["waiting", "sent", "given-up", "dropped"]),
                name="delivery_state_known",
            ),
        ]
        indexes = [
            models.Index(
                fields=["next_at"], condition=models.Q(state="waiting"), name="delivery_waiting"
            ),
            models.Index(fields=["channel", "-created_at"], name="delivery_by_channel"),
        ]

    def __str__(self) -> str:
        return f"delivery {self.id}"


class Outgoing(models.Model):
    """A notice that is to leave by a channel: unpacked until a delivery carries it."""

    notice = models.ForeignKey(Notice, on_delete=models.CASCADE, related_name="outgoing")
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="outgoing")
    delivery = models.ForeignKey(
        Delivery, null=True, on_delete=models.CASCADE, related_name="outgoing"
    )
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["notice", "channel"],
                condition=models.Q(delivery=None),
                name="outgoing_waits_once",
            ),
        ]
        indexes = [
            models.Index(
                fields=["channel", "id"],
                condition=models.Q(delivery=None),
                name="outgoing_unpacked",
            ),
        ]

    def __str__(self) -> str:
        return f"notice {self.notice_id} by channel {self.channel_id}"
