import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("core", "0001_tables"),
    ]

    operations = [
        migrations.CreateModel(
            name="IdempotencyKey",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("dag", "DAG"),
                            ("followed-dag", "followed DAG"),
                            ("cluster", "cluster"),
                            ("placement", "placement request"),
                        ],
                        max_length=16,
                    ),
                ),
                ("key", models.CharField(max_length=128)),
                (
                    "body_sha256",
                    models.CharField(help_text="Empty: any content is the same.", max_length=64),
                ),
                ("object_id", models.BigIntegerField(null=True)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
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
                "indexes": [models.Index(fields=["created_at"], name="idempotency_key_by_age")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner", "kind", "key"), name="idempotency_key_once"
                    )
                ],
            },
        ),
    ]
