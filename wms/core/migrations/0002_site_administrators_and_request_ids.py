from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("core", "0001_initial"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="user",
            name="user_role_known",
        ),
        migrations.AddField(
            model_name="auditentry",
            name="request_id",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="The request that asked for it, as it stands in the log; empty: none did.",
                max_length=64,
            ),
        ),
        migrations.AlterField(
            model_name="auditentry",
            name="facts",
            field=models.JSONField(
                blank=True,
                default=dict,
                help_text="Of a change: each field with its old and new value.",
            ),
        ),
        migrations.AlterField(
            model_name="user",
            name="role",
            field=models.CharField(
                choices=[
                    ("viewer", "viewer"),
                    ("user", "user"),
                    ("site_admin", "site administrator"),
                    ("shifter", "shifter"),
                    ("operator", "operator"),
                    ("admin", "admin"),
                ],
                db_default="user",
                default="user",
                max_length=16,
            ),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["target", "-id"], name="audit_by_target"),
        ),
        migrations.AddConstraint(
            model_name="user",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("role__in", ["viewer", "user", "site_admin", "shifter", "operator", "admin"])
                ),
                name="user_role_known",
            ),
        ),
    ]
