"""Back-off from the batch systems of queues after failures in a row: counted, described, ended."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Coalesce

from wms.pilots.models import Pilot
from wms.pilots.pressure_models import ElementContact
from wms.sites.models import Queue

Kind = ElementContact.Kind
#: Ids of a queue and of a credential; None for what the queue's settings name.
AccessKey = tuple[int, int | None]

#: The first pause after a failure; each further one is twice as long, up to the longest.
_FIRST_PAUSE_S = 15.0
_LONGEST_PAUSE_S = 600.0
#: A pause is shortened or lengthened by up to this part, so that queues do not all return at once.
_JITTER = 0.2
_LONGEST_REASON = 500


def pause_s(failures: int, *, jitter: float) -> float:
    """Pause after so many failures in a row, in seconds.

    `jitter` is a random number from -1 to 1.
    """
    doubled = _FIRST_PAUSE_S * 2.0 ** min(failures - 1, 10)
    return min(doubled, _LONGEST_PAUSE_S) * (1 + _JITTER * jitter)


def contact_of(queue: Queue, kind: Kind, credential_id: int | None) -> ElementContact:
    """What is stored of the questions of this kind; made if there was none yet."""
    of_credential = ElementContact.objects.filter(credential=credential_id)
    contact, _ = of_credential.get_or_create(
        queue=queue, kind=kind, defaults={"credential_id": credential_id}
    )
    return contact


def note_failure(
    queue: Queue,
    kind: Kind,
    reason: str,
    *,
    now: datetime,
    jitter: float,
    credential_id: int | None = None,
) -> ElementContact:
    """Count one more failure and leave the batch system alone for longer.

    Who shows it another credential goes on.
    """
    contact = contact_of(queue, kind, credential_id)
    contact.failures += 1
    contact.failing_since = contact.failing_since or now
    contact.reason = reason[:_LONGEST_REASON] or "no reason given"
    contact.next_at = now + timedelta(seconds=pause_s(contact.failures, jitter=jitter))
    contact.save(update_fields=["failures", "failing_since", "reason", "next_at"])
    return contact


def note_success(
    queue: Queue,
    kind: Kind,
    *,
    now: datetime,
    next_at: datetime | None = None,
    credential_id: int | None = None,
) -> None:
    """Reset the failures: the batch system has answered."""
    facts = {
        "failures": 0, "failing_since": None, "reason": "", "answered_at": now, "next_at": next_at,
    }  # fmt: skip
    of_credential = ElementContact.objects.filter(credential=credential_id)
    if not of_credential.filter(queue=queue, kind=kind).update(**facts):
        contact = contact_of(queue, kind, credential_id)
        ElementContact.objects.filter(pk=contact.pk).update(**facts)


def back_offs(now: datetime, kinds: Collection[Kind]) -> dict[AccessKey, ElementContact]:
    """Queues that back off now because of one of these kinds, with the longest pause.

    By the ids of the queue and of the credential that it is shown.
    """
    rows = ElementContact.objects.filter(failures__gt=0, next_at__gt=now, kind__in=kinds)
    return {(row.queue_id, row.credential_id): row for row in rows.order_by("next_at")}


def backing_off(now: datetime) -> QuerySet[ElementContact]:
    """Contacts that back off now after failures, longest first."""
    return ElementContact.objects.filter(failures__gt=0, next_at__gt=now).order_by("failing_since")


def described(contact: ElementContact) -> str:
    """Back-off in words, with the time at which it ends (UTC)."""
    assert contact.next_at is not None
    times = "" if contact.failures == 1 else f"{contact.failures} failures of "
    return (
        f"back-off until {contact.next_at:%H:%M:%S} UTC after {times}"
        f"{contact.get_kind_display()}: {contact.reason}"
    )


def clear_start_failures(now: datetime) -> None:
    """End the back-off of queues of which a pilot has called in since its failures began."""
    started = Pilot.objects.filter(
        queue=OuterRef("queue"), registered_at__gt=OuterRef("failing_since")
    ).annotate(who=Coalesce("credential", 0))
    ElementContact.objects.filter(
        Exists(started.filter(who=Coalesce(OuterRef("credential"), 0))),
        kind=Kind.START,
        failures__gt=0,
    ).update(failures=0, failing_since=None, reason="", next_at=None, answered_at=now)
