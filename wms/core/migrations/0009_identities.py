import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [
        ("core", "0008_service_accounts"),
    ]

    operations = [
        migrations.CreateModel(
            name="IssuerDocument",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("issuer", models.CharField(max_length=500, unique=True)),
                ("configuration", models.JSONField(default=dict)),
                ("keys", models.JSONField(default=dict)),
                ("fetched_at", models.DateTimeField(null=True)),
                ("tried_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Identity",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("issuer", models.CharField(max_length=500)),
                ("subject", models.CharField(max_length=255)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_from", models.GenericIPAddressField(blank=True, null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="identities",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "identities",
            },
        ),
        migrations.AddField(
            model_name="apitoken",
            name="login",
            field=models.ForeignKey(
                blank=True,
                editable=False,
                help_text="The identity by whose logins it is renewed; empty: it is not.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="tokens",
                to="core.identity",
            ),
        ),
        migrations.AddConstraint(
            model_name="identity",
            constraint=models.UniqueConstraint(fields=("issuer", "subject"), name="identity_once"),
        ),
    ]
