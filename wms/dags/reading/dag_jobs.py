"""The jobs that DAGs have submitted: which these are, and of which DAG one is.

A job knows no DAG, only which inbox hears of it, and under which key: of those of DAGs the inbox is
the engine's, and the key is the DAG's id.
"""

from __future__ import annotations

from django.db.models import OuterRef, Q, QuerySet

from wms.dags.lifecycle import JOB_TOPIC
from wms.dags.models import Dag
from wms.jobs.models import Job, JobEvent

#: True for the jobs of any DAG, and the column that names it.
OF_DAGS = Q(topic=JOB_TOPIC)
DAG_ID = "topic_key"
#: The columns that `told_dag` reads, of what belongs to a job.
TOLD_OF_JOB = ("job__topic", "job__topic_key")


def jobs_of(*dag_ids: int) -> QuerySet[Job]:
    """The jobs that nodes of these DAGs have submitted, whatever became of them."""
    return Job.objects.filter(OF_DAGS, topic_key__in=dag_ids)


def job_events_of(dag_id: int) -> QuerySet[JobEvent]:
    """All that happened to these jobs."""
    return JobEvent.objects.filter(job__topic=JOB_TOPIC, job__topic_key=dag_id)


def dag_of_outer_job() -> QuerySet[Dag]:
    """The DAG of a job, as a subquery of a query for jobs."""
    return Dag.objects.filter(pk=OuterRef(DAG_ID))


def dag_id_of(job: Job) -> int | None:
    """The DAG of a job; None for a single one."""
    return told_dag(job.topic, job.topic_key)


def told_dag(topic: str, key: int) -> int | None:
    """The DAG that hears of a job with this inbox and key; None for a single job."""
    return key if topic == JOB_TOPIC else None
