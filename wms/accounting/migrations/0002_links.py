import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    replaces = [
        ("accounting", "0001_schema"),
        ("accounting", "0002_quota"),
        ("accounting", "0003_frontends"),
        ("accounting", "0004_start_expressions"),
    ]

    initial = True

    dependencies = [
        ("accounting", "0001_tables"),
        ("core", "__first__"),
    ]

    operations = [
        migrations.AddField(
            model_name="accountinggroup",
            name="members",
            field=models.ManyToManyField(
                blank=True,
                help_text="Who may submit in the name of the group.",
                related_name="accounting_groups",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="accountinggroup",
            name="frontend",
            field=models.ForeignKey(
                blank=True,
                help_text="Whose pilots run its jobs; empty: those of the default frontend.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="groups",
                to="accounting.frontend",
            ),
        ),
        migrations.AddField(
            model_name="quota",
            name="group",
            field=models.ForeignKey(
                blank=True,
                help_text="For all that is in the name of this group and of those below it, together.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="accounting.accountinggroup",
            ),
        ),
        migrations.AddField(
            model_name="quota",
            name="user",
            field=models.ForeignKey(
                blank=True,
                help_text="Whose it is; with neither user nor group: of every user without their own.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="submitter",
            name="group",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="submitters",
                to="accounting.accountinggroup",
            ),
        ),
        migrations.AddField(
            model_name="submitter",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="submitters",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddConstraint(
            model_name="quota",
            constraint=models.UniqueConstraint(
                fields=("user", "group"), name="quota_unique", nulls_distinct=False
            ),
        ),
        migrations.AddConstraint(
            model_name="quota",
            constraint=models.CheckConstraint(
                condition=models.Q(("user", None), ("group", None), _connector="OR"),
                name="quota_of_user_or_group",
            ),
        ),
        migrations.AddConstraint(
            model_name="submitter",
            constraint=models.UniqueConstraint(
                fields=("user", "group"), name="submitter_unique", nulls_distinct=False
            ),
        ),
    ]
