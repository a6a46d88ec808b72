"""Arguments of actions besides the reason, and the order with which an action is called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from wms.core.actors import Actor
from wms.core.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Order:
    """Actor, reason and service arguments of a call of an action.

    `seen` is the object's state when the form was shown, if the form has it.
    """

    actor: Actor
    reason: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    seen: str = ""


class ArgumentType(StrEnum):
    """Type of an argument's value, which decides its form field."""

    YES_NO = "yes_no"
    WHOLE = "whole"


@dataclass(frozen=True, slots=True)
class FormField:
    """Form field of an argument on the page of one object; the help may contain `{default}`.

    `short` is the name in error messages. The last three are messages for invalid numbers.
    """

    label: str
    help: str = ""
    short: str = ""
    no_number: str = ""
    too_small: str = ""
    too_large: str = ""


@dataclass(frozen=True, slots=True)
class Argument:
    """Argument of an action besides its reason.

    Users give it by its `name`. The service and the API call it `parameter`, if that differs, in
    units `factor` times smaller. `in_api` is the description in the API's documentation.
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
    on_page: FormField | None = None
    in_api: str = ""

    @property
    def key(self) -> str:
        """Name in the service and the API."""
        return self.parameter or self.name

    def check(self, value: Any) -> bool | int | None:
        """Checked value, or the default for None. Raises InvalidInput."""
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
        """Value in the unit of the service."""
        return value if value is None or self.factor == 1 else value * self.factor
