"""Progress of attempts as pilots report it: start of the payload, attributes, files sent back.

Attributes become part of the job's ad; files of a cluster's job count as its stored outputs.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction
from django.db.models.functions import Now

from matching.ads.classads import quote
from wms.core.actors import Actor
from wms.core.errors import InvalidInput
from wms.jobs import lifecycle
from wms.jobs.attempts.guard import (
    find_attempt,
    has_reported_its_end,
    live_attempt,
    report_guard,
)
from wms.jobs.content.paths import checked_path
from wms.jobs.models import Attempt, AttemptFile, Blob, Job
from wms.jobs.sandboxes.files import KEPT_KINDS
from wms.jobs.sandboxes.leases import has_sandbox
from wms.jobs.sandboxes.sizes import note_bytes
from wms.jobs.states import WITH_PILOT

#: Attributes of a job beyond this number are not stored.
MOST_ATTRIBUTES = 200


def start_attempt(job_id: int, number: int, *, pilot_id: int, actor: Actor) -> None:
    """Note the start of the payload. Repeating it changes nothing, nor does a report after the end.

    The attempt tells the event: its time is that of the database, as of all events.

    Raises NotFound or AttemptSuperseded.
    """
    with (
        report_guard(job_id, number, "started", pilot_id=pilot_id, actor=actor),
        transaction.atomic(),
    ):
        attempt = find_attempt(job_id, number, pilot_id=pilot_id)
        if has_reported_its_end(attempt):
            return
        live_attempt(job_id, number, pilot_id=pilot_id)
        event = lifecycle.apply_told("start", [job_id], actor=actor).get(job_id)
        Attempt.objects.filter(pk=attempt.pk, started_at=None).update(
            started_at=Now(), start_event=event, actor=actor.name
        )


@transaction.atomic
def note_attributes(
    reported: Mapping[tuple[int, int], Mapping[str, int | str]], *, pilot_id: int, actor: Actor
) -> None:
    """Store attributes that running payloads report, by job and number of the attempt.

    They become part of the job's ad; what changed is an event of the job. Repeating it changes
    nothing, and neither do reports of attempts that are not open, or another pilot's.
    """
    facts: dict[int, dict[str, int | str]] = {}
    jobs = Job.objects.filter(pk__in={job for job, _ in reported}, state__in=WITH_PILOT)
    jobs = jobs.select_related("description").order_by("pk")
    for job in jobs.select_for_update(of=("self",)):
        values = reported.get((job.pk, job.attempt_number))
        attempts = job.attempts.filter(number=job.attempt_number, pilot_id=pilot_id, outcome="")
        if values and attempts.exists() and (changed := _merge(job, values)):
            job.save(update_fields=["own"])
            facts[job.pk] = changed
    if facts:
        lifecycle.note("update", facts, actor=actor)


def _merge(job: Job, values: Mapping[str, int | str]) -> dict[str, int | str]:
    """Set attributes of a job; returns those that changed."""
    # As in all ads, upper and lower case make no difference in names.
    attributes = dict(job.attributes)
    known = {name.lower(): name for name in attributes}
    changed: dict[str, int | str] = {}
    own: dict[str, int | str] = {}
    for said, value in values.items():
        name = known.setdefault(said.lower(), said)
        # Texts of a job's ad are expressions.
        stored = quote(value) if isinstance(value, str) else value
        has_room = name in attributes or len(attributes) < MOST_ATTRIBUTES
        if has_room and attributes.get(name) != stored:
            attributes[name] = own[name] = stored
            changed[name] = value
    if own:
        job.give_attributes(own)
    return changed


def add_attempt_file(attempt: Attempt, *, kind: str, path: str, blob: Blob) -> None:
    """Attach a file that the attempt sent back; sending it again replaces it."""
    if kind not in AttemptFile.Kind.values:
        raise InvalidInput.of(f"unknown kind of file {kind!r}", field="kind")
    path = checked_path(path)
    with transaction.atomic():
        if has_sandbox(attempt.job) and kind in KEPT_KINDS:
            _count_bytes(attempt, kind, path, blob)
        AttemptFile.objects.update_or_create(
            attempt=attempt, kind=kind, path=path, defaults={"blob": blob}
        )


def _count_bytes(attempt: Attempt, kind: str, path: str, blob: Blob) -> None:
    """Count a file of a cluster's job, and out what it replaces."""
    # One file after the other, so that each is counted out once.
    Attempt.objects.select_for_update(no_key=True).only("pk").get(pk=attempt.pk)
    former = AttemptFile.objects.filter(attempt=attempt, kind=kind, path=path)
    before = former.values_list("blob__size_bytes", flat=True)
    note_bytes(attempt.job.cluster_id, blob.size_bytes - sum(before))
