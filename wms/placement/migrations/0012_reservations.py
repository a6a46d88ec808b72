import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [
        ("placement", "0011_feeder"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="AskedReservation",
            fields=[
                (
                    "key",
                    models.CharField(
                        help_text="Told to the program: the same ask, if repeated.",
                        max_length=32,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("attempt_number", models.PositiveSmallIntegerField()),
                ("endpoint", models.TextField()),
                (
                    "reservation",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="What the server calls it, once it has answered.",
                        max_length=255,
                    ),
                ),
                ("size_bytes", models.BigIntegerField()),
                ("duration_s", models.BigIntegerField()),
                (
                    "due_at",
                    models.DateTimeField(
                        help_text="When it is looked at, or tried to be given back."
                    ),
                ),
                (
                    "expires_at",
                    models.DateTimeField(help_text="When the server ends it in any case."),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="asked_reservations",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "request",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="asked_reservations",
                        to="placement.placementrequest",
                    ),
                ),
            ],
        ),
    ]
