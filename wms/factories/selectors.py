"""Selectors of remote factories, with their entries as they were advertised last."""

from __future__ import annotations

from django.db.models import Count, Prefetch, QuerySet

from wms.core.errors import NotFound
from wms.core.models import User
from wms.factories.models import FactoryEntry, PilotOrder, RemoteFactory
from wms.factories.states import ENDED


def visible_factories(user: User) -> QuerySet[RemoteFactory]:
    """Factories that the user may see, with their entries."""
    entries = Prefetch("entries", FactoryEntry.objects.order_by("name"))
    factories = RemoteFactory.objects.prefetch_related(entries)
    return factories if user.is_active else factories.none()


def open_orders(factory: RemoteFactory) -> dict[str, int]:
    """Number of orders of a factory that have not ended, by state; empty: not confirmed yet."""
    rows = PilotOrder.objects.filter(batch__factory=factory).exclude(state__in=ENDED).order_by()
    return dict(rows.values_list("state").annotate(Count("pk")))


def find_factory(user: User, name: str) -> RemoteFactory:
    """The factory of this name, if the user may see it. Raises NotFound."""
    factory = visible_factories(user).filter(name=name).first()
    if factory is None:
        raise NotFound(f"There is no remote factory {name}.")
    return factory
