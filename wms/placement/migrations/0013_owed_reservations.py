from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [
        ("placement", "0012_reservations"),
    ]

    operations = [
        migrations.AddField(
            model_name="askedreservation",
            name="limited_to",
            field=models.BigIntegerField(
                help_text="Id of the frontend that it is limited to; empty: its owner's credentials serve.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="askedreservation",
            name="silent_until",
            field=models.DateTimeField(
                help_text="The server did not answer: nothing there is tried before.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="askedreservation",
            name="attempt_number",
            field=models.PositiveSmallIntegerField(help_text="0 for one that was released."),
        ),
        migrations.AlterField(
            model_name="placementallocation",
            name="returned_at",
            field=models.DateTimeField(
                help_text="When that server was asked to give it back, or it was written down as owed.",
                null=True,
            ),
        ),
    ]
