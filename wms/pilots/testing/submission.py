"""Submission of a test pilot that a person has asked for, to the queue's batch system.

It waits in its row, in state submitted and without a batch, until the turn of the queue's poll.
"""

from __future__ import annotations

from datetime import datetime

import structlog

from wms.core.actors import Actor
from wms.core.errors import InvalidInput
from wms.core.statemachine import DatabaseTime
from wms.elements.logins import BadLogin
from wms.elements.protocol import BadSettings, Refused
from wms.pilots import lifecycle
from wms.pilots.credentials.choice import chosen_at, element_with
from wms.pilots.models import Pilot
from wms.pilots.monitoring.fault_isolation import faults_contained
from wms.pilots.pressure.submission import hand_over, new_batch_name, new_pilot_key
from wms.pilots.program.manifest import store_manifest, submission_script
from wms.pilots.protocol.registration import secret_digest
from wms.pilots.states import PilotState, PilotTest
from wms.sites.models import Queue

log = structlog.get_logger(__name__)
_ACTOR = Actor.system("pilot-monitor")


def submit_requested_test(queue: Queue, now: datetime) -> None:
    """Submit the test pilot of this queue, if one has been asked for and not handed over yet.

    The caller holds the queue's lock. Batch name and secret are stored first, so that a pilot whose
    submission was lost is asked for by its batch and never submitted twice. Where the queue cannot
    make a pilot, or is refused one, the test has ended, with the reason.
    """
    asked = Pilot.objects.filter(queue=queue, state=PilotState.SUBMITTED, batch="")
    pilot = asked.exclude(test=PilotTest.NONE).first()
    if pilot is None:
        return
    with faults_contained("test_pilot_submission_failed", queue):
        try:
            _submit(queue, pilot, now)
        except (BadSettings, BadLogin, InvalidInput) as error:
            _abort(pilot, f"the queue's configuration makes no pilot: {error}")
        except Refused:
            # The refusal has ended the pilot already.
            log.info("test_pilot_refused", queue=str(queue), pilot=pilot.pk)


def _submit(queue: Queue, pilot: Pilot, now: datetime) -> None:
    chosen = chosen_at(queue, None, now)
    if chosen.refusal:
        raise BadLogin(chosen.refusal)
    script = submission_script(queue, store_manifest(queue, is_test=True), is_test=True)
    key = new_pilot_key()
    pilot.batch = new_batch_name()
    taken = Pilot.objects.filter(pk=pilot.pk, state=PilotState.SUBMITTED, batch="").update(
        # Waiting times count from here, as do the pauses before its batch is looked for.
        batch=pilot.batch,
        secret_sha256=secret_digest(key),
        credential=chosen.credential_id,
        created_at=now,
    )
    if taken:
        # Only now: from the moment that a pilot has it nobody changes whom the credential logs in.
        element = element_with(queue, chosen.credential_id)
        hand_over(queue, element, [pilot], [key], script=script)
        log.info("test_pilot_submitted", queue=str(queue), pilot=pilot.pk, batch=pilot.batch)


def _abort(pilot: Pilot, reason: str) -> None:
    lifecycle.apply("abort", [pilot.pk], actor=_ACTOR, reason=reason, ended_at=DatabaseTime())
