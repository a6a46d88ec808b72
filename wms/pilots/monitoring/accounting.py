"""Accounting of ended pilots: core-seconds idle and in validation, added to the accounts once.

Also stores the accounts of each pilot with its row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from matching.core_seconds import PilotJob, core_accounting
from wms.accounting.core_seconds import CoreSeconds, Use, add_uses
from wms.jobs.accounting import PILOT_OUTCOMES, wall_time_s
from wms.jobs.models import Attempt
from wms.pilots.models import Pilot

_AT_ONCE = 500


@transaction.atomic
def account_pilots() -> int:
    """Store the accounts of a batch of ended pilots; return how many.

    Usage of their attempts was added with the attempts; here come idleness and validation.
    """
    ended = Pilot.objects.filter(accounts__isnull=True, ended_at__isnull=False).order_by("ended_at")
    pilots = list(
        ended.select_related("queue__site").select_for_update(of=("self",), skip_locked=True)[
            :_AT_ONCE
        ]
    )
    jobs = _jobs_of([pilot.pk for pilot in pilots])
    uses = []
    for pilot in pilots:
        pilot.accounts = accounts_of(pilot, jobs[pilot.pk])
        uses.append(_use(pilot))
    add_uses(uses)
    Pilot.objects.bulk_update(pilots, ["accounts"], batch_size=_AT_ONCE)
    return len(pilots)


def _jobs_of(pilot_ids: Collection[int]) -> dict[int, list[PilotJob]]:
    columns = (
        "pilot_id", "cores", "outcome", "wall_s", "usage", "matched_at", "started_at", "ended_at",
    )  # fmt: skip
    jobs: dict[int, list[PilotJob]] = defaultdict(list)
    ended = Attempt.objects.filter(pilot_id__in=pilot_ids).exclude(outcome="")
    for attempt in ended.only(*columns):
        jobs[attempt.pilot_id].append(
            {
                "cores": attempt.cores,
                "seconds": wall_time_s(attempt),
                "outcome": PILOT_OUTCOMES[attempt.outcome],
            }
        )
    return jobs


def accounts_of(pilot: Pilot, jobs: Collection[PilotJob]) -> dict[str, Any]:
    """Core-seconds of a pilot by its own totals, else by when it was heard.

    No pilot has more cores than its queue offers, or a longer life than since it was made.
    """
    totals = pilot.totals or {}
    cores = min(pilot.queue.cores, int(totals.get("cores") or pilot.queue.cores))
    lifetime_s = _lifetime_s(pilot, totals.get("lifetime_s"))
    validation_s = min(lifetime_s, totals.get("validation_s") or pilot.validation_s or 0.0)
    accounts = core_accounting(
        cores=cores,
        pilot_seconds=lifetime_s,
        validation_seconds=validation_s,
        daemon_seconds=lifetime_s - validation_s,
        jobs=list(jobs),
    )
    return {"cores": cores, "lifetime_s": lifetime_s, "validation_s": validation_s, **accounts}


def _lifetime_s(pilot: Pilot, reported_s: float | None) -> float:
    if pilot.registered_at is None or pilot.ended_at is None:
        return 0.0
    # One that did not say good-bye was last alive when it was last heard.
    last = pilot.ended_at if pilot.totals is not None else pilot.heartbeat_at or pilot.ended_at
    heard_s = (last - pilot.registered_at).total_seconds()
    most_s = (pilot.ended_at - pilot.created_at).total_seconds()
    return max(0.0, min(heard_s if reported_s is None else reported_s, most_s))


def _use(pilot: Pilot) -> Use:
    accounts = pilot.accounts or {}
    ended_at: datetime = pilot.ended_at or pilot.created_at
    seconds = accounts["core_seconds"]
    return Use(
        day=ended_at.astimezone(UTC).date(),
        site_name=pilot.queue.site.name,
        owner_name="",
        spent=CoreSeconds(
            idle_s=max(0.0, seconds["usable"] - seconds["used"]),
            validation_s=accounts["cores"] * accounts["validation_s"],
        ),
        pilots=1,
    )
