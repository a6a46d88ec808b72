"""Models of sites, queues, ads and advertisements, throttles, and events of sites."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Value
from django.db.models.functions import Now

from wms.accounting.models import AccountingGroup
from wms.core.models import EventRecord, User
from wms.elements.registry import ELEMENTS
from wms.sites import fences, private_pilots
from wms.sites.downtimes import models as downtime_models  # noqa: F401 - Django looks here only.
from wms.sites.states import SiteState

_NAME = RegexValidator(
    r"\A[A-Za-z0-9][A-Za-z0-9_.-]*\Z", "Use letters, digits, points, hyphens and underscores."
)

_PROXY = RegexValidator(
    r"\Ahttp://[A-Za-z0-9.-]+(:[0-9]{1,5})?/?\Z", "Use http://HOST:PORT, without an account."
)


def _element_choices() -> list[tuple[str, str]]:
    return [(kind, kind) for kind in sorted(ELEMENTS)]


class Site(models.Model):
    """A place with its own batch queues, to which whole DAGs are matched."""

    class MatchesUnit(models.TextChoices):
        """Unit in which `max_matches` counts."""

        DAGS = "dags", "DAGs"
        JOBS = "jobs", "jobs: a DAG counts with its unfinished nodes"

    name = models.CharField(max_length=64, unique=True, validators=[_NAME])
    is_enabled = models.BooleanField(
        default=True, help_text="A site that is off takes no DAG and no pilot."
    )
    state = models.CharField(
        max_length=16, choices=SiteState, default=SiteState.OPEN, db_default=SiteState.OPEN
    )
    state_since = models.DateTimeField(db_default=Now())
    state_reason = models.TextField(blank=True, default="", db_default="")
    state_by = models.CharField(
        max_length=160, blank=True, default="", db_default="", help_text="Who put it in its state."
    )
    max_matches = models.PositiveIntegerField(
        default=2,
        help_text="How many DAGs, or jobs, may be bound to the site at once (MaxMatches).",
    )
    matches_unit = models.CharField(
        max_length=8,
        choices=MatchesUnit,
        default=MatchesUnit.DAGS,
        db_default=MatchesUnit.DAGS,
        help_text="What MaxMatches counts.",
    )
    group_size = models.PositiveIntegerField(
        default=50,
        db_default=50,
        validators=[MinValueValidator(1)],
        help_text="Jobs that count as one match, where MaxMatches counts jobs.",
    )
    failure_threshold = models.PositiveIntegerField(
        default=18,
        db_default=18,
        help_text="Failed DAGs and pilots in ten minutes; above it the site gets fewer matches, "
        "then none, until successes return. 0: never.",
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
    administrators = models.ManyToManyField(
        User,
        blank=True,
        related_name="administered_sites",
        help_text="Who may change this site and its queues, besides operators; their accounts need "
        "the role of a site administrator, or a higher one.",
    )

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=SiteState.values), name="site_state_known"
            ),
            models.CheckConstraint(
                condition=models.Q(state="open") | ~models.Q(state_reason=""),
                name="site_closed_has_reason",
            ),
            models.CheckConstraint(
                condition=models.Q(group_size__gte=1), name="site_group_size_positive"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Queue(models.Model):
    """One entry of a site's batch system, to which pilots are submitted."""

    Fence = fences.Fence
    Network = fences.Network
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
    cpu_power = models.FloatField(
        default=1.0,
        db_default=1.0,
        validators=[MinValueValidator(0.01), MaxValueValidator(1000.0)],
        help_text="Power of a core of its nodes, 1.0 being that for which jobs tell their CPU "
        "time; the check benchmark measures it.",
    )
    platform = models.CharField(max_length=64, blank=True)
    tags = models.JSONField(
        default=list, blank=True, help_text="Tags that jobs may require, as a JSON list."
    )
    required_tags = models.JSONField(
        default=list,
        blank=True,
        help_text="Only jobs that carry all of these tags are taken, as a JSON list.",
    )
    gpus = models.PositiveIntegerField(default=0, db_default=0, help_text="GPUs of a pilot.")
    setup = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="Only jobs of this setup are taken; empty: those of none.",
    )
    submit_pool = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="Pilots are sent for jobs that name this pool, or none.",
    )
    is_private = private_pilots.is_private_field()
    has_owners = property(private_pilots.has_owners)
    owner = models.ForeignKey(
        User, null=True, blank=True, on_delete=models.PROTECT, related_name="+",
        help_text="Private pilots: they run only this user's jobs.",
    )  # fmt: skip
    owner_group = models.ForeignKey(
        AccountingGroup, null=True, blank=True, on_delete=models.PROTECT, related_name="+",
        help_text="The group in whose name private pilots of the owner run; with job sharing, they "
        "run the jobs of all its members.",
    )  # fmt: skip
    fence = models.CharField(
        max_length=16,
        choices=Fence,
        default=Fence.AUTO,
        db_default=Fence.AUTO,
        help_text="What keeps payloads apart from the pilot and from each other.",
    )
    settled_fence = fences.settled_field()
    effective_fence = property(fences.effective_fence)
    network = models.CharField(
        max_length=16,
        choices=Network,
        default=Network.AUTO,
        db_default=Network.AUTO,
        help_text="What payloads reach of the network; a node that cannot keep to it gets no job.",
    )
    shared_folders = models.JSONField(
        default=list,
        blank=True,
        db_default=Value([], models.JSONField()),
        help_text="Folders of the node that payloads see through their fence, as a JSON list, for "
        'example [{"path": "/data", "is_writable": true}].',
    )
    payload_accounts = models.JSONField(
        default=dict,
        blank=True,
        db_default=Value({}, models.JSONField()),
        help_text="Accounts of the nodes that jobs of users and groups run under, with the fence "
        'sudo, as a JSON object, for example {"users": {"alice": ["alice"]}, "groups": {"cms": '
        '["cms1", "cms2"]}}; all others run under those of the pool.',
    )
    payload_limits = models.JSONField(
        default=dict,
        blank=True,
        db_default=Value({}, models.JSONField()),
        help_text="What payloads may use besides what their jobs ask for, as a JSON object, for "
        'example {"disk_mb": 20000, "files": 500000, "progress_ratio": 0.01}.',
    )
    http_proxy = models.CharField(
        max_length=200,
        blank=True,
        default="",
        db_default="",
        validators=[_PROXY],
        help_text="Through it pilots fetch their files, as http://HOST:PORT; empty: directly.",
    )
    checks = models.JSONField(
        default=list,
        blank=True,
        db_default=Value([], models.JSONField()),
        help_text="Checks of a node besides those that all pilots do, as a JSON list of objects.",
    )
    hold_after_failure_s = models.PositiveIntegerField(
        default=1200,
        db_default=1200,
        help_text="So long after its start a pilot keeps the slot of an unfit node, in seconds.",
    )
    attenuation = models.FloatField(
        default=3.0,
        db_default=3.0,
        validators=[MinValueValidator(1.0)],
        help_text="As many pilots wait in the batch system as are missing, divided by this.",
    )
    max_idle_pilots = models.PositiveIntegerField(
        default=100,
        db_default=100,
        help_text="With so many running pilots that have no job no more are sent.",
    )
    curb_idle_pilots = models.PositiveIntegerField(
        default=5,
        db_default=5,
        help_text="From so many running pilots without a job on the pressure is halved.",
    )
    max_held_pilots = models.PositiveIntegerField(
        default=50,
        db_default=50,
        help_text="With so many pilots held by the batch system no more are sent.",
    )
    max_submits = models.PositiveIntegerField(
        default=100,
        db_default=100,
        validators=[MinValueValidator(1)],
        help_text="Pilots that are submitted in one turn, at most.",
    )
    batch_size = models.PositiveIntegerField(
        default=50,
        db_default=50,
        validators=[MinValueValidator(1)],
        help_text="Pilots in one submission, at most.",
    )
    max_removals = models.PositiveIntegerField(
        default=5, db_default=5, help_text="Waiting pilots that are cancelled in one turn, at most."
    )
    removal_margin = models.PositiveIntegerField(
        default=0, db_default=0, help_text="So many waiting pilots more than wanted are left alone."
    )
    removal_wait_s = models.PositiveIntegerField(
        default=300,
        db_default=300,
        help_text="Demand must be gone for so long before waiting pilots are cancelled.",
    )
    queued_lifetime_s = models.PositiveIntegerField(
        default=604_800,
        db_default=604_800,
        help_text="A pilot that waited longer in the batch system is cancelled, in seconds.",
    )

    class Meta:
        ordering = ["site__name", "name"]
        constraints = [
            models.UniqueConstraint(fields=["site", "name"], name="queue_name_unique_in_site"),
            models.CheckConstraint(
                condition=models.Q(cpu_power__gte=0.01, cpu_power__lte=1000),
                name="queue_cpu_power_is_sane",
            ),
            models.CheckConstraint(condition=models.Q(cores__gte=1), name="queue_has_a_core"),
            models.CheckConstraint(
                condition=models.Q(attenuation__gte=1.0), name="queue_attenuation_from_one"
            ),
            models.CheckConstraint(
                condition=models.Q(owner_group=None) | models.Q(owner__isnull=False),
                name="queue_private_has_owner",
            ),
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
    cur_matches = models.PositiveIntegerField(
        help_text="What is bound to the site, in the unit of its max_matches."
    )
    published_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"ad of {self.site.name}, number {self.sequence}"


class Advertisement(models.Model):
    """The last advertisement of a site at run time; it is merged into the site's ad.

    It stays when it is invalidated: a replay is known by its sequence number.
    """

    site = models.OneToOneField(Site, on_delete=models.CASCADE, related_name="advertisement")
    attributes = models.TextField(help_text="One `Name = expression` a line.")
    sequence = models.BigIntegerField(help_text="UpdateSequenceNumber of the sender.")
    lifetime_s = models.PositiveIntegerField(help_text="ClassAdLifetime.")
    received_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    advertised_by = models.CharField(max_length=160)
    invalidated_at = models.DateTimeField(null=True, blank=True)
    invalidated_by = models.CharField(max_length=160, blank=True)

    def __str__(self) -> str:
        return f"advertisement of {self.site.name}, number {self.sequence}"


class SiteThrottle(models.Model):
    """Allowance of new matches of a site in a period of ten minutes, after its failures."""

    site = models.OneToOneField(Site, on_delete=models.CASCADE, related_name="throttle")
    judged_until = models.DateTimeField(help_text="End of the last period that was judged.")
    allowance = models.FloatField(
        null=True, blank=True, help_text="New matches in a period; empty: as many as there are."
    )
    matched = models.FloatField(default=0.0, help_text="New matches since `judged_until`.")
    failures = models.PositiveIntegerField(default=0, help_text="In the last period judged.")
    successes = models.PositiveIntegerField(default=0, help_text="In the last period judged.")

    def __str__(self) -> str:
        return f"throttle of {self.site.name}"

    @property
    def ended(self) -> int:
        """DAGs and pilots that ended in the last period judged."""
        return self.failures + self.successes


class SiteEvent(EventRecord):
    """One change of a site's configuration or state."""

    site = models.ForeignKey(Site, on_delete=models.CASCADE, related_name="events")
    created_at = models.DateTimeField(db_default=Now(), db_index=True)

    def __str__(self) -> str:
        return f"{self.site.name}: {self.event}"
