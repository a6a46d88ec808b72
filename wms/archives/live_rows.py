"""Rows of a DAG that has ended, read from the tables for its archive, kind by kind.

A kind is one query for each DAG of the tree, read through a cursor, so that memory is bounded
whatever the size; the order is fixed. Credentials are in none of the columns that are read; values
of environments are left out, and so are queries of URLs, which may be signed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

from django.db.models import Q, QuerySet

from wms.archives.layout import CHUNK_ROWS
from wms.archives.live_events import event_rows
from wms.archives.values import plain, without_query
from wms.dags.lifecycle import DATA_TOPIC
from wms.dags.models import Dag, Edge, Node, ScriptRun
from wms.dags.reading.dag_jobs import jobs_of
from wms.jobs.models import Attempt, Job, JobDescription
from wms.pilots.selectors import pilots_of_attempts
from wms.placement.models import PlacementAttempt, PlacementRequest

_T = TypeVar("_T")
Row = dict[str, Any]

_NODE_COLUMNS: Final = {
    "dag": "dag_id", "id": "id", "name": "name", "kind": "kind", "state": "state",
    "state_since": "state_since", "state_reason": "state_reason", "state_cause": "state_cause",
    "submit_description": "submit_description__name", "directory": "directory",
    "variables": "variables", "unfinished_parents": "unfinished_parents", "priority": "priority",
    "category": "category", "retry_number": "retry_number", "max_retries": "max_retries",
    "job": "job_id",
}  # fmt: skip
_SCRIPT_COLUMNS: Final = {
    "dag": "dag_id", "id": "id", "node": "node_id", "node_name": "node__name", "kind": "kind",
    "retry_number": "retry_number", "run_number": "run_number", "executable": "executable",
    "arguments": "arguments", "directory": "directory", "state": "state", "asked_at": "asked_at",
    "due_at": "due_at", "started_at": "started_at", "ended_at": "ended_at",
    "exit_code": "exit_code", "failure": "failure", "output_bytes": "output__size_bytes",
}  # fmt: skip
_REQUEST_COLUMNS: Final = {
    "dag": "topic_key", "id": "id", "kind": "kind", "owner": "owner__username",
    "source_url": "source_url", "destination_url": "destination_url",
    "source_storage": "source_storage__name", "destination_storage": "destination_storage__name",
    "choice": "choice", "host": "host", "allocation_name": "allocation_name", "state": "state",
    "state_since": "state_since", "state_reason": "state_reason",
    "attempt_number": "attempt_number", "max_attempts": "max_attempts", "due_at": "due_at",
    "created_at": "created_at", "ended_at": "ended_at",
}  # fmt: skip
_TRANSFER_COLUMNS: Final = {
    "dag": "request__topic_key", "request": "request_id", "number": "number",
    "source_scheme": "source_scheme", "destination_scheme": "destination_scheme",
    "source_url": "source_url", "destination_url": "destination_url", "source_end": "source_end",
    "destination_end": "destination_end", "started_at": "started_at", "ended_at": "ended_at",
    "exit_code": "exit_code", "message": "message", "note": "note", "size_bytes": "size_bytes",
}  # fmt: skip
_JOB_COLUMNS: Final = (
    "id", "name", "state", "state_since", "state_reason", "state_cause", "cluster_id", "process",
    "priority", "attempt_number", "max_attempts", "created_at", "description_id", "own",
    "topic_key",
)  # fmt: skip
_ATTEMPT_COLUMNS: Final = (
    "number", "site_name", "host", "cores", "memory_mb", "gpus", "matched_at", "started_at",
    "ended_at", "outcome", "reason", "stopped_by", "exit_code", "signal", "wall_s", "cpu_s",
    "max_rss_mb",
)  # fmt: skip


def tree_of(dag: Dag) -> QuerySet[Dag]:
    """A DAG and those inside of it, however deep, the outermost first."""
    tree = Dag.objects.filter(Q(pk=dag.pk) | Q(root=dag.pk)).order_by("pk")
    return tree.select_related("owner", "site", "accounting_group", "parent_node")


def dag_row(dag: Dag) -> Row:
    """A DAG as a row, of `tree_of`."""
    columns = (
        "id", "name", "state", "state_since", "state_reason", "state_cause", "status", "exit_code",
        "binding", "previous_run_id", "rescue_number", "is_followed", "created_at", "matched_at",
        "ended_at", "labels", "priority", "dag_files", "directory", "ad_attributes", "options",
        "category_limits", "success_rule",
    )  # fmt: skip
    row = {name.removesuffix("_id"): plain(getattr(dag, name)) for name in columns}
    counts = ("done", "submitted", "ready", "failed", "futile", "skipped")
    return row | {
        "owner": dag.owner.username,
        "accounting_group": dag.accounting_group.name if dag.accounting_group else None,
        "site": dag.site.name if dag.site else None,
        "nodes": {"total": dag.node_count, **{n: getattr(dag, f"{n}_count") for n in counts}},
        "root": dag.root_id,
        "outer": dag.parent_node.dag_id if dag.parent_node else None,
        "outer_node": dag.parent_node_id,
    }


def _node_rows(dag: Dag) -> Iterator[Row]:
    yield from _read(Node.objects.filter(dag=dag).order_by("ordinal", "pk"), _NODE_COLUMNS)


def _arc_rows(dag: Dag) -> Iterator[Row]:
    arcs = Edge.objects.filter(child__dag=dag).order_by("parent_id", "child_id")
    columns = {"parent": "parent_id", "child": "child_id", "is_weak": "is_weak"}
    for row in _read(arcs, columns):
        yield {"dag": dag.pk, **row}


def _script_rows(dag: Dag) -> Iterator[Row]:
    yield from _read(ScriptRun.objects.filter(dag=dag).order_by("pk"), _SCRIPT_COLUMNS)


def _request_rows(dag: Dag) -> Iterator[Row]:
    requests = PlacementRequest.objects.filter(topic=DATA_TOPIC, topic_key=dag.pk)
    yield from map(_told, _read(requests.order_by("pk"), _REQUEST_COLUMNS))


def _transfer_rows(dag: Dag) -> Iterator[Row]:
    tries = PlacementAttempt.objects.filter(
        request__topic=DATA_TOPIC, request__topic_key=dag.pk
    ).order_by("request_id", "number")
    yield from map(_told, _read(tries, _TRANSFER_COLUMNS))


def _told(row: Row) -> Row:
    urls = ("source_url", "destination_url")
    return row | {name: without_query(row[name]) for name in urls}


def _job_rows(dag: Dag) -> Iterator[Row]:
    jobs = jobs_of(dag.pk).only(*_JOB_COLUMNS).order_by("pk")
    for some in _in_chunks(jobs.iterator(chunk_size=CHUNK_ROWS)):
        described = JobDescription.objects.in_bulk({job.description_id for job in some})
        for job in some:
            job.description = described[job.description_id]
            yield _job_row(dag, job)


def _job_row(dag: Dag, job: Job) -> Row:
    columns = _JOB_COLUMNS[:-3]
    return {
        "dag": dag.pk,
        **{name: plain(getattr(job, name)) for name in columns},
        "executable": job.executable,
        "arguments": list(job.arguments),
        "input_files": list(job.input_files),
        "output_files": list(job.output_files),
        "stdout_name": job.stdout_name,
        "stderr_name": job.stderr_name,
        "needs": dict(job.needs),
        "wall_limit_s": job.wall_limit_s,
    }


def _attempt_rows(dag: Dag) -> Iterator[Row]:
    attempts = Attempt.objects.filter(job__in=jobs_of(dag.pk)).order_by("job_id", "number")
    chosen = attempts.only("job_id", "pilot_id", "usage", *_ATTEMPT_COLUMNS)
    for some in _in_chunks(chosen.iterator(chunk_size=CHUNK_ROWS)):
        pilots = pilots_of_attempts([each.pilot_id for each in some])
        for each in some:
            pilot = pilots.get(each.pilot_id)
            yield {
                "dag": dag.pk,
                "job": each.job_id,
                "pilot": str(pilot.uuid) if pilot else None,
                "fence": pilot.fence if pilot else "",
                **{name: plain(getattr(each, name)) for name in _ATTEMPT_COLUMNS},
                "usage": each.whole_usage,
            }


def _read(rows: QuerySet[Any], columns: Mapping[str, str]) -> Iterator[Row]:
    """Rows with these columns under the names of their fields."""
    found = rows.values_list(*columns.values()).iterator(chunk_size=CHUNK_ROWS)
    for values in found:
        yield dict(zip(columns, map(plain, values), strict=True))


def _in_chunks(rows: Iterable[_T]) -> Iterator[Sequence[_T]]:
    stream = iter(rows)
    while some := list(islice(stream, CHUNK_ROWS)):
        yield some


#: How the rows of one DAG are read, by kind; all but those of the DAGs themselves and of files.
READERS: Final[Mapping[str, Callable[[Dag], Iterator[Row]]]] = {
    "nodes": _node_rows,
    "arcs": _arc_rows,
    "jobs": _job_rows,
    "attempts": _attempt_rows,
    "events": event_rows,
    "script_runs": _script_rows,
    "placements": _request_rows,
    "placement_attempts": _transfer_rows,
}
