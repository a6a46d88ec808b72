import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import wms.sites.models
from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    replaces = [
        ("sites", "0001_schema"),
        ("sites", "0002_private_queues"),
        ("sites", "0003_frontends"),
        ("sites", "0004_imported_downtimes"),
        ("sites", "0005_power_and_accounts"),
        ("sites", "0006_start_expressions"),
    ]

    initial = True

    dependencies = [
        ("accounting", "0001_tables"),
        ("core", "__first__"),
    ]

    operations = [
        migrations.CreateModel(
            name="Site",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        max_length=64,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\\A[A-Za-z0-9][A-Za-z0-9_.-]*\\Z",
                                "Use letters, digits, points, hyphens and underscores.",
                            )
                        ],
                    ),
                ),
                (
                    "is_enabled",
                    models.BooleanField(
                        default=True, help_text="A site that is off takes no DAG and no pilot."
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("open", "open"), ("draining", "draining"), ("banned", "banned")],
                        db_default="open",
                        default="open",
                        max_length=16,
                    ),
                ),
                (
                    "state_since",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("state_reason", models.TextField(blank=True, db_default="", default="")),
                (
                    "state_by",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Who put it in its state.",
                        max_length=160,
                    ),
                ),
                (
                    "max_matches",
                    models.PositiveIntegerField(
                        default=2,
                        help_text="How many DAGs, or jobs, may be bound to the site at once (MaxMatches).",
                    ),
                ),
                (
                    "matches_unit",
                    models.CharField(
                        choices=[
                            ("dags", "DAGs"),
                            ("jobs", "jobs: a DAG counts with its unfinished nodes"),
                        ],
                        db_default="dags",
                        default="dags",
                        help_text="What MaxMatches counts.",
                        max_length=8,
                    ),
                ),
                (
                    "group_size",
                    models.PositiveIntegerField(
                        db_default=50,
                        default=50,
                        help_text="Jobs that count as one match, where MaxMatches counts jobs.",
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "failure_threshold",
                    models.PositiveIntegerField(
                        db_default=18,
                        default=18,
                        help_text="Failed DAGs and pilots in ten minutes; above it the site gets fewer matches, then none, until successes return. 0: never.",
                    ),
                ),
                (
                    "requirements",
                    models.TextField(
                        default="CurMatches < MaxMatches",
                        help_text="ClassAd expression: which DAGs the site takes. TARGET is the DAG's ad.",
                    ),
                ),
                (
                    "rank",
                    models.TextField(
                        default="0.0",
                        help_text="ClassAd expression: which DAGs the site prefers; larger is better.",
                    ),
                ),
                (
                    "environment",
                    models.TextField(
                        blank=True,
                        help_text="One NAME=value a line: SiteEnvironment, what $ENV(NAME) means at this site.",
                    ),
                ),
                (
                    "attributes",
                    models.TextField(
                        blank=True,
                        help_text="Further ad attributes, one `Name = expression` a line.",
                    ),
                ),
                (
                    "administrators",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Who may change this site and its queues, besides operators; their accounts need the role of a site administrator, or a higher one.",
                        related_name="administered_sites",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["open", "draining", "banned"])),
                        name="site_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state", "open"),
                            models.Q(("state_reason", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="site_closed_has_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("group_size__gte", 1)), name="site_group_size_positive"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Queue",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        max_length=64,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\\A[A-Za-z0-9][A-Za-z0-9_.-]*\\Z",
                                "Use letters, digits, points, hyphens and underscores.",
                            )
                        ],
                    ),
                ),
                (
                    "element",
                    models.CharField(choices=wms.sites.models._element_choices, max_length=16),
                ),
                (
                    "settings",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="What the element needs to know, as a JSON object.",
                    ),
                ),
                ("is_enabled", models.BooleanField(default=True)),
                (
                    "max_pilots",
                    models.PositiveIntegerField(
                        default=10, help_text="Queued and running pilots in all."
                    ),
                ),
                (
                    "max_queued_pilots",
                    models.PositiveIntegerField(
                        default=5, help_text="Pilots that wait in the batch system."
                    ),
                ),
                (
                    "cores",
                    models.PositiveIntegerField(
                        default=1,
                        help_text="Cores of a pilot.",
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "memory_mb",
                    models.PositiveIntegerField(default=2000, help_text="Memory of a pilot in MB."),
                ),
                (
                    "wall_time_s",
                    models.PositiveIntegerField(
                        default=86400, help_text="Longest life of a pilot in seconds."
                    ),
                ),
                (
                    "cpu_power",
                    models.FloatField(
                        db_default=1.0,
                        default=1.0,
                        help_text="Power of a core of its nodes, 1.0 being that for which jobs tell their CPU time; the check benchmark measures it.",
                        validators=[
                            django.core.validators.MinValueValidator(0.01),
                            django.core.validators.MaxValueValidator(1000.0),
                        ],
                    ),
                ),
                ("platform", models.CharField(blank=True, max_length=64)),
                (
                    "tags",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Tags that jobs may require, as a JSON list.",
                    ),
                ),
                (
                    "required_tags",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Only jobs that carry all of these tags are taken, as a JSON list.",
                    ),
                ),
                (
                    "gpus",
                    models.PositiveIntegerField(
                        db_default=0, default=0, help_text="GPUs of a pilot."
                    ),
                ),
                (
                    "setup",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Only jobs of this setup are taken; empty: those of none.",
                        max_length=64,
                    ),
                ),
                (
                    "submit_pool",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Pilots are sent for jobs that name this pool, or none.",
                        max_length=64,
                    ),
                ),
                (
                    "is_private",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Private pilots: without an owner below, each is sent for a user whose jobs wait, drawn by the priorities of the TaskQueues, and runs only this user's jobs.",
                    ),
                ),
                (
                    "fence",
                    models.CharField(
                        choices=[
                            ("auto", "auto: bwrap where it works on the first node, else none"),
                            ("bwrap", "bwrap: a sandbox of bubblewrap"),
                            ("apptainer", "apptainer: a container"),
                            ("sudo", "sudo: another account"),
                            ("none", "none: nothing"),
                        ],
                        db_default="auto",
                        default="auto",
                        help_text="What keeps payloads apart from the pilot and from each other.",
                        max_length=16,
                    ),
                ),
                (
                    "settled_fence",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("bwrap", "bwrap: a sandbox of bubblewrap"),
                            ("none", "none: nothing"),
                        ],
                        db_default="",
                        default="",
                        editable=False,
                        max_length=16,
                    ),
                ),
                (
                    "network",
                    models.CharField(
                        choices=[
                            (
                                "auto",
                                "auto: the node's, without link-local addresses where that works",
                            ),
                            ("node", "node: the node's, without link-local addresses"),
                            ("portal", "portal: the portal only"),
                            ("none", "none: nothing"),
                        ],
                        db_default="auto",
                        default="auto",
                        help_text="What payloads reach of the network; a node that cannot keep to it gets no job.",
                        max_length=16,
                    ),
                ),
                (
                    "shared_folders",
                    models.JSONField(
                        blank=True,
                        db_default=models.Value([], models.JSONField()),
                        default=list,
                        help_text='Folders of the node that payloads see through their fence, as a JSON list, for example [{"path": "/data", "is_writable": true}].',
                    ),
                ),
                (
                    "payload_accounts",
                    models.JSONField(
                        blank=True,
                        db_default=models.Value({}, models.JSONField()),
                        default=dict,
                        help_text='Accounts of the nodes that jobs of users and groups run under, with the fence sudo, as a JSON object, for example {"users": {"alice": ["alice"]}, "groups": {"cms": ["cms1", "cms2"]}}; all others run under those of the pool.',
                    ),
                ),
                (
                    "payload_limits",
                    models.JSONField(
                        blank=True,
                        db_default=models.Value({}, models.JSONField()),
                        default=dict,
                        help_text='What payloads may use besides what their jobs ask for, as a JSON object, for example {"disk_mb": 20000, "files": 500000, "progress_ratio": 0.01}.',
                    ),
                ),
                (
                    "http_proxy",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Through it pilots fetch their files, as http://HOST:PORT; empty: directly.",
                        max_length=200,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\\Ahttp://[A-Za-z0-9.-]+(:[0-9]{1,5})?/?\\Z",
                                "Use http://HOST:PORT, without an account.",
                            )
                        ],
                    ),
                ),
                (
                    "checks",
                    models.JSONField(
                        blank=True,
                        db_default=models.Value([], models.JSONField()),
                        default=list,
                        help_text="Checks of a node besides those that all pilots do, as a JSON list of objects.",
                    ),
                ),
                (
                    "hold_after_failure_s",
                    models.PositiveIntegerField(
                        db_default=1200,
                        default=1200,
                        help_text="So long after its start a pilot keeps the slot of an unfit node, in seconds.",
                    ),
                ),
                (
                    "attenuation",
                    models.FloatField(
                        db_default=3.0,
                        default=3.0,
                        help_text="As many pilots wait in the batch system as are missing, divided by this.",
                        validators=[django.core.validators.MinValueValidator(1.0)],
                    ),
                ),
                (
                    "max_idle_pilots",
                    models.PositiveIntegerField(
                        db_default=100,
                        default=100,
                        help_text="With so many running pilots that have no job no more are sent.",
                    ),
                ),
                (
                    "curb_idle_pilots",
                    models.PositiveIntegerField(
                        db_default=5,
                        default=5,
                        help_text="From so many running pilots without a job on the pressure is halved.",
                    ),
                ),
                (
                    "max_held_pilots",
                    models.PositiveIntegerField(
                        db_default=50,
                        default=50,
                        help_text="With so many pilots held by the batch system no more are sent.",
                    ),
                ),
                (
                    "max_submits",
                    models.PositiveIntegerField(
                        db_default=100,
                        default=100,
                        help_text="Pilots that are submitted in one turn, at most.",
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "batch_size",
                    models.PositiveIntegerField(
                        db_default=50,
                        default=50,
                        help_text="Pilots in one submission, at most.",
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "max_removals",
                    models.PositiveIntegerField(
                        db_default=5,
                        default=5,
                        help_text="Waiting pilots that are cancelled in one turn, at most.",
                    ),
                ),
                (
                    "removal_margin",
                    models.PositiveIntegerField(
                        db_default=0,
                        default=0,
                        help_text="So many waiting pilots more than wanted are left alone.",
                    ),
                ),
                (
                    "removal_wait_s",
                    models.PositiveIntegerField(
                        db_default=300,
                        default=300,
                        help_text="Demand must be gone for so long before waiting pilots are cancelled.",
                    ),
                ),
                (
                    "queued_lifetime_s",
                    models.PositiveIntegerField(
                        db_default=604800,
                        default=604800,
                        help_text="A pilot that waited longer in the batch system is cancelled, in seconds.",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        help_text="Private pilots: they run only this user's jobs.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "owner_group",
                    models.ForeignKey(
                        blank=True,
                        help_text="The group in whose name private pilots of the owner run; with job sharing, they run the jobs of all its members.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounting.accountinggroup",
                    ),
                ),
                (
                    "site",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="queues",
                        to="sites.site",
                    ),
                ),
            ],
            options={
                "ordering": ["site__name", "name"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("site", "name"), name="queue_name_unique_in_site"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("cpu_power__gte", 0.01), ("cpu_power__lte", 1000)),
                        name="queue_cpu_power_is_sane",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("cores__gte", 1)), name="queue_has_a_core"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("attenuation__gte", 1.0)),
                        name="queue_attenuation_from_one",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("owner_group", None), ("owner__isnull", False), _connector="OR"
                        ),
                        name="queue_private_has_owner",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Downtime",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("start", models.DateTimeField(help_text="From now on no pilot is sent either.")),
                ("end", models.DateTimeField()),
                (
                    "lead_time_s",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="So long before the start the site takes no new DAG, in seconds.",
                    ),
                ),
                ("reason", models.TextField()),
                ("author", models.CharField(max_length=160)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("cancelled_at", models.DateTimeField(blank=True, null=True)),
                ("cancelled_by", models.CharField(blank=True, max_length=160)),
                ("cancel_reason", models.TextField(blank=True, db_default="", default="")),
                (
                    "source",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        editable=False,
                        help_text="Where it was imported from; empty: a person entered it.",
                        max_length=64,
                    ),
                ),
                (
                    "uid",
                    models.CharField(
                        blank=True, db_default="", default="", editable=False, max_length=255
                    ),
                ),
                (
                    "recurrence",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        editable=False,
                        help_text="Of a repeated event of the source: when this occurrence should have begun.",
                        max_length=16,
                    ),
                ),
                ("sequence", models.PositiveIntegerField(db_default=0, default=0, editable=False)),
                (
                    "imported",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        editable=False,
                        help_text="Version of its terms as they were imported last.",
                        max_length=16,
                    ),
                ),
                (
                    "site",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="downtimes",
                        to="sites.site",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("cancelled_at", None)),
                        fields=["end"],
                        name="downtime_by_end",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("source", ""), _negated=True),
                        fields=("source", "uid", "recurrence", "site"),
                        name="downtime_imported_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("end__gt", models.F("start"))),
                        name="downtime_ends_after_start",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("reason", ""), _negated=True),
                        name="downtime_has_reason",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Advertisement",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("attributes", models.TextField(help_text="One `Name = expression` a line.")),
                (
                    "sequence",
                    models.BigIntegerField(help_text="UpdateSequenceNumber of the sender."),
                ),
                ("lifetime_s", models.PositiveIntegerField(help_text="ClassAdLifetime.")),
                ("received_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                ("advertised_by", models.CharField(max_length=160)),
                ("invalidated_at", models.DateTimeField(blank=True, null=True)),
                ("invalidated_by", models.CharField(blank=True, max_length=160)),
                (
                    "site",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="advertisement",
                        to="sites.site",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SiteAd",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("text", models.TextField()),
                (
                    "sequence",
                    models.BigIntegerField(
                        help_text="UpdateSequenceNumber: larger with each publication."
                    ),
                ),
                (
                    "cur_matches",
                    models.PositiveIntegerField(
                        help_text="What is bound to the site, in the unit of its max_matches."
                    ),
                ),
                ("published_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                (
                    "site",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="ad",
                        to="sites.site",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SiteEvent",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("event", models.CharField(max_length=32)),
                ("from_state", models.CharField(blank=True, max_length=16)),
                ("to_state", models.CharField(blank=True, max_length=16)),
                ("actor", models.CharField(max_length=160)),
                ("reason", models.TextField(blank=True)),
                ("facts", models.JSONField(blank=True, default=dict)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), db_index=True
                    ),
                ),
                (
                    "site",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="events",
                        to="sites.site",
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="SiteThrottle",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "judged_until",
                    models.DateTimeField(help_text="End of the last period that was judged."),
                ),
                (
                    "allowance",
                    models.FloatField(
                        blank=True,
                        help_text="New matches in a period; empty: as many as there are.",
                        null=True,
                    ),
                ),
                (
                    "matched",
                    models.FloatField(default=0.0, help_text="New matches since `judged_until`."),
                ),
                (
                    "failures",
                    models.PositiveIntegerField(default=0, help_text="In the last period judged."),
                ),
                (
                    "successes",
                    models.PositiveIntegerField(default=0, help_text="In the last period judged."),
                ),
                (
                    "site",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="throttle",
                        to="sites.site",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="FrontendEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "share",
                    models.FloatField(
                        db_default=1.0,
                        default=1.0,
                        help_text="Its part of the queue's pilots relative to other frontends whose jobs wait for it; 0: none. What others do not need is used.",
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(1000000.0),
                        ],
                    ),
                ),
                (
                    "max_pilots",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Its pilots here, at most; empty: as many as the queue has.",
                        null=True,
                    ),
                ),
                (
                    "max_queued_pilots",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Its waiting pilots here, at most; empty: as many as the queue lets wait.",
                        null=True,
                    ),
                ),
                (
                    "start_expression",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="ClassAd expression beside the frontend's own: for which jobs (TARGET) it has pilots here (MY). Empty: for all that the frontend's allows.",
                    ),
                ),
                (
                    "frontend",
                    models.ForeignKey(
                        blank=True,
                        help_text="Whose pilots are sent here; empty: those of the default frontend.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="entries",
                        to="accounting.frontend",
                    ),
                ),
                (
                    "queue",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="frontend_entries",
                        to="sites.queue",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "frontend entries",
                "ordering": ["queue__site__name", "queue__name", "frontend__name"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("queue", "frontend"),
                        name="one_entry_of_a_frontend_at_a_queue",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("share__gte", 0)), name="frontend_entry_share_positive"
                    ),
                ],
            },
        ),
    ]
