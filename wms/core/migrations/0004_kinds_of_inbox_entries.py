"""Inbox entries with the kind of what they tell of; a subject that stood for none is none."""

from django.db import migrations, models

_KINDS = """
UPDATE core_inboxentry SET
    kind = CASE
        WHEN topic = 'dag-jobs' OR topic = 'failed-jobs' THEN 'job event'
        WHEN topic = 'failed-nodes' THEN 'node event'
        WHEN topic = 'failed-pilots' THEN 'pilot event'
        WHEN topic = 'dag-news' THEN 'dag event'
        WHEN topic = 'site-news' THEN 'site event'
        WHEN topic = 'failure-again' THEN 'group event'
        WHEN topic = 'dag-scripts' THEN 'script run'
        WHEN topic = 'dag-data' THEN 'request'
        WHEN topic IN ('dag-inner', 'dag-failing') THEN 'dag'
        WHEN topic = 'failure-new' THEN 'group'
        WHEN topic = 'dag-control' AND subject_id <> 0 THEN 'begin'
        ELSE 'look'
    END,
    subject_id = CASE
        WHEN topic IN ('failure-new', 'dag-failing') THEN key
        WHEN topic = 'dag-control' OR subject_id = 0 THEN NULL
        ELSE subject_id
    END
"""
_NUMBERS = """
UPDATE core_inboxentry SET subject_id = CASE
    WHEN topic IN ('failure-new', 'dag-failing') THEN 0
    WHEN kind = 'begin' THEN 1
    ELSE coalesce(subject_id, 0)
END
"""


class Migration(migrations.Migration):
    dependencies = [
        ("core", "0003_audit_objects"),
        # It writes entries as they were before.
        ("failures", "0001_groups_and_rules"),
    ]

    operations = [
        migrations.RenameField("inboxentry", "event_id", "subject_id"),
        migrations.AlterField("inboxentry", "subject_id", models.BigIntegerField(null=True)),
        migrations.AddField(
            "inboxentry",
            "kind",
            models.CharField(
                max_length=16,
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
                    ("look", "nothing: look again"),
                    ("begin", "nothing: look again, and for what could begin"),
                ],
                default="look",
            ),
            preserve_default=False,
        ),
        migrations.AlterField(
            "inboxentry", "topic", models.CharField(max_length=16, help_text="Who reads it.")
        ),
        migrations.RunSQL(_KINDS, _NUMBERS),
        migrations.AddConstraint(
            "inboxentry",
            models.CheckConstraint(
                condition=models.Q(kind__in=["look", "begin"], subject_id__isnull=True)
                | (~models.Q(kind__in=["look", "begin"]) & models.Q(subject_id__isnull=False)),
                name="inbox_kind_has_its_subject",
            ),
        ),
    ]
