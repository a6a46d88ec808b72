from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dags", "0002_accounting_and_matches")]

    operations = [
        migrations.AddField(
            model_name="dag",
            name="policy_rematch_count",
            field=models.PositiveSmallIntegerField(
                db_default=0,
                default=0,
                help_text="Rematches by policy since a person last rematched or released the DAG.",
            ),
        ),
        migrations.AddField(
            model_name="dag",
            name="substitutions",
            field=models.JSONField(
                db_default=models.Value({}, models.JSONField()),
                default=dict,
                help_text="What $$(...) stood for in the environment, as MATCH_<Attr>.",
            ),
        ),
        migrations.AlterField(
            model_name="matchrecord",
            name="end",
            field=models.CharField(
                blank=True,
                choices=[
                    ("complete", "completed"),
                    ("fail", "failed"),
                    ("remove", "removed"),
                    ("hold", "held before it began"),
                    ("unfit", "no queue could run it"),
                    ("rematch", "rematched by hand"),
                    ("policy", "rematched by policy"),
                ],
                max_length=32,
            ),
        ),
    ]
