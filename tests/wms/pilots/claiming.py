"""Running pilots in tests: they claim jobs and send heartbeats.

Also submission of a job, and calls in threads that start together.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime

from django.db import connections

from matching.task_queues.needs import Needs
from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs.operations import JobSpec, create_workspace, submit_jobs
from wms.pilots.models import Pilot
from wms.pilots.protocol import registration
from wms.pilots.protocol.attempt_refs import AttemptRef
from wms.pilots.protocol.claims import ClaimAnswer, claim_job
from wms.pilots.protocol.heartbeats import (
    Credential,
    HeartbeatAnswer,
    HeartbeatMessage,
    record_heartbeat,
)
from wms.sites.models import Queue
from wms.sites.selectors import queue_offer, with_identity

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
SYSTEM = Actor.system("test")


def running_pilot(queue: Queue, **identity: object) -> Pilot:
    made = Pilot.objects.create(
        queue=queue,
        batch="batch",
        state="running",
        secret_sha256="x",
        token_sha256=registration.secret_digest("t" * 64),
        node={"hostname": "n1"},
        **identity,
    )
    return registration.authenticate_pilot(made.uuid, "t" * 64, now=NOW)


def ask(
    pilot: Pilot, *, key: str | None = None, now: datetime = NOW, **said: object
) -> ClaimAnswer:
    """A claim by a pilot that says it has all of its queue's offer free, apart from `said`."""
    offer = with_identity(queue_offer(pilot.queue), pilot.owner, pilot.owner_group)
    claim_key = key or secrets.token_hex(16)
    return claim_job(pilot, replace(offer, **said), claim_key=claim_key, now=now)  # type: ignore[arg-type]


def job_of(answer: ClaimAnswer) -> int | None:
    return answer.work.job.pk if answer.work else None


def submit(owner: User, group: str = "", **needs: object) -> int:
    wanted = Needs.of(owner.username, owner_group=group, **needs)
    workspace = create_workspace(owner, {})
    spec = JobSpec(name="run", executable="/bin/true", needs=wanted)
    [pk] = submit_jobs([spec], owner=owner, workspace=workspace, actor=Actor.person(owner))
    return pk


def in_threads(*works: Callable[[], object]) -> None:
    """Run all at once; fails when one does."""
    errors: list[BaseException] = []
    start = threading.Barrier(len(works))

    def guarded(work: Callable[[], object]) -> None:
        try:
            start.wait()
            work()
        except Exception as error:  # noqa: BLE001 - told by the assertion below
            errors.append(error)
        finally:
            connections["default"].close()

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def beat(
    pilot: Pilot, running: Iterable[AttemptRef] = (), *, now: datetime = NOW, **told: object
) -> HeartbeatAnswer:
    """A heartbeat of the pilot, which has these attempts."""
    credential = Credential(pilot.uuid, pilot.token_sha256)
    return record_heartbeat(credential, HeartbeatMessage(running=tuple(running), **told), now=now)  # type: ignore[arg-type]
