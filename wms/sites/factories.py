"""Queues that are served by remote factories: whether they are now, and the check of their entries.

Each entry of a factory is that of one queue only.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from wms.core.errors import InvalidInput
from wms.factories.models import RemoteFactory
from wms.factories.standing import standings
from wms.sites.models import Queue

#: The kind of element of such a queue.
FACTORY = "factory"


def factory_refusals(queues: Iterable[Queue], now: datetime) -> dict[int, str]:
    """Queues that their factory does not serve now, with the reason, by id.

    Two queries where some queue has a factory, else none. Reads the queues' sites.
    """
    served = [queue for queue in queues if queue.element == FACTORY]
    known = standings({str(queue.settings.get("factory")) for queue in served}, now)
    refused = {}
    for queue in served:
        factory, entry = str(queue.settings.get("factory")), str(queue.settings.get("entry"))
        if reason := known.refusal(factory, entry, site=queue.site.name):
            refused[queue.pk] = reason
    return refused


def queues_of_factory(factory: RemoteFactory) -> list[Queue]:
    """Queues that a factory serves, with their sites, by name."""
    queues = Queue.objects.filter(element=FACTORY, settings__factory=factory.name)
    return list(queues.select_related("site").order_by("site__name", "name"))


def check_factory_queue(queue: Queue) -> None:
    """Raise InvalidInput where a queue's factory is unknown or may not serve it, or another queue
    has the entry.
    """
    if queue.element != FACTORY:
        return
    name, entry = queue.settings["factory"], queue.settings["entry"]
    factory = RemoteFactory.objects.filter(name=name).first()
    if factory is None:
        raise InvalidInput.of(f"factory: there is no remote factory {name}", field="settings")
    if factory.sites and queue.site.name not in factory.sites:
        message = f"factory: {name} may not serve the site {queue.site.name}"
        raise InvalidInput.of(message, field="settings")
    others = Queue.objects.select_related("site").filter(
        element=FACTORY, settings__factory=name, settings__entry=entry
    )
    other = others.exclude(pk=queue.pk).first()
    if other is not None:
        raise InvalidInput.of(f"entry: the queue {other} has it already", field="settings")
