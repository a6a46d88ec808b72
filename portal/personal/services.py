"""Services on saved filters, and on preferences: default filter, columns, theme, zone, density.

Changes of shared filters are audited.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import IntegrityError, transaction

from portal.lists.registry import find_list
from portal.personal.models import Preferences, SavedFilter
from portal.personal.policy import require_change, require_sharing
from portal.personal.selectors import find_filter
from portal.personal.zones import zone_names
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import Conflict, Finding, InvalidInput, NotPermitted, TooMany
from wms.core.models import User

MAX_FILTERS = 200
_CHOICES = {
    "theme": Preferences.Theme.values,
    "density": Preferences.Density.values,
    "has_shortcuts": [True, False],
}


@transaction.atomic
def save_filter(
    list_name: str,
    *,
    name: str,
    parameters: Mapping[str, Any],
    is_shared: bool = False,
    actor: Actor,
) -> SavedFilter:
    """Store a filter of a list under a name; one of the same name of the actor is replaced.

    An order is kept with it. Raises InvalidInput for parameters that are none of the list, or for
    none at all.
    """
    owner = _person(actor)
    if is_shared:
        require_sharing(actor)
    kept = find_list(list_name).kept(parameters)
    if not kept:
        message = "Set a filter or an order first: this one leaves every row."
        raise InvalidInput.of(message, field="parameters")
    existing = SavedFilter.objects.select_for_update().filter(
        owner=owner, list_name=list_name, name=_name(name)
    ).first()  # fmt: skip
    if existing is None and SavedFilter.objects.filter(owner=owner).count() >= MAX_FILTERS:
        raise TooMany(f"You keep {MAX_FILTERS} filters already: remove one first.")
    saved = existing or SavedFilter(owner=owner, list_name=list_name, name=_name(name))
    was_shared = saved.is_shared
    saved.parameters, saved.is_shared = kept, is_shared
    saved.save()
    if is_shared or was_shared:
        _record("save-filter", saved, actor, parameters=kept, is_shared=is_shared)
    return saved


@transaction.atomic
def change_filter(
    filter_id: int, *, name: str | None = None, is_shared: bool | None = None, actor: Actor
) -> SavedFilter:
    """Rename a filter, share it or take it back. Raises Conflict for a name that is in use."""
    saved = find_filter(_person(actor), filter_id)
    require_change(actor, saved)
    before = {"name": saved.name, "is_shared": saved.is_shared}
    after = {
        "name": saved.name if name is None else _name(name),
        "is_shared": saved.is_shared if is_shared is None else is_shared,
    }
    if after["is_shared"] and not saved.is_shared:
        require_sharing(actor)
    saved.name, saved.is_shared = after["name"], after["is_shared"]
    try:
        with transaction.atomic():
            saved.save(update_fields=["name", "is_shared"])
    except IntegrityError:
        raise Conflict(f"There is a filter {saved.name} of this list already.") from None
    if before["is_shared"] or saved.is_shared:
        changes = {key: [before[key], after[key]] for key in before if before[key] != after[key]}
        _record("change-filter", saved, actor, **changes)
    return saved


@transaction.atomic
def remove_filter(filter_id: int, *, actor: Actor) -> SavedFilter:
    """Forget a filter; lists that opened with it open without one."""
    saved = find_filter(_person(actor), filter_id)
    require_change(actor, saved)
    if saved.is_shared:
        _record("remove-filter", saved, actor, parameters=saved.parameters)
    SavedFilter.objects.filter(pk=saved.pk).delete()
    return saved


def set_default_filter(list_name: str, filter_id: int | None, *, actor: Actor) -> None:
    """Let a list open with a saved filter of it, or without one. Raises NotFound."""
    user = _person(actor)
    if filter_id is not None and find_filter(user, filter_id).list_name != list_name:
        raise InvalidInput.of("This filter is for another list.", field="filter")
    find_list(list_name)
    with _preferences(user) as kept:
        kept.default_filters.pop(list_name, None)
        if filter_id is not None:
            kept.default_filters[list_name] = filter_id


def choose_columns(list_name: str, names: Sequence[str], *, actor: Actor) -> None:
    """Show these columns of a list; none means the usual ones. Raises InvalidInput."""
    known = find_list(list_name).column_names()
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise InvalidInput.of(f"There is no column {unknown[0]}.", field="columns")
    with _preferences(_person(actor)) as kept:
        kept.columns.pop(list_name, None)
        if names:
            kept.columns[list_name] = [name for name in known if name in set(names)]


def save_preferences(changes: Mapping[str, Any], *, actor: Actor) -> None:
    """Change theme, time_zone, density, has_shortcuts: those that are named. Raises InvalidInput.

    They are the actor's own, so nothing of them is audited.
    """
    allowed = {**_CHOICES, "time_zone": zone_names()}
    faults = [
        Finding(f"{value} is not one of the choices.", field=name)
        for name, value in changes.items()
        if value not in allowed.get(name, ())
    ]
    if faults:
        raise InvalidInput(faults)
    with _preferences(_person(actor)) as kept:
        for name, value in changes.items():
            setattr(kept, name, value)


@contextmanager
def _preferences(user: User) -> Iterator[Preferences]:
    """The user's row, locked until it is stored at the end."""
    with transaction.atomic():
        Preferences.objects.get_or_create(user=user)
        kept = Preferences.objects.select_for_update().get(user=user)
        yield kept
        kept.save()


def _person(actor: Actor) -> User:
    if actor.user is None or not actor.user.is_active:
        raise NotPermitted("Filters and preferences are kept for people.")
    return actor.user


def _name(text: str) -> str:
    name = " ".join(text.split())
    if not name:
        raise InvalidInput.of("Give the filter a name.", field="name")
    if len(name) > SavedFilter._meta.get_field("name").max_length or "\0" in name:
        raise InvalidInput.of("A name has at most 80 characters.", field="name")
    return name


def _record(action: str, saved: SavedFilter, actor: Actor, **facts: Any) -> None:
    target = f"filter {saved.pk} ({saved})"
    record_action(action, target=target, actor=actor, facts=facts)
