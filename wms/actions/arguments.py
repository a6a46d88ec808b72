"""What actions take beside a reason, and who carries them out how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from wms.core.actors import Actor
from wms.core.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Order:
    """By whom, why and how an action is carried out; `arguments` are those of the service.

    `seen` is the state in which the actor saw the one object, where a form tells it.
    """

    actor: Actor
    reason: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    seen: str = ""


class ArgumentType(StrEnum):
    """How a value is asked for."""

    YES_NO = "yes_no"
    WHOLE = "whole"


@dataclass(frozen=True, slots=True)
class Asked:
    """How the page of one object asks for an argument; `{default}` in the help is what none means.

    `short` names it in an error. The last three are told of a number that does not fit.
    """

    label: str
    help: str = ""
    short: str = ""
    no_number: str = ""
    too_small: str = ""
    too_large: str = ""


@dataclass(frozen=True, slots=True)
class Argument:
    """A value that an action takes beside its reason; `default` where none is given.

    People give it by its `name`. The service and programs call it `parameter`, if that is another
    name, and one of it is `factor` of theirs. `in_api` is told to who writes programs.
    """

    name: str
    label: str
    type: ArgumentType
    default: bool | int | None
    help: str = ""
    least: int = 0
    most: int = 2**31 - 1
    parameter: str = ""
    factor: int = 1
    on_page: Asked | None = None
    in_api: str = ""

    @property
    def key(self) -> str:
        """Its name in the service and the API."""
        return self.parameter or self.name

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

    def for_service(self, value: bool | int | None) -> bool | int | None:
        """A value that people gave, as the service takes it."""
        return value if value is None or self.factor == 1 else value * self.factor
