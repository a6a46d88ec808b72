"""What is sampled: how many DAGs, jobs and pilots are in each state."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import Count

from wms.dags.models import Dag
from wms.dags.states import DagState
from wms.history.services import store_samples
from wms.jobs.models import Job
from wms.jobs.states import JobState
from wms.pilots.models import Pilot
from wms.pilots.states import PilotState

_ENTITIES: tuple[tuple[str, type[models.Model], type[models.TextChoices]], ...] = (
    ("dags", Dag, DagState),
    ("jobs", Job, JobState),
    ("pilots", Pilot, PilotState),
)


def run_cycle(now: datetime) -> dict[str, Any]:
    """Count and store; states that nothing is in count zero, so that lines go down to it."""
    values = count_states()
    store_samples(values, now=now)
    return {"series": len(values)}


def count_states() -> dict[str, float]:
    """`<entity>.<state>` -> how many, three queries in all."""
    values: dict[str, float] = {}
    for name, model, states in _ENTITIES:
        rows = model._default_manager.order_by().values_list("state").annotate(Count("pk"))
        counts = dict(rows)
        values |= {f"{name}.{state}": float(counts.get(state, 0)) for state in states.values}
    return values
