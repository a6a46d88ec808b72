"""Sampler, a control loop: numbers of DAGs, jobs and pilots by state, stored in the history.

Also standings of sites, jobs running and pilots requested, granted and live at each, those of
frontends, the last negotiation, and durations of control loops. Each cycle has the minutes counted,
too, that may have changed since the last one (`wms.history.counting`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import models
from django.db.models import Count, Sum

from wms.core.loops import last_report
from wms.core.models import ControlLoop
from wms.dags.models import Dag
from wms.dags.negotiation.records import latest_cycle
from wms.dags.states import DagState
from wms.history.counting import count_up_to_now
from wms.history.frontends import levels_of_frontends
from wms.history.operations import store_samples
from wms.jobs.models import Attempt, Job
from wms.jobs.states import JobState
from wms.pilots.models import Pilot
from wms.pilots.pressure_models import PressureRequest
from wms.pilots.states import PENDING, PilotState
from wms.sites.standing import standings

_ENTITIES: tuple[tuple[str, type[models.Model], type[models.TextChoices]], ...] = (
    ("dags", Dag, DagState),
    ("jobs", Job, JobState),
    ("pilots", Pilot, PilotState),
)
#: How sites stand, of those that take work first.
SITE_STATES = (
    "enabled", "commissioning", "draining", "banned", "downtime", "expired", "throttled",
    "no queue", "disabled",
)  # fmt: skip
#: What a live pilot counts as, at its site.
_QUANTITIES = dict.fromkeys(PENDING, "queued") | {PilotState.RUNNING.value: "running"}

#: The name of the loop, whose last report tells what has been sampled.
LOOP = "sampler"
#: A sampler that was away does not sample a negotiation of long ago as one of now.
_LOOKS_BACK = timedelta(minutes=5)
#: A clock that was set back by less than this leaves a gap until it is where it was.
_CLOCK_JUMP = timedelta(hours=1)
#: A loop that did not run for so many of its periods, and so long, has no duration now.
_LOOP_PERIODS = 3
_LOOP_GRACE_S = 30.0


def run_cycle(now: datetime) -> dict[str, Any]:
    """Sample and store the current values; count the minutes since the last count.

    States that nothing is in count zero, so that lines go down to it. What is not known has a gap:
    the pressure while no director asks for it, a negotiation that did not take place.
    """
    known = last_report(LOOP)
    report = dict(known)
    sampled_at = _moment(known, "sampled_at")
    if sampled_at is None or not timedelta() < sampled_at - now < _CLOCK_JUMP:
        values = count_states() | _of_sites(now) | _of_loops(now)
        values |= _negotiation(report, now) | levels_of_frontends(now)
        store_samples(values, now=now)
        report |= {"series": len(values), "sampled_at": now.isoformat()}
    report["counted_until"] = count_up_to_now(_moment(known, "counted_until")).isoformat()
    return report


def _moment(report: Mapping[str, Any], name: str) -> datetime | None:
    text = report.get(name)
    return datetime.fromisoformat(text) if isinstance(text, str) else None


def _negotiation(report: dict[str, Any], now: datetime) -> dict[str, float]:
    """The last negotiation, if there was one since the last sample; the report notes which."""
    last = latest_cycle(not_before=now - _LOOKS_BACK)
    if last is None or last.pk == report.get("negotiation"):
        return {}
    report["negotiation"] = last.pk
    return {
        "negotiation.requests": float(last.requests),
        "negotiation.unmatched": float(last.unmatched),
        "negotiation.seconds": last.duration_s,
    }


def count_states() -> dict[str, float]:
    """`<entity>.<state>` -> how many, three queries in all."""
    values: dict[str, float] = {}
    for name, model, states in _ENTITIES:
        rows = model._default_manager.order_by().values_list("state").annotate(Count("pk"))
        counts = dict(rows)
        values |= {f"{name}.{state}": float(counts.get(state, 0)) for state in states.values}
    return values


def _of_sites(now: datetime) -> dict[str, float]:
    """Standings of sites, and pilots requested, granted, queued and running, by site and in all.

    What is requested is what the waiting jobs would fill, not cut down to what is granted.
    """
    standing = standings(now).values()
    kinds = [each.kind or "enabled" for each in standing]
    values = {f"sites.{kind}": float(kinds.count(kind)) for kind in SITE_STATES}
    for quantity in ("pilots.running", "pilots.queued", "jobs.running"):
        values |= {f"{quantity}@{each.name}": 0.0 for each in standing}
    # Attempts that are open have an index of their own; jobs would be looked through as a whole.
    open_ones = Attempt.objects.filter(outcome="").order_by().values_list("site_name")
    values |= {f"jobs.running@{name}": float(n) for name, n in open_ones.annotate(Count("pk"))}
    for name, state, number in _live_pilots():
        series = f"pilots.{_QUANTITIES[state]}@{name}"
        values[series] = values.get(series, 0.0) + number
    asked = PressureRequest.objects.filter(lease_until__gt=now).order_by()
    wanted = list(asked.values_list("queue__site__name").annotate(Sum("wanted"), Sum("granted")))
    for place, requested, granted in wanted:
        values[f"pilots.requested@{place}"] = float(requested)
        values[f"pilots.granted@{place}"] = float(granted)
    if wanted:
        values["pilots.requested"] = float(sum(row[1] for row in wanted))
        values["pilots.granted"] = float(sum(row[2] for row in wanted))
    return values


def _live_pilots() -> Iterable[tuple[str, str, int]]:
    live = Pilot.objects.filter(state__in=_QUANTITIES).order_by()
    return live.values_list("queue__site__name", "state").annotate(Count("pk"))


def _of_loops(now: datetime) -> dict[str, float]:
    """Duration of the last cycle of each control loop that is not stale."""
    rows = ControlLoop.objects.filter(started_at__isnull=False, duration_s__isnull=False)
    return {
        f"loop.{row.name}.seconds": float(row.duration_s or 0.0)
        for row in rows
        if row.started_at is not None and now - row.started_at <= _stale_after(row)
    }


def _stale_after(row: ControlLoop) -> timedelta:
    return timedelta(seconds=_LOOP_GRACE_S + _LOOP_PERIODS * row.period_s + (row.duration_s or 0.0))
