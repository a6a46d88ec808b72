"""Action on objects of a kind, such as hold or kill: the class that declares it for all faces.

A face (page, API, command, bulk operation) takes from it name, label, question, arguments and the
message when it is done; where an action says nothing for a face, that does not offer it. The action
checks arguments and obstacles, and calls the service, which is in the app of the objects.
`wms.actions.registry` lists all of them.
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

#: Acts on one object, named as its kind names it; the result is the service's.
CallOne = Callable[[Any, Order], Any]
#: Acts on objects; the result has a note, perhaps empty, for each one that was changed. A refusal
#: that it raises is about one of them.
Call = Callable[[Sequence[int], Order], Mapping[int, str]]


@dataclass(frozen=True, slots=True)
class OnPage:
    """Words by which the page of one object offers an action: question, and message once done.

    `name` is the name in addresses, if it differs. `is_grave` makes the button red although the
    action can be undone. `labels` are labels by state, where they differ. `arguments` are those
    that pages ask for beside the action's own.
    """

    explanation: str
    done: str
    name: str = ""
    is_grave: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    arguments: Sequence[Argument] = ()


@dataclass(frozen=True, slots=True)
class InApi:
    """Documentation of an action on one object in the API; `refused` ends `it cannot be ...`.

    `path` ends its address, if that is not its name. `body` describes what is sent, where it has
    arguments, and `body_name` names that in the schema; `arguments` are those that only programs
    give, beside the action's own. What a pilot does `is_later` than the answer. One that `makes`
    something has requests with idempotency keys.
    """

    summary: str
    description: str
    refused: str = ""
    body: str = ""
    is_later: bool = False
    makes: bool = False
    path: str = ""
    body_name: str = ""
    arguments: Sequence[Argument] = ()


@dataclass(frozen=True, slots=True)
class InShell:
    """Words by which a command offers an action; `message` formats the result of the service."""

    help: str
    message: str


@dataclass(frozen=True, slots=True)
class InBulk:
    """Bulk action of lists, on many objects; one transaction changes `batch` of them."""

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
    def api_path(self) -> str:
        """End of its address in the API."""
        return self.api.path or self.name if self.api else ""

    @property
    def page_name(self) -> str:
        """Name of the action in the addresses of pages."""
        return self.page.name or self.name if self.page else ""

    @property
    def page_arguments(self) -> Sequence[Argument]:
        """Arguments that the page of one object asks for."""
        return (*self.arguments, *(self.page.arguments if self.page else ()))

    @property
    def done(self) -> str:
        """Message of a page once the action is carried out."""
        return self.page.done if self.page else ""

    @property
    def batch(self) -> int:
        """Number of objects that are changed in one transaction."""
        return self.bulk.batch if self.bulk else BATCH

    @property
    def is_grave(self) -> bool:
        """Whether the button of the action warns."""
        return self.is_destructive or bool(self.page and self.page.is_grave)

    def obstacle(self) -> Expression:
        """Expression on a row: the reason why it cannot be acted on, or an empty text."""
        whens = [When(condition, then=words) for condition, words in self.obstacles]
        return Case(*whens, default=Value(""), output_field=CharField())

    def is_possible(self, row: Model) -> bool:
        """True when nothing is in the way at a row as it was read. No query."""
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
        """Checked arguments as keyword arguments of the service, further ones of pages too."""
        asked = [*self.arguments, *(each for each in self.page_arguments if each.name in given)]
        return {each.key: each.for_service(given.get(each.name, each.default)) for each in asked}

    def act(self, which: Any, order: Order) -> Any:
        """Act on one object and return the result of the service. Raises its errors."""
        assert self.one is not None
        return self.one(which, order)

    def act_on_many(self, ids: Sequence[int], order: Order) -> Mapping[int, str]:
        """Act on objects and return a note for each one that was changed."""
        assert self.bulk is not None
        return self.bulk.call(ids, order)
