from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [
        ("core", "0007_entries_before_the_chain"),
    ]

    operations = [
        migrations.AddField(
            model_name="user",
            name="is_service",
            field=models.BooleanField(
                db_default=False,
                default=False,
                editable=False,
                help_text="A program's: it has neither password nor login, and tokens only.",
            ),
        ),
        migrations.AddConstraint(
            model_name="user",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("is_service", False),
                    models.Q(
                        models.Q(("role", "admin"), _negated=True),
                        ("is_staff", False),
                        ("is_superuser", False),
                        ("password__startswith", "!"),
                    ),
                    _connector="OR",
                ),
                name="user_service_has_no_login",
            ),
        ),
        migrations.CreateModel(
            name="ServiceAccount",
            fields=[],
            options={
                "verbose_name": "service account",
                "proxy": True,
                "indexes": [],
                "constraints": [],
            },
            bases=("core.user",),
        ),
    ]
