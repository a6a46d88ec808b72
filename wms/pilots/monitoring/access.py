"""Access to a queue's batch system by one credential, with the pilots that were submitted so."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from wms.elements.protocol import Element
from wms.pilots.credentials.choice import element_with
from wms.pilots.models import Pilot
from wms.pilots.pressure.backoff import Kind, back_offs
from wms.pilots.pressure_models import ElementContact
from wms.sites.models import Queue


@dataclass(frozen=True, slots=True)
class Access:
    """A queue, and the credential that its batch system is shown; None for the queue's own.

    Pilots are asked for with the one that they were submitted with.
    """

    queue: Queue
    credential_id: int | None

    def element(self) -> Element:
        """The adapter to the batch system. Raises BadSettings or BadLogin."""
        return element_with(self.queue, self.credential_id)

    @property
    def pilots(self) -> QuerySet[Pilot]:
        """Pilots that were submitted so."""
        return Pilot.objects.filter(queue=self.queue, credential=self.credential_id)

    @property
    def contacts(self) -> QuerySet[ElementContact]:
        """What is known of the polls."""
        return ElementContact.objects.filter(
            queue=self.queue, credential=self.credential_id, kind=Kind.POLL
        )


def shown_to(queue: Queue, now: datetime) -> list[int | None]:
    """Credentials with which pilots of the queue are asked for, the queue's own first.

    Where there are several, without those that back off: whoever called means the others.
    """
    with_others = Pilot.objects.filter(queue=queue, credential__isnull=False, is_forgotten=False)
    others = set(with_others.order_by().values_list("credential", flat=True).distinct())
    if not others:
        return [None]
    pausing = back_offs(now, [Kind.POLL])
    return [each for each in (None, *sorted(others)) if (queue.pk, each) not in pausing]
