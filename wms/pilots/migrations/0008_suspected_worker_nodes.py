"""Worker nodes that fail what others of their sites do well."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("pilots", "0007_index_of_accounts"),
        ("sites", "0010_payload_networks"),
    ]

    operations = [
        migrations.CreateModel(
            name="SuspectedNode",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("host", models.CharField(max_length=255)),
                ("since", models.DateTimeField()),
                (
                    "failed",
                    models.PositiveIntegerField(help_text="Payloads that failed there lately."),
                ),
                ("tried", models.PositiveIntegerField(help_text="Payloads that ran there lately.")),
                (
                    "others_failed",
                    models.PositiveIntegerField(
                        help_text="Payloads of the same batches that failed on other nodes of the site."
                    ),
                ),
                ("others_tried", models.PositiveIntegerField()),
                (
                    "failed_jobs",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        help_text="The latest jobs that failed.",
                        size=None,
                    ),
                ),
                ("reason", models.TextField(help_text="Why the latest of these failed.")),
                (
                    "trials",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        db_default=models.Value([]),
                        default=list,
                        help_text="Attempts that were given to it as trials.",
                        size=None,
                    ),
                ),
                ("next_trial_at", models.DateTimeField(help_text="It gets no job before.")),
                ("ended_at", models.DateTimeField(null=True)),
                ("ended_by", models.CharField(blank=True, db_default="", max_length=160)),
                ("end_reason", models.TextField(blank=True, db_default="")),
                (
                    "site",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="suspected_nodes",
                        to="sites.site",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["site", "host", "ended_at"], name="suspected_by_host")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at", None)),
                        fields=("site", "host"),
                        name="node_suspected_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("ended_at", None),
                            models.Q(("end_reason", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="suspicion_end_has_reason",
                    ),
                ],
            },
        ),
    ]
