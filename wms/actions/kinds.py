"""Kind of objects that people act on: its actions, permissions, and columns for bulk previews.

Also adapters that make an action's call of a service, which takes one object or many.
"""

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

    `visible` are those that a user may see. `handle` is the column by which services and programs
    name one. The other fields matter where many are chosen in its list. `made_before` are those
    that were there at an instant.
    `key` is the column by which permission is decided: `permitted` are those of its values that let
    the user act. `group` is counted beside the states in a preview. It is `offered` to whoever may
    act on any of them.
    """

    name: str
    noun: str
    nouns: str
    model: type[Model]
    actions: Mapping[str, Action]
    permits: Callable[[User, Any], bool]
    visible: Callable[[User], QuerySet[Any]]
    handle: str = "pk"
    made_before: Callable[[datetime], Q] = field(default=lambda instant: Q(created_at__lte=instant))
    key: str = "pk"
    permitted: Callable[[User, Collection[Any]], Collection[Any]] = field(
        default=lambda user, keys: ()
    )
    refusal: str = ""
    label: str = "pk"
    group: str = ""
    group_label: str = ""
    effects: Callable[[QuerySet[Any]], Sequence[str]] = field(default=lambda rows: ())
    owner: str = ""
    offered: Callable[[User], bool] = field(default=lambda user: True)

    @property
    def on_page(self) -> Sequence[Action]:
        """Actions that the page of one object offers."""
        return [action for action in self.actions.values() if action.page]

    @property
    def in_bulk(self) -> Sequence[Action]:
        """Actions on many objects."""
        return [action for action in self.actions.values() if action.bulk]

    @property
    def in_api(self) -> Sequence[Action]:
        """Actions on one object in the API."""
        return [action for action in self.actions.values() if action.api]

    @property
    def in_shell(self) -> Sequence[Action]:
        """Actions on one object by command, sorted by name."""
        found = (action for action in self.actions.values() if action.shell)
        return sorted(found, key=lambda action: action.name)

    def find_action(self, name: str) -> Action:
        """Bulk action of this name. Raises NotFound."""
        action = self.actions.get(name)
        if action is None or not action.bulk:
            known = ", ".join(each.name for each in self.in_bulk)
            raise NotFound(f"One cannot {name!r} {self.nouns} in bulk; there are {known}.")
        return action

    def find_on_page(self, name: str) -> Action | None:
        """Action that pages offer under this name, or None."""
        return next((each for each in self.on_page if each.page_name == name), None)

    def possible_on_page(self, user: User, row: Model) -> list[Action]:
        """Actions that the user can carry out on the page of an object as it was read."""
        if not self.permits(user, row):
            return []
        return [each for each in self.on_page if each.offered(user) and each.is_possible(row)]

    def counted(self, count: int) -> str:
        """Count of objects in words, as in `2 DAGs`."""
        return f"{count:,} {self.noun if count == 1 else self.nouns}"


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
        return service(which, actor=order.actor, reason=order.reason, **order.arguments)

    return call


def one_as_seen(service: Callable[..., Any]) -> CallOne:
    """Single call of a service that compares the state which the actor saw."""

    def call(which: Any, order: Order) -> Any:
        return service(which, actor=order.actor, reason=order.reason, seen=order.seen)

    return call
