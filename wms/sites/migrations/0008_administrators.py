from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("sites", "0007_shared_folders"),
    ]

    operations = [
        migrations.AddField(
            model_name="site",
            name="administrators",
            field=models.ManyToManyField(
                blank=True,
                help_text="Who may change this site and its queues, besides operators; their "
                "accounts need the role of a site administrator, or a higher one.",
                related_name="administered_sites",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
    ]
