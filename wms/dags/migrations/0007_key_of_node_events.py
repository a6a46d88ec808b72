"""Events of nodes have the key of their DAG and id, and no index of the ids alone: 67 bytes a node."""

from __future__ import annotations

from django.db import migrations, models

_DROP = "ALTER TABLE dags_nodeevent DROP CONSTRAINT dags_nodeevent_pkey"
_ADD = "ALTER TABLE dags_nodeevent ADD CONSTRAINT dags_nodeevent_pkey PRIMARY KEY (id)"


class Migration(migrations.Migration):
    dependencies = [("dags", "0006_left_clusters")]

    operations = [
        migrations.RemoveIndex(model_name="nodeevent", name="nodeevent_by_dag"),
        migrations.AddConstraint(
            model_name="nodeevent",
            constraint=models.UniqueConstraint(fields=["dag", "id"], name="nodeevent_by_dag"),
        ),
        migrations.AddIndex(
            model_name="nodeevent",
            index=models.Index(
                condition=models.Q(("event__in", ["fail", "retry"])),
                fields=["id"],
                name="nodeevent_announced",
            ),
        ),
        migrations.RunSQL(_DROP, _ADD),
    ]
