import django.contrib.auth.models
import django.contrib.auth.validators
import django.db.models.deletion
import django.db.models.functions.datetime
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    replaces = [("core", "0001_schema"), ("core", "0002_clusters")]

    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        migrations.CreateModel(
            name="ControlLoop",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=64, unique=True)),
                ("period_s", models.FloatField()),
                ("started_at", models.DateTimeField(null=True)),
                ("duration_s", models.FloatField(null=True)),
                ("report", models.JSONField(default=dict)),
                ("error", models.TextField(blank=True)),
                ("failed_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="User",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("password", models.CharField(max_length=128, verbose_name="password")),
                (
                    "last_login",
                    models.DateTimeField(blank=True, null=True, verbose_name="last login"),
                ),
                (
                    "is_superuser",
                    models.BooleanField(
                        default=False,
                        help_text="Designates that this user has all permissions without explicitly assigning them.",
                        verbose_name="superuser status",
                    ),
                ),
                (
                    "username",
                    models.CharField(
                        error_messages={"unique": "A user with that username already exists."},
                        help_text="Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.",
                        max_length=150,
                        unique=True,
                        validators=[django.contrib.auth.validators.UnicodeUsernameValidator()],
                        verbose_name="username",
                    ),
                ),
                (
                    "first_name",
                    models.CharField(blank=True, max_length=150, verbose_name="first name"),
                ),
                (
                    "last_name",
                    models.CharField(blank=True, max_length=150, verbose_name="last name"),
                ),
                (
                    "email",
                    models.EmailField(blank=True, max_length=254, verbose_name="email address"),
                ),
                (
                    "is_staff",
                    models.BooleanField(
                        default=False,
                        help_text="Designates whether the user can log into this admin site.",
                        verbose_name="staff status",
                    ),
                ),
                (
                    "is_active",
                    models.BooleanField(
                        default=True,
                        help_text="Designates whether this user should be treated as active. Unselect this instead of deleting accounts.",
                        verbose_name="active",
                    ),
                ),
                (
                    "date_joined",
                    models.DateTimeField(
                        default=django.utils.timezone.now, verbose_name="date joined"
                    ),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("viewer", "viewer"),
                            ("user", "user"),
                            ("site_admin", "site administrator"),
                            ("shifter", "shifter"),
                            ("operator", "operator"),
                            ("admin", "admin"),
                        ],
                        db_default="user",
                        default="user",
                        max_length=16,
                    ),
                ),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        help_text="The groups this user belongs to. A user will get all permissions granted to each of their groups.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.group",
                        verbose_name="groups",
                    ),
                ),
                (
                    "user_permissions",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Specific permissions for this user.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.permission",
                        verbose_name="user permissions",
                    ),
                ),
            ],
            options={
                "verbose_name": "user",
                "verbose_name_plural": "users",
                "abstract": False,
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "role__in",
                                ["viewer", "user", "site_admin", "shifter", "operator", "admin"],
                            )
                        ),
                        name="user_role_known",
                    )
                ],
            },
            managers=[
                ("objects", django.contrib.auth.models.UserManager()),
            ],
        ),
        migrations.CreateModel(
            name="ApiToken",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("prefix", models.CharField(max_length=12, unique=True)),
                ("secret_sha256", models.CharField(max_length=64)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="api_tokens",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "API token",
            },
        ),
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("actor", models.CharField(max_length=160)),
                ("action", models.CharField(max_length=64)),
                ("target", models.CharField(max_length=160)),
                (
                    "object_kind",
                    models.CharField(
                        choices=[
                            ("dag", "DAG"),
                            ("job", "job"),
                            ("cluster", "cluster"),
                            ("placement", "placement"),
                            ("pilot", "pilot"),
                            ("site", "site"),
                            ("queue", "queue"),
                            ("failure", "failure group"),
                            ("operation", "bulk operation"),
                            ("account", "account"),
                            ("personal", "personal"),
                            ("configuration", "configuration"),
                        ],
                        db_default="configuration",
                        default="configuration",
                        max_length=16,
                    ),
                ),
                ("object_key", models.CharField(db_default="", default="", max_length=160)),
                ("reason", models.TextField(blank=True)),
                (
                    "facts",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="Of a change: each field with its old and new value.",
                    ),
                ),
                (
                    "request_id",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The request that asked for it, as it stands in the log; empty: none did.",
                        max_length=64,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), db_index=True
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "audit entries",
                "indexes": [
                    models.Index(fields=["target", "-id"], name="audit_by_target"),
                    models.Index(
                        fields=["object_kind", "object_key", "id"], name="audit_by_object"
                    ),
                    models.Index(fields=["actor", "id"], name="audit_by_actor"),
                    models.Index(fields=["action", "id"], name="audit_by_action"),
                    models.Index(
                        condition=models.Q(("request_id", ""), _negated=True),
                        fields=["request_id"],
                        name="audit_by_request",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "object_kind__in",
                                [
                                    "dag",
                                    "job",
                                    "cluster",
                                    "placement",
                                    "pilot",
                                    "site",
                                    "queue",
                                    "failure",
                                    "operation",
                                    "account",
                                    "personal",
                                    "configuration",
                                ],
                            )
                        ),
                        name="audit_kind_known",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="InboxEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("topic", models.CharField(help_text="Who reads it.", max_length=16)),
                (
                    "key",
                    models.BigIntegerField(
                        help_text="Groups entries that are read together, e.g. a DAG's id."
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("job event", "an event of a job"),
                            ("node event", "an event of a node"),
                            ("pilot event", "an event of a pilot"),
                            ("dag event", "an event of a DAG"),
                            ("site event", "an event of a site"),
                            ("group event", "an event of a failure group"),
                            ("script run", "a script run that has ended"),
                            ("request", "a placement request that has ended"),
                            ("dag", "a DAG"),
                            ("group", "a failure group"),
                            ("look", "nothing: look again"),
                            ("begin", "nothing: look again, and for what could begin"),
                        ],
                        max_length=16,
                    ),
                ),
                ("subject_id", models.BigIntegerField(null=True)),
            ],
            options={
                "indexes": [models.Index(fields=["topic", "key"], name="inbox_topic_key")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("kind__in", ["look", "begin"]), ("subject_id__isnull", True)),
                            models.Q(
                                models.Q(("kind__in", ["look", "begin"]), _negated=True),
                                ("subject_id__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="inbox_kind_has_its_subject",
                    )
                ],
            },
        ),
    ]
