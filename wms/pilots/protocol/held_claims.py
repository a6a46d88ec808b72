"""Held claims (long polling): an idle pilot's claim waits at the server until there is a job."""

from __future__ import annotations

import time
from collections.abc import Callable, Set
from contextlib import AbstractContextManager, nullcontext

from django.utils import timezone

from matching.task_queues.resources import Resource
from wms.core.conf import conf
from wms.pilots.models import Pilot
from wms.pilots.protocol.attempt_refs import AttemptRef
from wms.pilots.protocol.claims import ClaimAnswer, claim_job
from wms.pilots.protocol.refusals import RetryWhen
from wms.pilots.protocol.waiting_list import WAITING_LIST, WaitingSlot

#: A web server that is to end waits for no claim longer than this.
LONGEST_S = 5.0


def claim_and_wait(
    pilot: Pilot,
    resource: Resource,
    *,
    claim_key: str,
    wait_s: float,
    is_there: Callable[[], bool] = lambda: True,
    resting: Callable[[], AbstractContextManager[None]] = nullcontext,
    unreported: Set[AttemptRef] = frozenset(),
) -> tuple[ClaimAnswer, bool]:
    """Claim a job, and wait for one where that may help; tell whether it waited in vain.

    A process holds `max_held_claims` at once; the answer to others comes at once. A pilot that is
    not there any more, as far as `is_there` can tell, is given no job. It waits inside `resting`,
    where it needs nothing. Raises NotAuthenticated when the pilot has ended.
    """
    until_s = time.monotonic() + min(wait_s, LONGEST_S)

    def ask(is_called: bool) -> ClaimAnswer:
        return claim_job(
            pilot, resource, claim_key=claim_key, unreported=unreported, now=timezone.now(),
            is_called=is_called,
        )  # fmt: skip

    # The slot is taken before the first look, so that no arrival comes between the two.
    with WAITING_LIST.slot(conf().max_held_claims) as slot:
        answer = ask(False)
        if slot is None:
            return answer, False
        while _is_called(slot, answer, until_s, resting):
            if not is_there():
                WAITING_LIST.wake_next()
                return answer, False
            answer = ask(True)
            if answer.work is None:
                WAITING_LIST.wake_next()
    return answer, answer.until is not RetryWhen.OTHER and time.monotonic() >= until_s


def _is_called(
    slot: WaitingSlot,
    answer: ClaimAnswer,
    until_s: float,
    resting: Callable[[], AbstractContextManager[None]],
) -> bool:
    with resting():
        return _wait(slot, answer, until_s)


def _wait(slot: WaitingSlot, answer: ClaimAnswer, until_s: float) -> bool:
    """Tell whether to look for a job again, once it is time to."""
    if answer.until is RetryWhen.REST:
        # However short it would wait: it has not been looked for a job yet.
        WAITING_LIST.wait(slot, answer.again_s)
        return not slot.is_released
    left_s = until_s - time.monotonic()
    return left_s > 0 and answer.until is RetryWhen.JOBS and WAITING_LIST.wait(slot, left_s)
