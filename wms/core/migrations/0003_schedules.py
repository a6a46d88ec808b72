from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [
        ("core", "0002_idempotency_keys"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="auditentry",
            name="audit_kind_known",
        ),
        migrations.AlterField(
            model_name="auditentry",
            name="object_kind",
            field=models.CharField(
                choices=[
                    ("dag", "DAG"),
                    ("job", "job"),
                    ("cluster", "cluster"),
                    ("placement", "placement"),
                    ("pilot", "pilot"),
                    ("site", "site"),
                    ("queue", "queue"),
                    ("failure", "failure group"),
                    ("schedule", "schedule"),
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
        migrations.AlterField(
            model_name="inboxentry",
            name="kind",
            field=models.CharField(
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
                    ("schedule run", "a time of a schedule"),
                    ("look", "nothing: look again"),
                    ("begin", "nothing: look again, and for what could begin"),
                ],
                max_length=16,
            ),
        ),
        migrations.AddConstraint(
            model_name="auditentry",
            constraint=models.CheckConstraint(
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
                            "schedule",
                            "operation",
                            "account",
                            "personal",
                            "configuration",
                        ],
                    )
                ),
                name="audit_kind_known",
            ),
        ),
    ]
