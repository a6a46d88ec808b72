"""Claims that are held until there is a job: idle pilots need not ask every second."""

from __future__ import annotations

import time
from collections.abc import Callable, Set

from django.utils import timezone

from matching.resources import Resource
from wms.core.conf import conf
from wms.pilots.models import Pilot
from wms.pilots.protocol.claims import ClaimAnswer, claim_job
from wms.pilots.protocol.references import AttemptRef
from wms.pilots.protocol.refusals import Until
from wms.pilots.protocol.waiting_room import ROOM, Place

#: A web server that is to end waits for no claim longer than this.
LONGEST_S = 5.0


def claim_and_wait(
    pilot: Pilot,
    resource: Resource,
    *,
    claim_key: str,
    wait_s: float,
    is_there: Callable[[], bool] = lambda: True,
    unreported: Set[AttemptRef] = frozenset(),
) -> tuple[ClaimAnswer, bool]:
    """As `claim_job`, but wait for a job where waiting may help; tell whether it did in vain.

    A process holds `max_held_claims` at once; the answer to others comes at once. A pilot that is
    not there any more, as far as `is_there` can tell, is given no job. Raises NotAuthenticated when
    the pilot has ended.
    """
    until_s = time.monotonic() + min(wait_s, LONGEST_S)

    def ask(is_called: bool) -> ClaimAnswer:
        return claim_job(
            pilot, resource, claim_key=claim_key, unreported=unreported, now=timezone.now(),
            is_called=is_called,
        )  # fmt: skip

    # The place is taken before the first look, so that no news comes between the two.
    with ROOM.place(conf().max_held_claims) as place:
        answer = ask(False)
        if place is None:
            return answer, False
        while _wait(place, answer, until_s):
            if not is_there():
                ROOM.pass_on()
                return answer, False
            answer = ask(True)
            if answer.work is None:
                ROOM.pass_on()
    return answer, answer.until is not Until.OTHER and time.monotonic() >= until_s


def _wait(place: Place, answer: ClaimAnswer, until_s: float) -> bool:
    """Tell whether to look again, once it is time to."""
    if answer.until is Until.REST:
        # However short it would wait: it has not been looked for a job yet.
        ROOM.wait(place, answer.again_s)
        return not place.is_sent_away
    left_s = until_s - time.monotonic()
    return left_s > 0 and answer.until is Until.JOBS and ROOM.wait(place, left_s)
