"""Why a job came into its state is a value beside the words for it."""

from django.db import migrations, models

_BATCH = 20_000
#: Events, how their reasons are written, and their causes. No two fit one reason.
_SENTENCES = (
    ("hold", "the DAG is held", "dag_held"),
    ("hold", "the DAG is held: %", "dag_held"),
    ("kill", "the DAG was removed: %", "dag_ended"),
    ("kill", "the DAG ends: %", "dag_ended"),
    ("kill", "the DAG leaves its site: %", "dag_left"),
    ("kill", "the DAG has left the job's site", "dag_left"),
    ("kill", "it did not start within % s (TIMEOUT QUEUE)", "timeout"),
    ("kill", "it did not end within % s (TIMEOUT RUN)", "timeout"),
    ("fail", "input files do not exist: %", "inputs"),
    *(
        (event, pattern, cause)
        for event in ("fail", "reschedule", "requeue")
        for pattern, cause in (
            ("the pilot ended without a word; %", "pilot_failed"),
            ("the pilot sent no heartbeat for % s after it had stalled%", "pilot_failed"),
            ("the pilot ended (unfit%", "pilot_failed"),
            ("the pilot ended (error%", "pilot_failed"),
            ("its pilot was removed: %", "pilot_removed"),
            ("output files are missing: %", "outputs"),
            ("output files were not received: %", "outputs"),
        )
    ),
)
_EVENTS = """
UPDATE jobs_jobevent AS event SET cause = known.cause
FROM unnest(%s::text[], %s::text[], %s::text[]) AS known(event, pattern, cause)
WHERE event.id >= %s AND event.id < %s AND event.cause = ''
    AND event.event = known.event AND event.reason LIKE known.pattern
"""
# Of one that is held, or has ended: the reason of its state is that of its last event.
_JOBS = """
UPDATE jobs_job AS job SET state_cause = known.cause
FROM unnest(%s::text[], %s::text[], %s::text[]) AS known(event, pattern, cause)
WHERE job.id >= %s AND job.id < %s AND job.state_cause = '' AND job.state_reason LIKE known.pattern
    AND (job.state, known.event) IN (('held', 'hold'), ('failed', 'fail'), ('killed', 'kill'))
"""


def fill(apps, schema_editor):
    """Batch by batch, each in a transaction of its own."""
    sentences = [list(column) for column in zip(*_SENTENCES, strict=True)]
    for model, statement in (("JobEvent", _EVENTS), ("Job", _JOBS)):
        rows = apps.get_model("jobs", model).objects
        ends = rows.aggregate(first=models.Min("pk"), last=models.Max("pk"))
        if ends["first"] is None:
            continue
        for start in range(ends["first"], ends["last"] + 1, _BATCH):
            with schema_editor.connection.cursor() as cursor:
                cursor.execute(statement, [*sentences, start, start + _BATCH])


def _cause(**more):
    return models.CharField(
        blank=True,
        choices=[
            ("person", "somebody wanted it"),
            ("expression", "an expression of its own"),
            ("payload", "its payload failed"),
            ("inputs", "input files are missing"),
            ("outputs", "output files did not come"),
            ("unrunnable", "it cannot be run as it is described"),
            ("unstorable", "what its pilot told of it cannot be stored"),
            ("not_run", "its pilot could not run it"),
            ("pilot_time", "its pilot had too little time"),
            ("preempted", "the batch system took its slot back"),
            ("pilot_stalled", "its pilot fell silent"),
            ("pilot_failed", "its pilot failed"),
            ("pilot_ended", "its pilot ended"),
            ("pilot_removed", "its pilot was removed"),
            ("dag_held", "its DAG is held"),
            ("dag_ended", "its DAG ends"),
            ("dag_left", "its DAG leaves the site"),
            ("node", "its node has no use for it any more"),
            ("timeout", "the time of its node was up"),
        ],
        db_default="",
        default="",
        max_length=16,
        **more,
    )


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("jobs", "0017_hosts_that_failed_jobs")]

    operations = [
        migrations.AddField(
            model_name="job",
            name="state_cause",
            field=_cause(
                help_text="Why it came into its state; empty where nothing went wrong and nobody "
                "acted."
            ),
        ),
        migrations.AddField(model_name="jobevent", name="cause", field=_cause()),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
