"""What can be acted on in bulk: the kinds of objects, and the actions on each.

An action is one call of a service of the object's own app. Why an object cannot be acted on is
written as conditions on its row, once: a preview counts by them, and who carries the action out
tells them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db.models import Case, CharField, Expression, F, Model, Q, QuerySet, Value, When
from django.db.models.functions import Concat

from wms.core.actors import Actor
from wms.core.errors import InvalidInput, NotFound
from wms.core.models import User

#: So many objects are changed in one transaction at the most.
BATCH = 500


@dataclass(frozen=True, slots=True)
class Order:
    """By whom, why and how an action is carried out."""

    actor: Actor
    reason: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


class ArgumentType(StrEnum):
    """How a value is asked for."""

    YES_NO = "yes_no"
    WHOLE = "whole"


@dataclass(frozen=True, slots=True)
class Argument:
    """A value that an action takes beside its reason; `default` where none is given."""

    name: str
    label: str
    type: ArgumentType
    default: bool | int | None
    help: str = ""
    least: int = 0
    most: int = 2**31 - 1

    def check(self, value: Any) -> bool | int | None:
        """The value, or the default for none. Raises InvalidInput."""
        if value is None:
            return self.default
        if self.type == ArgumentType.YES_NO:
            if not isinstance(value, bool):
                raise InvalidInput.of("must be true or false", field=self.name)
            return value
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if not is_whole or not self.least <= value <= self.most:
            message = f"must be a whole number from {self.least} to {self.most}"
            raise InvalidInput.of(message, field=self.name)
        return int(value)


#: Acts on objects, and returns what there is to tell of those that it changed; the others did not
#: fit. A refusal that it raises is about one of them.
Call = Callable[[Sequence[int], Order], Mapping[int, str]]
#: A condition on an object's row, and what is in the way when it is true.
Obstacle = tuple[Q, Expression]


@dataclass(frozen=True, slots=True)
class Action:
    """Something that can be done with many objects of a kind.

    `batch` is how many objects one transaction changes. A destructive one cannot be taken back.
    """

    name: str
    label: str
    explanation: str
    call: Call
    obstacles: Sequence[Obstacle]
    needs_reason: bool = True
    is_destructive: bool = False
    arguments: Sequence[Argument] = ()
    batch: int = BATCH

    def obstacle(self) -> Expression:
        """Why an object cannot be acted on, as an expression on its row; empty where it can."""
        whens = [When(condition, then=words) for condition, words in self.obstacles]
        return Case(*whens, default=Value(""), output_field=CharField())

    def check(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments, with defaults where none is given. Raises InvalidInput."""
        known = {argument.name: argument for argument in self.arguments}
        unknown = sorted(set(given) - set(known))
        if unknown:
            told = ", ".join(known) or "it takes none"
            raise InvalidInput.of(f"is no argument of {self.name}; {told}", field=unknown[0])
        return {name: each.check(given.get(name)) for name, each in known.items()}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of objects, named as its list.

    `made_before` are those that were there at an instant. `key` is the column by which permission
    is decided: `permitted` are those of its values that let the user act. `group` is counted beside
    the states in a preview. It is `offered` to whoever may act on any of them.
    """

    name: str
    noun: str
    nouns: str
    model: type[Model]
    made_before: Callable[[datetime], Q]
    key: str
    permitted: Callable[[User, Collection[Any]], Collection[Any]]
    refusal: str
    label: str
    group: str
    group_label: str
    effects: Callable[[QuerySet[Any]], Sequence[str]]
    actions: Mapping[str, Action]
    owner: str = ""
    offered: Callable[[User], bool] = field(default=lambda user: True)

    def find_action(self, name: str) -> Action:
        """The action of this name. Raises NotFound."""
        if name not in self.actions:
            known = ", ".join(self.actions)
            raise NotFound(f"One cannot {name!r} {self.nouns} in bulk; there are {known}.")
        return self.actions[name]

    def counted(self, count: int) -> str:
        """So many objects, in words."""
        return f"{count:,} {self.noun if count == 1 else self.nouns}"


def of_state(sources: Collection[str]) -> Obstacle:
    """In the way of what can be done in these states only."""
    return ~Q(state__in=sorted(sources)), Concat(Value("it is "), F("state"))


def when(condition: Q, words: str) -> Obstacle:
    """In the way where the condition is true."""
    return condition, Value(words)


def made_at(instant: datetime) -> Q:
    """What was made up to the instant, of things that know when they were made."""
    return Q(created_at__lte=instant)


def actions(*each: Action) -> dict[str, Action]:
    """Actions by name, in this order."""
    return {action.name: action for action in each}
