"""Jobs of a DAG as querysets, their events, and the DAG of a job.

A job has no foreign key to a DAG but the topic and key of an inbox: for jobs of DAGs the topic is
the engine's, and the key is the DAG's id.
"""

from __future__ import annotations

from django.db.models import OuterRef, Q, QuerySet

from wms.dags.lifecycle import JOB_TOPIC
from wms.dags.models import Dag
from wms.jobs.models import Job, LoggedJobEvent

#: Condition for jobs of DAGs, and the column with the DAG's id.
OF_DAGS = Q(topic=JOB_TOPIC)
DAG_ID = "topic_key"
#: Columns for `dag_id_of_topic` in models with a foreign key to a job.
JOB_TOPIC_COLUMNS = ("job__topic", "job__topic_key")


def jobs_of(*dag_ids: int) -> QuerySet[Job]:
    """Jobs that nodes of these DAGs have submitted, in any state."""
    return Job.objects.filter(OF_DAGS, topic_key__in=dag_ids)


def job_events_of(dag_id: int) -> QuerySet[LoggedJobEvent]:
    """Events of the jobs of a DAG."""
    return LoggedJobEvent.objects.filter(job__topic=JOB_TOPIC, job__topic_key=dag_id)


def dag_of_outer_job() -> QuerySet[Dag]:
    """DAG of a job, for a subquery in a query of jobs."""
    return Dag.objects.filter(pk=OuterRef(DAG_ID))


def dag_id_of(job: Job) -> int | None:
    """Id of the DAG of a job; None for a job that belongs to no DAG."""
    return dag_id_of_topic(job.topic, job.topic_key)


def dag_id_of_topic(topic: str, key: int) -> int | None:
    """Id of the DAG with this topic and key of a job; None for a job that belongs to no DAG."""
    return key if topic == JOB_TOPIC else None
