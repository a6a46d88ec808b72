from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [
        ("accounting", "0003_use_by_group_and_label"),
        ("core", "0012_restorations"),
    ]

    operations = [
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
                    ("remark", "a remark of a person"),
                    ("look", "nothing: look again"),
                    ("begin", "nothing: look again, and for what could begin"),
                ],
                max_length=16,
            ),
        ),
        migrations.AddField(
            model_name="apitoken",
            name="kind",
            field=models.CharField(
                choices=[("api", "API"), ("wallboard", "wallboard")],
                db_default="api",
                default="api",
                editable=False,
                max_length=12,
            ),
        ),
        migrations.AddConstraint(
            model_name="apitoken",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("kind", "api"),
                    models.Q(("kind", "wallboard"), ("scopes", [])),
                    _connector="OR",
                ),
                name="token_of_wallboard_has_no_scope",
            ),
        ),
    ]
