import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [
        ("core", "0010_limited_tokens"),
    ]

    operations = [
        migrations.CreateModel(
            name="NamedSubject",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("issuer", models.CharField(max_length=500)),
                ("subject", models.CharField(max_length=255)),
                ("last_used_at", models.DateTimeField()),
                ("last_used_from", models.GenericIPAddressField(null=True)),
            ],
        ),
        migrations.AddField(
            model_name="apitoken",
            name="former_sha256",
            field=models.CharField(
                db_default="",
                default="",
                editable=False,
                help_text="Hash of the secret before the last renewal.",
                max_length=64,
            ),
        ),
        migrations.AddField(
            model_name="apitoken",
            name="former_until",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="apitoken",
            name="login_key",
            field=models.CharField(
                db_default="",
                default="",
                editable=False,
                help_text="Hash of the ID token by which it was made, which makes no other.",
                max_length=64,
            ),
        ),
        migrations.AddField(
            model_name="identity",
            name="linked_by",
            field=models.CharField(
                db_default="",
                default="",
                editable=False,
                help_text="Who linked it; empty: it is not known.",
                max_length=160,
            ),
        ),
        migrations.AddConstraint(
            model_name="apitoken",
            constraint=models.UniqueConstraint(
                condition=models.Q(("login_key", ""), _negated=True),
                fields=("login_key",),
                name="login_key_once",
            ),
        ),
        migrations.AddField(
            model_name="namedsubject",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="named_subjects",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddConstraint(
            model_name="namedsubject",
            constraint=models.UniqueConstraint(
                fields=("issuer", "subject"), name="named_subject_once"
            ),
        ),
    ]
