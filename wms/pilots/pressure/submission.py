"""Submission of a batch of pilots: their rows first, then the batch system, then its ids.

So a crash in between leaves a batch name to ask the batch system for (`monitoring.adoption`), and
never a pilot that nobody knows.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import structlog

from wms.core.actors import Actor
from wms.core.statemachine import DatabaseTime
from wms.elements.protocol import Element, Refused
from wms.factories.orders import Slot
from wms.pilots import lifecycle
from wms.pilots.credentials.choice import element_with
from wms.pilots.models import Pilot
from wms.pilots.pressure.snapshot import Owner
from wms.pilots.program.bootstrap import pilot_secret
from wms.pilots.program.manifest import store_manifest, submission_script
from wms.pilots.protocol.registration import secret_digest
from wms.sites.models import Queue

log = structlog.get_logger(__name__)
_ACTOR = Actor.system("director")
_ENDING_MARGIN_S = 60
_REFUSAL = "the batch system refused"


def submit_pilots(
    queue: Queue,
    element: Element,
    count: int,
    owners: Sequence[Owner | None] = (),
    frontend_id: int | None = None,
    credential_id: int | None = None,
) -> None:
    """Submit a batch of a frontend's pilots; `owners` are given where each has its own.

    They remember the credential that the element shows.
    """
    batch = new_batch_name()
    keys = [new_pilot_key() for _ in range(count)]
    script = submission_script(queue, store_manifest(queue))
    own = queue.owner_id, queue.owner_group_id
    identities = [owner or own for owner in owners] or [own] * count
    pilots = Pilot.objects.bulk_create(
        [
            Pilot(
                queue=queue,
                batch=batch,
                owner_id=owner_id,
                owner_group_id=group_id,
                frontend_id=frontend_id,
                credential_id=credential_id,
                secret_sha256=secret_digest(key),
            )
            for key, (owner_id, group_id) in zip(keys, identities, strict=True)
        ]
    )
    if credential_id is not None:
        # Read anew: from the moment that pilots have it nobody changes whom it logs in.
        element = element_with(queue, credential_id)
    hand_over(queue, element, pilots, keys, script=script)
    log.info("pilots_submitted", queue=str(queue), count=count, batch=batch)


def new_batch_name() -> str:
    """Name of a new batch, under which its pilots can be asked for."""
    return f"pilotage-{secrets.token_hex(8)}"


def new_pilot_key() -> str:
    """Secret with which a new pilot registers; its hash is stored with the pilot."""
    return secrets.token_urlsafe(32)


def slot_of(queue: Queue) -> Slot:
    """Slot that pilots of a queue ask for."""
    return Slot(
        cores=queue.cores,
        memory_mb=queue.memory_mb,
        gpus=queue.gpus,
        minutes=(queue.wall_time_s + _ENDING_MARGIN_S) // 60 + 1,
    )


def hand_over(
    queue: Queue, element: Element, pilots: list[Pilot], keys: Sequence[str], *, script: str
) -> None:
    """Give the pilots of one stored batch to the batch system, each with its key.

    A refusal aborts them and is raised; after Unreachable their batch is asked for later.
    """
    words = [pilot_secret(str(p.uuid), k) for p, k in zip(pilots, keys, strict=True)]
    give(element, pilots, words, script=script, slot=slot_of(queue))


def give(
    element: Element, pilots: list[Pilot], words: Sequence[str], *, script: str, slot: Slot
) -> None:
    """Give stored pilots to the batch system with what their scripts are to find; note its ids.

    Fails as `hand_over` does.
    """
    try:
        native_ids = element.submit(
            len(pilots),
            script,
            name=pilots[0].batch,
            cores=slot.cores,
            memory_mb=slot.memory_mb,
            gpus=slot.gpus,
            minutes=slot.minutes,
            secrets=words,
        )
    except Refused as error:
        # A clear no, so there is nothing to look for later; the pilots' pages tell it.
        reason = f"{_REFUSAL}: {error}"
        ids = [pilot.pk for pilot in pilots]
        lifecycle.apply("abort", ids, actor=_ACTOR, reason=reason, ended_at=DatabaseTime())
        raise
    record_native_ids(pilots, native_ids)


def record_native_ids(pilots: list[Pilot], native_ids: list[str]) -> None:
    """Note the batch system's ids, in the order of submission: the pilots are queued."""
    known = list(zip(pilots, native_ids, strict=False))
    for pilot, native_id in known:
        pilot.native_id = native_id
    Pilot.objects.bulk_update([pilot for pilot, _ in known], ["native_id"], batch_size=1000)
    lifecycle.apply("queue", [pilot.pk for pilot, _ in known], actor=_ACTOR)
