import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    replaces = [("factories", "0001_schema")]

    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="RemoteFactory",
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
                    "description",
                    models.TextField(blank=True, help_text="Who runs it, and whom to ask."),
                ),
                (
                    "is_enabled",
                    models.BooleanField(
                        db_default=True,
                        default=True,
                        help_text="One that is off is sent no orders, and its calls are refused.",
                    ),
                ),
                (
                    "sites",
                    models.JSONField(
                        blank=True,
                        db_default=models.Value([], models.JSONField()),
                        default=list,
                        help_text="Sites whose queues it may serve, as a JSON list of names; empty: all.",
                    ),
                ),
                (
                    "token_sha256",
                    models.CharField(blank=True, db_default="", default="", max_length=64),
                ),
                (
                    "token_at",
                    models.DateTimeField(
                        blank=True, help_text="When its token was made.", null=True
                    ),
                ),
                (
                    "instance",
                    models.UUIDField(
                        blank=True,
                        help_text="The installation that called with this token first.",
                        null=True,
                    ),
                ),
                (
                    "seen_at",
                    models.DateTimeField(
                        blank=True, help_text="When it was heard last.", null=True
                    ),
                ),
                (
                    "refused_at",
                    models.DateTimeField(
                        blank=True, help_text="When a call was refused last.", null=True
                    ),
                ),
                ("refused_reason", models.TextField(blank=True, db_default="", default="")),
            ],
            options={
                "verbose_name_plural": "remote factories",
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="OrderBatch",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=64, unique=True)),
                ("entry", models.CharField(max_length=129)),
                ("script", models.TextField()),
                ("cores", models.PositiveIntegerField()),
                ("memory_mb", models.PositiveIntegerField()),
                ("gpus", models.PositiveIntegerField()),
                ("minutes", models.PositiveIntegerField()),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "factory",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="batches",
                        to="factories.remotefactory",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="PilotOrder",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("index", models.PositiveIntegerField()),
                ("uuid", models.UUIDField(unique=True)),
                (
                    "sealed",
                    models.TextField(
                        blank=True, help_text="Its secret, until the order is confirmed."
                    ),
                ),
                (
                    "sent_at",
                    models.DateTimeField(
                        blank=True, help_text="When it was sent to the factory last.", null=True
                    ),
                ),
                (
                    "is_cancelled",
                    models.BooleanField(default=False, help_text="It is not wanted any more."),
                ),
                ("state", models.CharField(blank=True, default="", max_length=16)),
                ("reason", models.TextField(blank=True, default="")),
                (
                    "told_at",
                    models.DateTimeField(
                        blank=True, help_text="When the factory told of it last.", null=True
                    ),
                ),
                (
                    "batch",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="orders",
                        to="factories.orderbatch",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(
                            ("state__in", ["done", "failed", "cancelled"]), _negated=True
                        ),
                        fields=["id"],
                        name="order_that_is_open",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("batch", "index"), name="order_by_batch_and_index"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="FactoryEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=129)),
                ("is_open", models.BooleanField(default=True)),
                ("reason", models.TextField(blank=True, help_text="Why it takes no pilots.")),
                ("facts", models.JSONField(default=dict)),
                (
                    "refusal",
                    models.TextField(
                        blank=True, help_text="Why this installation does not use it."
                    ),
                ),
                ("seen_at", models.DateTimeField()),
                (
                    "factory",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="entries",
                        to="factories.remotefactory",
                    ),
                ),
            ],
            options={
                "ordering": ["factory__name", "name"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("factory", "name"), name="one_ad_of_a_factorys_entry"
                    )
                ],
            },
        ),
    ]
