import django.db.models.deletion
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [
        ("accounting", "0003_use_by_group_and_label"),
        ("core", "0009_identities"),
    ]

    operations = [
        migrations.AddField(
            model_name="apitoken",
            name="frontend",
            field=models.ForeignKey(
                blank=True,
                help_text="The frontend that it is limited to: it sees and steers what is of this one, and nothing else. Empty: it is not limited.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="tokens",
                to="accounting.frontend",
            ),
        ),
        migrations.AddField(
            model_name="apitoken",
            name="frontend_name",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                help_text="What that is called; it outlives the frontend.",
                max_length=64,
            ),
        ),
        migrations.AddConstraint(
            model_name="apitoken",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("frontend", None),
                    models.Q(("frontend_name", ""), _negated=True),
                    _connector="OR",
                ),
                name="token_limit_has_a_name",
            ),
        ),
        migrations.AddConstraint(
            model_name="apitoken",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("frontend_name", ""),
                    ("frontend__isnull", False),
                    ("revoked_at__isnull", False),
                    _connector="OR",
                ),
                name="token_limit_never_widens",
            ),
        ),
    ]
