"""What is sampled: how many DAGs, jobs and pilots are in each state, and the negotiations."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import models
from django.db.models import Count

from wms.core.loops import last_report
from wms.dags.cycles import CycleFigures, figures_since
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

#: The name of the loop, whose last report tells up to which negotiation has been sampled.
LOOP = "sampler"
#: A sampler that was away does not count what happened long ago as happening now.
_LOOKS_BACK = timedelta(minutes=5)


def run_cycle(now: datetime) -> dict[str, Any]:
    """Count and store; states that nothing is in count zero, so that lines go down to it.

    Without a negotiation since the last sample its series have a gap.
    """
    values = count_states()
    sampled = _last_sampled()
    found = figures_since(sampled, not_before=now - _LOOKS_BACK)
    if found is not None:
        sampled = found.last.pk
        values |= _negotiation(found)
    store_samples(values, now=now)
    return {"series": len(values), "negotiation": sampled}


def _last_sampled() -> int | None:
    number = last_report(LOOP).get("negotiation")
    return number if isinstance(number, int) else None


def _negotiation(found: CycleFigures) -> dict[str, float]:
    """The last negotiation, and the matches since the last sample."""
    return {
        "negotiation.requests": float(found.last.requests),
        "negotiation.matches": float(found.matches),
        "negotiation.unmatched": float(found.last.unmatched),
        "negotiation.seconds": found.last.duration_s,
    }


def count_states() -> dict[str, float]:
    """`<entity>.<state>` -> how many, three queries in all."""
    values: dict[str, float] = {}
    for name, model, states in _ENTITIES:
        rows = model._default_manager.order_by().values_list("state").annotate(Count("pk"))
        counts = dict(rows)
        values |= {f"{name}.{state}": float(counts.get(state, 0)) for state in states.values}
    return values
