"""Selectors of saved filters, own and shared, and of a user's display preferences."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q, QuerySet

from portal.personal.models import Preferences, SavedFilter
from wms.accounting.walls import walls_of
from wms.core.errors import NotFound
from wms.core.models import User


def preferences_of(user: User | AnonymousUser | None) -> Preferences:
    """Display preferences of the user, or the defaults; never stored here."""
    found = getattr(user, "preferences", None) if user and user.is_authenticated else None
    return found or Preferences()


def visible_filters(user: User) -> QuerySet[SavedFilter]:
    """The user's own saved filters and those that people of the user's frontends share, by name."""
    seen, walls = SavedFilter.objects.filter(Q(owner=user) | Q(is_shared=True)), walls_of(user)
    if not walls.is_open:
        seen = seen.filter(walls.of_users("owner"))
    return seen.select_related("owner").order_by("list_name", "name", "pk")


def find_filter(user: User, filter_id: int) -> SavedFilter:
    """One saved filter that the user may see. Raises NotFound."""
    found = visible_filters(user).filter(pk=filter_id).first()
    if found is None:
        raise NotFound(f"There is no saved filter {filter_id}, or you may not see it.")
    return found
