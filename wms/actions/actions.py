"""Class of the actions of users on objects, with their texts for pages, API, shell and bulk.

Each action is declared once, in its kind (`wms.actions.registry`). It has the name, label,
question, arguments and success message; its services are in the apps of the objects. A face offers
the actions that have a declaration for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Case, CharField, Expression, Model, Value, When

from wms.actions.arguments import Argument, Order
from wms.actions.obstacles import Obstacle, holds
from wms.core.errors import InvalidInput
from wms.core.models import User

#: Default limit of objects changed in one transaction.
BATCH = 500

#: Call of a service on one object by its handle; returns the service's result.
CallOne = Callable[[Any, Order], Any]
#: Call of services on objects; returns messages by changed object, the others did not fit. An
#: exception is about one of them.
Call = Callable[[Sequence[int], Order], Mapping[int, str]]


@dataclass(frozen=True, slots=True)
class OnPage:
    """Declaration of an action for the page of one object: question and success message.

    `name` is the name in addresses, if it differs. `is_grave` makes the button red although the
    action can be undone. `labels` are labels by state, where they differ.
    """

    explanation: str
    done: str
    name: str = ""
    is_grave: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InApi:
    """Declaration of an action for the API; `refused` completes `it cannot be ...`.

    `body` describes the request body, if there are arguments. With `is_later` a pilot acts after
    the response.
    """

    summary: str
    description: str
    refused: str = ""
    body: str = ""
    is_later: bool = False


@dataclass(frozen=True, slots=True)
class InShell:
    """Declaration of an action for a command; `result_format` formats the service's result."""

    help: str
    result_format: str


@dataclass(frozen=True, slots=True)
class InBulk:
    """Declaration of an action for bulk operations, in transactions of up to `batch` objects."""

    explanation: str
    call: Call
    batch: int = BATCH


@dataclass(frozen=True, slots=True)
class Action:
    """Action on objects of a kind.

    `obstacles` are conditions under which it is impossible, for previews and pages alike. A
    destructive action cannot be undone. `offered` is a permission besides that of the kind.
    """

    name: str
    label: str
    obstacles: Sequence[Obstacle] = ()
    one: CallOne | None = None
    page: OnPage | None = None
    api: InApi | None = None
    shell: InShell | None = None
    bulk: InBulk | None = None
    takes_reason: bool = True
    needs_reason: bool = True
    is_destructive: bool = False
    arguments: Sequence[Argument] = ()
    offered: Callable[[User], bool] = field(default=lambda user: True)

    @property
    def page_name(self) -> str:
        """Name in the addresses of pages."""
        return self.page.name or self.name if self.page else ""

    @property
    def done(self) -> str:
        """Success message of a page."""
        return self.page.done if self.page else ""

    @property
    def batch(self) -> int:
        """Limit of objects changed in one transaction."""
        return self.bulk.batch if self.bulk else BATCH

    @property
    def is_grave(self) -> bool:
        """Whether the button is red."""
        return self.is_destructive or bool(self.page and self.page.is_grave)

    def obstacle(self) -> Expression:
        """SQL expression of the first obstacle of an object's row; empty without one."""
        whens = [When(condition, then=words) for condition, words in self.obstacles]
        return Case(*whens, default=Value(""), output_field=CharField())

    def fits(self, row: Model) -> bool:
        """Whether a row has no obstacle, checked in memory without a query."""
        return not any(holds(condition, row) for condition, _ in self.obstacles)

    def check(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Checked arguments with defaults. Raises InvalidInput."""
        known = {argument.name: argument for argument in self.arguments}
        unknown = sorted(set(given) - set(known))
        if unknown:
            names = ", ".join(known) or "it takes none"
            raise InvalidInput.of(f"is no argument of {self.name}; {names}", field=unknown[0])
        return {name: each.check(given.get(name)) for name, each in known.items()}

    def for_service(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Keyword arguments of the service from checked arguments."""
        return {
            each.key: each.for_service(given.get(each.name, each.default))
            for each in self.arguments
        }

    def act(self, which: Any, order: Order) -> Any:
        """Result of the service for one object. Raises the service's exceptions."""
        assert self.one is not None
        return self.one(which, order)

    def act_on_many(self, ids: Sequence[int], order: Order) -> Mapping[int, str]:
        """Messages by changed object after a call for many objects."""
        assert self.bulk is not None
        return self.bulk.call(ids, order)
