"""Counters and histograms of processes: requests, claims, heartbeats, tasks, connections.

Each has labels, all of which have few values: routes and tasks by name, never a path or an id.
Counting never fails what is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from django.conf import settings
from django.db.backends.signals import connection_created
from prometheus_client import CollectorRegistry, Counter, Histogram

from portal.metrics import storage

log = structlog.get_logger(__name__)

if settings.METRICS_DIR:
    storage.keep_in(settings.METRICS_DIR)

REGISTRY = CollectorRegistry()
_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

REQUESTS = Counter(
    "pilotage_http_requests",
    "Requests answered, by the name of their route.",
    ["route", "method", "status"],
    registry=REGISTRY,
)
REQUEST_SECONDS = Histogram(
    "pilotage_http_request_seconds",
    "Time from a request to its answer's headers. A claim may wait for a job.",
    ["route"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
CLAIMS = Counter(
    "pilotage_claims",
    "Claims of pilots that were answered: with a job, or with none.",
    ["outcome"],
    registry=REGISTRY,
)
HEARTBEATS = Counter(
    "pilotage_heartbeats",
    "Heartbeats of pilots that were recorded: answered with commands, or with none.",
    ["answer"],
    registry=REGISTRY,
)
REFUSALS = Counter(
    "pilotage_requests_refused",
    "Requests that found no working place and were answered 503, by whom they are for: api, pilot, "
    "factory, page. They are in no other count, but those of pages.",
    ["face"],
    registry=REGISTRY,
)
TASKS = Counter(
    "pilotage_tasks",
    "Tasks that workers carried out; each wms.dags.advance is a turn of the engine.",
    ["task", "outcome"],
    registry=REGISTRY,
)
TASK_SECONDS = Histogram(
    "pilotage_task_seconds",
    "Time that tasks took.",
    ["task"],
    buckets=(*_SECONDS, 300.0),
    registry=REGISTRY,
)
CONNECTIONS = Counter(
    "pilotage_database_connections_opened",
    "Connections to the database that were opened, those of probes too.",
    ["database"],
    registry=REGISTRY,
)


@contextmanager
def unfailing() -> Iterator[None]:
    """Context in which a count that cannot be kept, on a full disk for example, is logged only."""
    try:
        yield
    # A file that could not be opened after a fork leaves one that is closed.
    except (OSError, ValueError) as error:
        log.warning("count_not_kept", error=str(error))


def count_claim(*, has_job: bool) -> None:
    """Count one answered claim."""
    with unfailing():
        CLAIMS.labels("job" if has_job else "none").inc()


def count_heartbeat(*, has_commands: bool) -> None:
    """Count one recorded heartbeat."""
    with unfailing():
        HEARTBEATS.labels("commands" if has_commands else "none").inc()


def count_refusal(face: str) -> None:
    """Count one request that found no working place."""
    with unfailing():
        REFUSALS.labels(face).inc()


def _count_connection(*, connection: object, **_: object) -> None:
    with unfailing():
        CONNECTIONS.labels(getattr(connection, "alias", "default")).inc()


connection_created.connect(_count_connection, dispatch_uid="pilotage-metrics")
