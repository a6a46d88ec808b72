"""Models of frontends, accounting groups, submitters, quotas, concurrency limits, use of a day.

A row `Quota` limits waiting jobs, clusters and bytes of a user or group; a group's own quota is of
matches. Use of a day is core-seconds, times and attempts by site, group, user and label.
"""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models.functions import Now

#: More than anybody means, and small enough to be added and multiplied.
_MOST = 1e12
_GROUP_NAME = RegexValidator(
    r"\A[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z][A-Za-z0-9_-]*)*\Z",
    "Use words of letters, digits, hyphens and underscores, joined by points.",
)
_LIMIT_NAME = RegexValidator(
    r"\A(\*|[a-z_][a-z0-9_]*(\.(\*|[a-z_][a-z0-9_]*))?)\Z",
    "Use a lower-case name such as db or db.read; db.* and * are for all without their own limit.",
)


_FRONTEND_NAME = RegexValidator(
    r"\A[A-Za-z0-9][A-Za-z0-9_.-]*\Z", "Use letters, digits, points, hyphens and underscores."
)


class Frontend(models.Model):
    """A collaboration that has pilots of its own: they run the jobs of its groups, and no others.

    What is in the name of no group, or of a group without a frontend, is the default frontend's,
    which has no row.
    """

    name = models.CharField(max_length=64, unique=True, validators=[_FRONTEND_NAME])
    description = models.TextField(blank=True, help_text="Who it is, and whom to ask.")
    start_expression = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text="ClassAd expression: for which jobs (TARGET) it has pilots at which entry (MY); "
        "its pilots take no others. Empty: for all of its groups.",
    )
    is_enabled = models.BooleanField(
        default=True,
        help_text="For one that is off no pilot is sent, and those that wait are taken back.",
    )

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class AccountingGroup(models.Model):
    """A group that shares the sites' places with others; `physics.higgs` is below `physics`."""

    class QuotaKind(models.TextChoices):
        """Kinds of quotas: a number of slots, or a fraction."""

        STATIC = "static", "places"
        DYNAMIC = "dynamic", "fraction of the parent's"

    name = models.CharField(max_length=64, unique=True, validators=[_GROUP_NAME])
    quota_kind = models.CharField(
        max_length=8, choices=QuotaKind, default=QuotaKind.DYNAMIC, help_text="Unit of the quota."
    )
    quota = models.FloatField(
        default=0.0,
        validators=[MinValueValidator(0.0), MaxValueValidator(_MOST)],
        help_text="Places (matches held at once), or the fraction of the parent's from 0 to 1.",
    )
    accepts_surplus = models.BooleanField(
        default=True, help_text="May use what other groups leave unused, beyond its quota."
    )
    share = models.FloatField(
        default=1000.0,
        db_default=1000.0,
        validators=[MinValueValidator(1e-3), MaxValueValidator(_MOST)],
        help_text="Its part in the draws of TaskQueues, relative to other groups; divided equally "
        "among its users that have jobs waiting.",
    )
    has_job_sharing = models.BooleanField(
        default=False,
        db_default=False,
        help_text="JOB_SHARING: the share belongs to the group as a whole, and a private pilot of "
        "one member runs the jobs of all.",
    )
    frontend = models.ForeignKey(
        Frontend,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="groups",
        help_text="Whose pilots run its jobs; empty: those of the default frontend.",
    )
    members = models.ManyToManyField(
        settings.AUTH_USER_MODEL,
        blank=True,
        related_name="accounting_groups",
        help_text="Who may submit in the name of the group.",
    )

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(condition=models.Q(quota__gte=0), name="group_quota_positive"),
            models.CheckConstraint(condition=models.Q(share__gt=0), name="group_share_positive"),
        ]

    def __str__(self) -> str:
        return self.name


class Submitter(models.Model):
    """A user, by themselves or in the name of a group, who is charged for slots."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="submitters"
    )
    group = models.ForeignKey(
        AccountingGroup, null=True, blank=True, on_delete=models.CASCADE, related_name="submitters"
    )
    real_priority = models.FloatField(
        default=0.5, help_text="Slots used of late, the older the less they count; at least 0.5."
    )
    factor = models.FloatField(
        default=1000.0,
        validators=[MinValueValidator(1.0), MaxValueValidator(_MOST)],
        help_text="The effective priority is the real one times this; smaller is better.",
    )
    used_slots = models.FloatField(default=0.0, help_text="Cores in use now.")
    used_slot_s = models.FloatField(default=0.0, help_text="Core seconds used in all.")
    charged_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "group"], name="submitter_unique", nulls_distinct=False
            ),
            models.CheckConstraint(
                condition=models.Q(factor__gte=1), name="submitter_factor_at_least_one"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.group}.{self.user}" if self.group else str(self.user)


class Quota(models.Model):
    """Quota: the most that one user, or all members of a group together, may have at a time.

    Without user and group it is for each user who has none of their own. A limit that is empty
    does not exist. `wms.jobs.quotas` refuses what would go beyond.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="Whose it is; with neither user nor group: of every user without their own.",
    )
    group = models.ForeignKey(
        AccountingGroup,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="For all that is in the name of this group and of those below it, together.",
    )
    max_waiting_jobs = models.BigIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text="Jobs that wait, and nodes and jobs that are still to be made. Empty: no limit.",
    )
    max_clusters = models.BigIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text="Clusters and DAGs that have not ended. Empty: no limit.",
    )
    max_bytes = models.BigIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text="Size of all stored input and output files. Empty: no limit.",
    )

    class Meta:
        ordering = ["group__name", "user__username"]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "group"], name="quota_unique", nulls_distinct=False
            ),
            models.CheckConstraint(
                condition=models.Q(user=None) | models.Q(group=None),
                name="quota_of_user_or_group",
            ),
        ]

    def __str__(self) -> str:
        if self.user is not None:
            return f"quota of user {self.user}"
        return f"quota of group {self.group}" if self.group else "quota of every user"


class ConcurrencyLimit(models.Model):
    """A limit on the concurrent use of something over all sites, such as licences."""

    name = models.CharField(max_length=64, unique=True, validators=[_LIMIT_NAME])
    maximum = models.FloatField(validators=[MinValueValidator(0.0), MaxValueValidator(_MOST)])
    note = models.CharField(max_length=200, blank=True, help_text="What it protects.")

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(condition=models.Q(maximum__gte=0), name="limit_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.name}: {self.maximum:g}"


class UseSums(models.Model):
    """Sums of core-seconds, times and attempts that have ended, by their last day (UTC).

    `cpu_s` and `wall_s` are CPU and wall time of payloads. Rows of an older version count neither
    these nor what failed or was lost.
    """

    day = models.DateField()
    site_name = models.CharField(max_length=64)
    group_name = models.CharField(
        max_length=64, blank=True, default="", db_default="", help_text="Accounting group, or none."
    )
    owner_name = models.CharField(max_length=150, blank=True)
    useful_s = models.FloatField(default=0.0)
    failed_s = models.FloatField(default=0.0)
    lost_s = models.FloatField(default=0.0)
    cpu_s = models.FloatField(default=0.0, db_default=0.0)
    wall_s = models.FloatField(default=0.0, db_default=0.0)
    attempts = models.PositiveIntegerField(default=0)
    failed_attempts = models.PositiveIntegerField(default=0, db_default=0)
    lost_attempts = models.PositiveIntegerField(default=0, db_default=0)

    class Meta:
        abstract = True


class DailyUse(UseSums):
    """Use of a day at one site, by one user's jobs in the name of a group, or by no job.

    Attempts and pilots are added once, on the day of their end. Rows without a user are the pilots'
    own: what they spent on checks, and what no job used.
    """

    idle_s = models.FloatField(default=0.0)
    validation_s = models.FloatField(default=0.0)
    pilots = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["day", "site_name", "group_name", "owner_name"], name="daily_use_unique"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.day} {self.site_name} {self.owner_name}"


class LabelUse(UseSums):
    """Use of a day by the jobs that carried a label when they ended.

    An attempt counts once for each label of its DAG or cluster, so labels do not add up.
    """

    label = models.CharField(max_length=64)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["day", "label", "site_name", "group_name", "owner_name"],
                name="label_use_unique",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.day} {self.label} {self.site_name} {self.owner_name}"
