from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [("placement", "0004_catalogue")]

    operations = [
        migrations.AddField(
            model_name="placementattempt",
            name="note",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="How the file went, where there is more than one way.",
            ),
        ),
        migrations.AlterField(
            model_name="placementcredential",
            name="kind",
            field=models.CharField(
                choices=[
                    ("password", "password of a user"),
                    ("token", "bearer token"),
                    ("key", "SSH key of a user"),
                ],
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="placementcredential",
            name="user",
            field=models.CharField(
                blank=True, help_text="Whose password or key it is.", max_length=255
            ),
        ),
        migrations.RemoveConstraint(
            model_name="placementcredential", name="placement_credential_kind_known"
        ),
        migrations.AddConstraint(
            model_name="placementcredential",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["password", "token", "key"])),
                name="placement_credential_kind_known",
            ),
        ),
        migrations.AddIndex(
            model_name="placementattempt",
            index=models.Index(fields=["ended_at"], name="placement_attempt_by_end"),
        ),
    ]
