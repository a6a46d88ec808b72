"""How pilots of a queue are fenced, proven and sent: the settings of a queue."""

import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounting", "0002_task_queue_shares"),
        ("sites", "0004_host_element"),
    ]

    operations = [
        migrations.AddField(
            model_name="queue",
            name="attenuation",
            field=models.FloatField(
                db_default=3.0,
                default=3.0,
                help_text="As many pilots wait in the batch system as are missing, divided by this.",
                validators=[django.core.validators.MinValueValidator(1.0)],
            ),
        ),
        migrations.AddField(
            model_name="queue",
            name="batch_size",
            field=models.PositiveIntegerField(
                db_default=50,
                default=50,
                help_text="Pilots in one submission, at most.",
                validators=[django.core.validators.MinValueValidator(1)],
            ),
        ),
        migrations.AddField(
            model_name="queue",
            name="checks",
            field=models.JSONField(
                blank=True,
                db_default=models.Value([], models.JSONField()),
                default=list,
                help_text="Checks of a node besides those that all pilots do, as a JSON list of objects.",
            ),
        ),
        migrations.AddField(
            model_name="queue",
            name="curb_idle_pilots",
            field=models.PositiveIntegerField(
                db_default=5,
                default=5,
                help_text="From so many running pilots without a job on the pressure is halved.",
            ),
        ),
        migrations.AddField(
            model_name="queue",
            name="fence",
            field=models.CharField(
                choices=[
                    ("auto", "auto: bwrap where it works, else none"),
                    ("bwrap", "bwrap: a sandbox of bubblewrap"),
                    ("apptainer", "apptainer: a container"),
                    ("sudo", "sudo: another account"),
                    ("none", "none: nothing"),
                ],
                db_default="auto",
                default="auto",
                help_text="What keeps payloads apart from the pilot and from each other.",
                max_length=16,
            ),
        ),
        migrations.AddField(
            model_name="queue",
            name="hold_after_failure_s",
            field=models.PositiveIntegerField(
                db_default=1200,
                default=1200,
                help_text="So long after its start a pilot keeps the slot of an unfit node, in seconds.",
            ),
        ),
        migrations.AddField(
            model_name="queue",
            name="http_proxy",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Through it pilots fetch their files, as http://HOST:PORT; empty: directly.",
                max_length=200,
                validators=[
                    django.core.validators.RegexValidator(
                        "\\Ahttp://[A-Za-z0-9.-]+(:[0-9]{1,5})?/?\\Z",
                        "Use http://HOST:PORT, without an account.",
                    )
                ],
            ),
        ),
        migrations.AddField(
            model_name="queue",
            name="max_held_pilots",
            field=models.PositiveIntegerField(
                db_default=50,
                default=50,
                help_text="With so many pilots held by the batch system no more are sent.",
            ),
        ),
        migrations.AddField(
            model_name="queue",
            name="max_idle_pilots",
            field=models.PositiveIntegerField(
                db_default=100,
                default=100,
                help_text="With so many running pilots that have no job no more are sent.",
            ),
        ),
        migrations.AddField(
            model_name="queue",
            name="max_removals",
            field=models.PositiveIntegerField(
                db_default=5,
                default=5,
                help_text="Waiting pilots that are cancelled in one turn, at most.",
            ),
        ),
        migrations.AddField(
            model_name="queue",
            name="max_submits",
            field=models.PositiveIntegerField(
                db_default=100,
                default=100,
                help_text="Pilots that are submitted in one turn, at most.",
                validators=[django.core.validators.MinValueValidator(1)],
            ),
        ),
        migrations.AddField(
            model_name="queue",
            name="queued_lifetime_s",
            field=models.PositiveIntegerField(
                db_default=604800,
                default=604800,
                help_text="A pilot that waited longer in the batch system is cancelled, in seconds.",
            ),
        ),
        migrations.AddField(
            model_name="queue",
            name="removal_margin",
            field=models.PositiveIntegerField(
                db_default=0,
                default=0,
                help_text="So many waiting pilots more than wanted are left alone.",
            ),
        ),
        migrations.AddField(
            model_name="queue",
            name="removal_wait_s",
            field=models.PositiveIntegerField(
                db_default=300,
                default=300,
                help_text="Demand must be gone for so long before waiting pilots are cancelled.",
            ),
        ),
        migrations.AddConstraint(
            model_name="queue",
            constraint=models.CheckConstraint(
                condition=models.Q(("attenuation__gte", 1.0)), name="queue_attenuation_from_one"
            ),
        ),
    ]
