import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import F, Q
from django.db.models.functions import Now


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("jobs", "0006_input_sets"),
    ]

    operations = [
        migrations.CreateModel(
            name="ResumableUpload",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "sha256",
                    models.CharField(
                        help_text="SHA-256 that the whole content must have.", max_length=64
                    ),
                ),
                ("size_bytes", models.BigIntegerField(help_text="Size of the whole content.")),
                (
                    "received_bytes",
                    models.BigIntegerField(
                        db_default=0, default=0, help_text="Bytes that are here and count."
                    ),
                ),
                (
                    "counted_bytes",
                    models.BigIntegerField(
                        help_text="Bytes that quotas count for it; none once they count where it was used."
                    ),
                ),
                ("created_at", models.DateTimeField(db_default=Now())),
                (
                    "expires_at",
                    models.DateTimeField(help_text="It is forgotten then, unless a piece comes."),
                ),
                (
                    "blob",
                    models.ForeignKey(
                        blank=True,
                        help_text="The content, when it is whole and has its SHA-256.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="jobs.blob",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["expires_at"], name="upload_by_expiry"),
                    models.Index(fields=["owner", "sha256"], name="upload_by_content"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(received_bytes__gte=0, received_bytes__lte=F("size_bytes")),
                        name="upload_within_its_size",
                    ),
                    models.CheckConstraint(
                        condition=Q(blob__isnull=True) | Q(received_bytes=F("size_bytes")),
                        name="upload_stored_is_whole",
                    ),
                ],
            },
        ),
    ]
