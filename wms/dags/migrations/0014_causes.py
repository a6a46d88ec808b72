"""Why a DAG or a node came into its state is a value beside the words for it."""

from django.db import migrations, models

_BATCH = 20_000
# A person may have used the engine's words: its own holds have its name.
_FAULTY = """
UPDATE dags_dagevent SET cause = 'engine'
WHERE event = 'hold' AND actor = 'system:dag-engine' AND (
    reason LIKE 'the engine takes too long with this DAG: %'
    OR reason LIKE 'the engine cannot go on with this DAG: %'
)
"""
_HELD = """
UPDATE dags_dag AS dag SET state_cause = 'engine'
WHERE dag.state = 'held' AND EXISTS (
    SELECT FROM dags_dagevent AS event
    WHERE event.dag_id = dag.id AND event.cause = 'engine' AND event.reason = dag.state_reason
)
"""
#: How reasons of nodes are written, and their causes.
_SENTENCES = (
    ("PRE script: %", "script"),
    ("POST script: %", "script"),
    ("submit failed: %", "submission"),
    ("the inner DAG %", "inner_dag"),
    ("an ancestor of the node has failed", "ancestor"),
    ("the DAG ends: %", "dag_ended"),
)
_NODES = """
UPDATE dags_nodeevent AS event SET cause = known.cause
FROM unnest(%s::text[], %s::text[]) AS known(pattern, cause)
WHERE event.id >= %s AND event.id < %s AND event.event IN ('fail', 'retry', 'give up')
    AND event.cause = '' AND event.reason LIKE known.pattern
"""


def fill(apps, schema_editor):
    """Batch by batch, each in a transaction of its own."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(_FAULTY)
        cursor.execute(_HELD)
    sentences = [list(column) for column in zip(*_SENTENCES, strict=True)]
    rows = apps.get_model("dags", "NodeEvent").objects
    ends = rows.aggregate(first=models.Min("pk"), last=models.Max("pk"))
    if ends["first"] is None:
        return
    for start in range(ends["first"], ends["last"] + 1, _BATCH):
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(_NODES, [*sentences, start, start + _BATCH])


def _cause(choices, **more):
    return models.CharField(
        blank=True, choices=choices, db_default="", default="", max_length=16, **more
    )


_OF_DAGS = [
    ("person", "somebody wanted it"),
    ("outer_dag", "it was done to the DAG around it"),
    ("engine", "the engine cannot go on with it"),
    ("ad", "its ad or environment cannot be made"),
    ("submission", "a node of it cannot be submitted"),
    ("policy", "the policy for rematches"),
    ("log", "the log that it follows makes no sense"),
    ("node_failed", "nodes failed"),
    ("aborted", "ABORT-DAG-ON"),
    ("removed", "it was removed"),
    ("halted", "it was halted and is drained"),
]
_OF_NODES = [
    ("person", "somebody wanted it"),
    ("job", "its jobs"),
    ("script", "its PRE or POST script"),
    ("inner_dag", "its inner DAG"),
    ("request", "its placement request"),
    ("submission", "it cannot be submitted"),
    ("ancestor", "an ancestor failed"),
    ("dag_ended", "its DAG ends"),
    ("dag_left", "its DAG leaves the site"),
]
_HELP = "Why it came into its state; empty where nothing went wrong and nobody acted."


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("dags", "0013_longer_paths")]

    operations = [
        migrations.AddField(
            model_name="dag", name="state_cause", field=_cause(_OF_DAGS, help_text=_HELP)
        ),
        migrations.AddField(model_name="dagevent", name="cause", field=_cause(_OF_DAGS)),
        migrations.AddField(
            model_name="node", name="state_cause", field=_cause(_OF_NODES, help_text=_HELP)
        ),
        migrations.AddField(model_name="nodeevent", name="cause", field=_cause(_OF_NODES)),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
