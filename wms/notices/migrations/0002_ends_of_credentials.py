"""Notices of the ends of credentials, to those who ask for them."""

from __future__ import annotations

from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


def forget_ends(apps, schema_editor):
    """Remove what the release before does not know."""
    alias = schema_editor.connection.alias

    def rows(model, **chosen):
        return apps.get_model("notices", model).objects.using(alias).filter(**chosen)

    told = list(rows("Notice", subject_kind="frontend").values_list("pk", flat=True))
    # Not by cascade: going back, Django mistakes the models of one step for those of another.
    rows("Outgoing", notice_id__in=told)._raw_delete(alias)
    rows("Notice", pk__in=told)._raw_delete(alias)
    rows("Subscription", rule="credentials")._raw_delete(alias)
    rows("Condition", kind="credential")._raw_delete(alias)


class Migration(BatchedMigration):
    dependencies = [("notices", "0001_tables")]

    operations = [
        migrations.RemoveConstraint(
            model_name="subscription",
            name="subscription_rule_known",
        ),
        migrations.AlterField(
            model_name="condition",
            name="kind",
            field=models.CharField(
                choices=[
                    ("downtime", "downtime"),
                    ("credential", "credential"),
                    ("loop", "control loop"),
                ],
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="notice",
            name="kind",
            field=models.CharField(
                choices=[
                    ("completed", "completed"),
                    ("failed", "failed"),
                    ("failing", "failing"),
                    ("held", "held"),
                    ("halted", "halted"),
                    ("removed", "removed"),
                    ("new-cause", "new cause"),
                    ("regressed", "failing again"),
                    ("banned", "banned"),
                    ("draining", "draining"),
                    ("opened", "opened"),
                    ("node-suspected", "worker node suspected"),
                    ("node-cleared", "worker node cleared"),
                    ("downtime-begun", "downtime begun"),
                    ("downtime-ended", "downtime ended"),
                    ("loop-stale", "loop stale"),
                    ("loop-well", "loop well again"),
                    ("credential-ends", "credential ends soon"),
                    ("credential-ended", "credential has ended"),
                    ("switched-off", "switched off"),
                ],
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="notice",
            name="subject_kind",
            field=models.CharField(
                choices=[
                    ("dag", "DAG"),
                    ("job", "job"),
                    ("failure-group", "failure group"),
                    ("site", "site"),
                    ("frontend", "frontend"),
                    ("loop", "control loop"),
                    ("channel", "channel"),
                ],
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="subscription",
            name="rule",
            field=models.CharField(
                choices=[
                    ("dag", "one DAG: it ends, fails, is failing or is held"),
                    ("my-dags-ended", "a DAG of mine is completed or removed"),
                    ("my-dags-failed", "a DAG of mine is failing or has failed"),
                    ("my-dags-held", "a DAG of mine is held or halted"),
                    (
                        "my-failures",
                        "what is mine fails for a new cause, or again for a resolved one",
                    ),
                    (
                        "site",
                        "a site is banned, drained or opened, a downtime begins or ends, or a node is suspected",
                    ),
                    ("credentials", "a credential of a frontend of mine ends soon or has ended"),
                    ("loops", "a control loop is late or fails"),
                ],
                max_length=16,
            ),
        ),
        migrations.AddConstraint(
            model_name="subscription",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "rule__in",
                        [
                            "dag",
                            "my-dags-ended",
                            "my-dags-failed",
                            "my-dags-held",
                            "my-failures",
                            "site",
                            "credentials",
                            "loops",
                        ],
                    )
                ),
                name="subscription_rule_known",
            ),
        ),
        migrations.RunPython(migrations.RunPython.noop, forget_ends),
    ]
