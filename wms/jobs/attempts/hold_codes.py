"""Codes of holds, as HTCondor numbers them, by their causes; and the subcodes that jobs give.

Also a hold that is to be, with reason, cause and subcode, and the storage of subcodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from wms.jobs.models import Job
from wms.jobs.states import JobCause
from wms.taskqueues import operations as taskqueues

#: The attribute of the job's ad that has the subcode of its last hold by an expression.
SUBCODE = "HoldReasonSubCode"
_BY_USER, _BY_SYSTEM = 1, 26
_CODES: Mapping[str, int] = {
    JobCause.PERSON: _BY_USER,
    JobCause.EXPRESSION: 3,
    JobCause.OUTPUTS: 12,
    JobCause.INPUTS: 13,
    JobCause.BEGUN_HELD: 15,
    JobCause.CHECKPOINT: 36,
    JobCause.JOB_DURATION: 46,
    JobCause.EXECUTION: 47,
}


@dataclass(frozen=True, slots=True)
class Hold:
    """A hold that is to be: its reason in words, its cause, and its subcode."""

    reason: str
    cause: JobCause
    subcode: int = 0

    def facts(self) -> dict[str, Any]:
        """Facts of the job's event."""
        return hold_facts(self.cause, self.subcode)


def hold_facts(cause: str, subcode: int) -> dict[str, Any]:
    """Facts of the event of a hold."""
    return {"hold_code": hold_code(cause), "hold_subcode": subcode}


def hold_code(cause: str) -> int:
    """HTCondor's `HoldReasonCode` of a hold with this cause."""
    return _CODES.get(cause, _BY_SYSTEM)


def note_subcodes(subcodes: Mapping[int, int]) -> None:
    """Store the subcodes of jobs that are about to be held by an expression, by id.

    The caller has opened a transaction, in which it holds them next.
    """
    told = [pk for pk, subcode in subcodes.items() if subcode]
    # With those whose last hold had one that counts no more.
    others = Q(pk__in=told) | Q(own__attributes__has_key=SUBCODE)
    changed = list(Job.objects.filter(others, pk__in=subcodes).values_list("pk", flat=True))
    if not changed:
        return
    # As the hold itself begins: who claims them takes its locks in this order.
    taskqueues.withdraw(changed)
    jobs = Job.objects.filter(pk__in=changed).select_related("description").order_by("pk")
    for job in jobs.select_for_update(of=("self",)):
        if subcodes[job.pk] != job.attributes.get(SUBCODE, 0):
            job.give_attributes({SUBCODE: subcodes[job.pk]})
            job.save(update_fields=["own"])
