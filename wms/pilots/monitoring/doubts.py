"""Doubts about the answer of a batch system: whether it may be acted upon, and the alarm if not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import structlog

from matching.plurals import counted
from matching.pressure.formulas import LEASE_S, view_guard
from wms.elements.protocol import BatchState
from wms.elements.protocol import PilotState as BatchPilot
from wms.pilots.models import Pilot
from wms.pilots.monitoring.access import Access
from wms.pilots.monitoring.fault_isolation import TurnClock
from wms.pilots.pressure.backoff import Kind, contact_of
from wms.pilots.states import PilotState

log = structlog.get_logger(__name__)
#: A view that is not believed is believed when it stays for so long.
_DISBELIEVED_FOR = timedelta(seconds=LEASE_S)


def living(pilots: Iterable[Pilot]) -> list[Pilot]:
    """Pilots that an answer has to know; those removed may go from it at any time."""
    return [pilot for pilot in pilots if pilot.state != PilotState.REMOVED]


def known(pilots: Iterable[Pilot], states: Mapping[str, BatchPilot]) -> int:
    """Number of these pilots that an answer knows."""
    return sum(states[pilot.native_id].state != BatchState.MISSING for pilot in pilots)


def doubt_about(
    access: Access,
    living: Sequence[Pilot],
    states: Mapping[str, BatchPilot],
    now: datetime,
    *,
    age_s: float,
) -> str:
    """Reason not to act upon an answer, or an empty string; one that stays the same is accepted.

    An answer that knows much less than before, or nothing any more, may come from a system that has
    just started, lost its memory, or answers for another.
    """
    contact = access.contacts.first()
    seen = contact.seen_pilots if contact else 0
    seen_now = known(living, states)
    since = contact.answered_at if contact else None
    # Those that ended since, or by what that answer said, are no loss: they are not counted now.
    ended = access.pilots.filter(ended_at__gte=since).count() if since else 0
    verdict = view_guard(
        source_ok=True,
        age=age_s,
        previous_total=seen,
        current_total=seen_now,
        explained_loss=ended,
    )
    is_empty = bool(living) and seen_now == 0 and seen > ended
    if verdict.action == "use" and not is_empty:
        return ""
    doubted_since = contact.failing_since if contact else None
    if doubted_since is not None and now - doubted_since > _DISBELIEVED_FOR:
        return ""
    count = counted(seen_now, "pilot", "pilots")
    return f"the answer knows {count}, the one before knew {seen}: it is not acted upon"


def raise_alarm(access: Access, doubt: str, watch: TurnClock, pause_s: float) -> None:
    """Report a doubtful answer; the batch system answers, so it is asked again soon."""
    log.warning("batch_view_held", queue=str(access.queue), doubt=doubt)
    contact = contact_of(access.queue, Kind.POLL, access.credential_id)
    contact.failures += 1
    contact.failing_since = contact.failing_since or watch.now
    contact.reason = doubt
    contact.next_at = watch.now + timedelta(seconds=pause_s)
    contact.save(update_fields=["failures", "failing_since", "reason", "next_at"])
