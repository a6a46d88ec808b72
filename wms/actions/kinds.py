"""Class of the kinds of objects with actions, and helpers that call services for actions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Model, Q, QuerySet

from wms.actions.actions import Action, Call, CallOne
from wms.actions.arguments import Order
from wms.core.errors import NotFound
from wms.core.models import User
from wms.core.transitions import Applied


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Kind of objects with its actions; its name is that of the list.

    `permits` tells whether the user may act on an object. `handle` is the column by which services
    and the API identify one. `made_before` is the condition for objects that existed at an instant.
    `key` is the column that decides permission in bulk: `permitted` returns the values for which
    the user may act. Previews count objects by `group`, too. `offered` tells whether the user may
    act on any of them.
    """

    name: str
    noun: str
    nouns: str
    model: type[Model]
    actions: Mapping[str, Action]
    permits: Callable[[User, Any], bool]
    handle: str = "pk"
    made_before: Callable[[datetime], Q]
    key: str
    permitted: Callable[[User, Collection[Any]], Collection[Any]]
    refusal: str
    label: str
    group: str
    group_label: str
    effects: Callable[[QuerySet[Any]], Sequence[str]]
    owner: str = ""
    offered: Callable[[User], bool] = field(default=lambda user: True)

    @property
    def on_page(self) -> Sequence[Action]:
        """Actions on the page of one object."""
        return [action for action in self.actions.values() if action.page]

    @property
    def in_bulk(self) -> Sequence[Action]:
        """Actions on many objects."""
        return [action for action in self.actions.values() if action.bulk]

    @property
    def in_api(self) -> Sequence[Action]:
        """Actions of the API on one object."""
        return [action for action in self.actions.values() if action.api]

    @property
    def in_shell(self) -> Sequence[Action]:
        """Actions of commands on one object, sorted by name."""
        in_shell = (action for action in self.actions.values() if action.shell)
        return sorted(in_shell, key=lambda action: action.name)

    def find_action(self, name: str) -> Action:
        """Action on many objects by name. Raises NotFound."""
        action = self.actions.get(name)
        if action is None or not action.bulk:
            known = ", ".join(each.name for each in self.in_bulk)
            raise NotFound(f"One cannot {name!r} {self.nouns} in bulk; there are {known}.")
        return action

    def find_on_page(self, name: str) -> Action | None:
        """Action on the page of one object by its name there."""
        return next((each for each in self.on_page if each.page_name == name), None)

    def possible_on_page(self, user: User, row: Model) -> list[Action]:
        """Actions that the user may take on the page of this object."""
        if not self.permits(user, row):
            return []
        return [each for each in self.on_page if each.offered(user) and each.fits(row)]

    def counted(self, count: int) -> str:
        """Number of objects with the noun, as `3 jobs`."""
        return f"{count:,} {self.noun if count == 1 else self.nouns}"


def made_at(instant: datetime) -> Q:
    """Condition for objects with `created_at` up to the instant."""
    return Q(created_at__lte=instant)


def actions(*each: Action) -> dict[str, Action]:
    """Actions by name, in this order."""
    return {action.name: action for action in each}


def of_many(service: Callable[..., Applied]) -> Call:
    """Bulk call of a service that takes many ids."""

    def call(ids: Sequence[int], order: Order) -> Mapping[int, str]:
        applied = service(ids, actor=order.actor, reason=order.reason, **order.arguments)
        return dict.fromkeys(applied.changed, "")

    return call


def one_of_many(service: Callable[..., Applied]) -> CallOne:
    """Single call of a service that takes many ids."""

    def call(which: int, order: Order) -> Applied:
        return service([which], actor=order.actor, reason=order.reason, **order.arguments)

    return call


def one_by_one(model: type[Model], name: str, service: Callable[..., Any]) -> Call:
    """Bulk call of a service that takes one object by the column `name`."""

    def call(ids: Sequence[int], order: Order) -> Mapping[int, str]:
        rows = model._default_manager.filter(pk__in=ids).order_by("pk").values_list("pk", name)
        for _, which in rows:
            service(which, actor=order.actor, reason=order.reason)
        return {pk: "" for pk, _ in rows}

    return call


def one_alone(service: Callable[..., Any]) -> CallOne:
    """Single call of a service that takes one object."""

    def call(which: Any, order: Order) -> Any:
        return service(which, actor=order.actor, reason=order.reason)

    return call


def one_as_seen(service: Callable[..., Any]) -> CallOne:
    """Single call of a service that compares the state which the actor saw."""

    def call(which: Any, order: Order) -> Any:
        return service(which, actor=order.actor, reason=order.reason, seen=order.seen)

    return call
