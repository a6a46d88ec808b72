"""Figures of the whole installation, from the database: loops, states, what waits, sessions.

Numbers by state and by site are the sampler's latest, some ten seconds old; the rest is asked when
somebody looks, one statement each, and kept for a few seconds. Each host tells the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from datetime import datetime
from threading import Lock

import structlog
from django.db import DatabaseError, connection, transaction
from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from portal.shared.health_checks import broker_answers
from wms.core.selectors import (
    LoopHealth,
    LoopStatus,
    database_sessions,
    inbox_backlog,
    loop_statuses,
)
from wms.core.sql import LIMIT_STATEMENTS
from wms.dags.states import DagState
from wms.history.latest import Sample, latest_samples
from wms.history.sampling import SITE_STATES
from wms.jobs.states import JobState
from wms.pilots.states import PilotState
from wms.placement.feeding.selectors import feeder_status
from wms.placement.selectors import count_under_way
from wms.sites.selectors import site_names
from wms.taskqueues.selectors import waiting_in_all

log = structlog.get_logger(__name__)
#: So long an answer is given again, in seconds: several may ask.
_KEPT_S = 5.0
#: Who waits longer for another's look at the database does without its figures.
_PATIENCE_S = 5.0

#: The metric of each sampled entity, its label, and the values of that.
_SAMPLED = {
    "dags": ("pilotage_dags", "DAGs by state.", "state", DagState.values),
    "jobs": ("pilotage_jobs", "Jobs by state.", "state", JobState.values),
    "pilots": ("pilotage_pilots", "Pilots by state.", "state", PilotState.values),
    "sites": ("pilotage_sites", "Sites by how they stand.", "standing", list(SITE_STATES)),
}
_AT_SITES = ("running", "queued", "requested", "granted")


class Installation(Collector):
    """Collector of the installation's figures; a database that is away is one of them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: list[Metric] = []
        self._known_at_s = float("-inf")

    def describe(self) -> Iterable[Metric]:
        """Nothing: a registry need not ask the database to learn the names."""
        return []

    def collect(self) -> list[Metric]:
        """All figures, or the two that tell what is away."""
        if not self._lock.acquire(timeout=_PATIENCE_S):
            return [_answers("database", False)]
        try:
            if time.monotonic() - self._known_at_s > _KEPT_S:
                self._known = _look(timezone.now())
                self._known_at_s = time.monotonic()
            return self._known
        finally:
            self._lock.release()


def _look(now: datetime) -> list[Metric]:
    broker = _answers("broker", broker_answers())
    try:
        _try_database()
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(LIMIT_STATEMENTS)
            found = [*_of_loops(now), *_of_samples(now), *_of_waiting(), *_of_sessions()]
    except DatabaseError as error:
        log.warning("figures_not_read", error=str(error))
        return [_answers("database", False), broker]
    return [_answers("database", True), broker, *found]


def _try_database() -> None:
    """Raise DatabaseError when no connection is made within seconds.

    One that is kept may wait for an answer for ever.
    """
    probe = connection.copy()
    try:
        probe.ensure_connection()
    finally:
        probe.close()


def _answers(what: str, does: bool) -> Metric:
    metric = GaugeMetricFamily(f"pilotage_{what}_up", f"Whether the {what} answers.")
    metric.add_metric([], float(does))
    return metric


def _of_loops(now: datetime) -> Iterator[Metric]:
    health = GaugeMetricFamily(
        "pilotage_loop_health", "Health of control loops: 1 for the one.", labels=["loop", "health"]
    )
    age = _gauge("pilotage_loop_age_seconds", "Time since a loop's last turn began.", "loop")
    duration = _gauge("pilotage_loop_duration_seconds", "What its last turn took.", "loop")
    period = _gauge("pilotage_loop_period_seconds", "How often a loop has its turn.", "loop")
    for status in loop_statuses(now=now):
        for each in LoopHealth:
            health.add_metric([status.name, each.value], float(status.health == each))
        period.add_metric([status.name], status.period_s)
        _add_turn(status, now, age, duration)
    yield from (health, age, duration, period)


def _add_turn(
    status: LoopStatus, now: datetime, age: GaugeMetricFamily, duration: GaugeMetricFamily
) -> None:
    if status.started_at is not None:
        age.add_metric([status.name], (now - status.started_at).total_seconds())
    if status.duration_s is not None:
        duration.add_metric([status.name], status.duration_s)


def _of_samples(now: datetime) -> Iterator[Metric]:
    places = site_names()
    names = [f"{entity}.{value}" for entity, (*_, values) in _SAMPLED.items() for value in values]
    names += [f"pilots.{kind}@{place}" for place in places for kind in _AT_SITES]
    samples = latest_samples(names, now=now)
    for entity, (metric, text, label, values) in _SAMPLED.items():
        family = _gauge(metric, text, label)
        for value in values:
            _add_sample(family, [value], samples.get(f"{entity}.{value}"))
        yield family
    at_sites = GaugeMetricFamily(
        "pilotage_site_pilots",
        "Pilots at a site that run and are queued, and that are requested and granted.",
        labels=["site", "kind"],
    )
    for place in places:
        for kind in _AT_SITES:
            _add_sample(at_sites, [place, kind], samples.get(f"pilots.{kind}@{place}"))
    yield at_sites
    age = GaugeMetricFamily("pilotage_sample_age_seconds", "Age of the newest sample.")
    if samples:
        newest = max(sample.sampled_at for sample in samples.values())
        age.add_metric([], max(0.0, (now - newest).total_seconds()))
    yield age


def _add_sample(family: GaugeMetricFamily, labels: list[str], sample: Sample | None) -> None:
    if sample is not None:
        family.add_metric(labels, sample.value)


def _of_waiting() -> Iterator[Metric]:
    jobs, task_queues = waiting_in_all()
    yield GaugeMetricFamily("pilotage_waiting_jobs", "Jobs that wait in TaskQueues.", value=jobs)
    yield GaugeMetricFamily(
        "pilotage_task_queues", "TaskQueues that jobs waited in lately.", value=task_queues
    )
    inbox = _gauge("pilotage_inbox_entries", "Events that their reader has not read yet.", "topic")
    for topic, entries in inbox_backlog().items():
        inbox.add_metric([topic], entries)
    yield inbox
    placements = _gauge("pilotage_placements", "Placement requests that have not ended.", "state")
    for state, requests in count_under_way().items():
        placements.add_metric([state], requests)
    yield placements
    if (feeder := feeder_status()) is not None:
        yield GaugeMetricFamily(
            "pilotage_placement_feeder_failures",
            "Runs of the program that submits new placements that failed in a row of late.",
            value=feeder.row.failures,
        )


def _of_sessions() -> Iterator[Metric]:
    sessions = database_sessions()
    family = _gauge("pilotage_database_sessions", "Sessions of the database's server.", "state")
    for state, count in sessions.by_state.items():
        family.add_metric([state], count)
    yield family
    yield GaugeMetricFamily(
        "pilotage_database_sessions_limit", "How many there may be.", value=sessions.limit
    )


def _gauge(name: str, text: str, label: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, labels=[label])
