"""Arguments of actions besides the reason: type, range, check, and how a page asks for them.

Also the order to carry out an action: actor, reason, arguments, and the state that was seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """Kind of value of an argument; lists, commands and programs in bulk give the first three."""

    YES_NO = "yes_no"
    WHOLE = "whole"
    NAMES = "names"
    TEXT = "text"
    CHOICE = "choice"
    TEXTS_BY_NAME = "texts_by_name"
    NUMBERS_BY_NAME = "numbers_by_name"
    OPTIONS_BY_NAME = "options_by_name"


@dataclass(frozen=True, slots=True)
class Prompt:
    """Words by which the page of one object asks for an argument.

    `{default}` in the help is the meaning of an empty field. `short` names the argument in an
    error. The last three are errors of a number that does not fit.
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

    People give it by its `name`. The service and programs call it `parameter`, if that is another
    name, and one of it is `factor` of theirs. `least` and `most` bound a number, or how many names
    there are; `most_characters` a text. `in_api` is its description for programs.
    """

    name: str
    label: str
    type: ArgumentType
    default: Any = None
    help: str = ""
    least: int | None = 0
    most: int | None = 2**31 - 1
    parameter: str = ""
    factor: int = 1
    on_page: Prompt | None = None
    in_api: str = ""
    is_required: bool = False
    choices: Sequence[tuple[str, str]] = ()
    most_characters: int = 1000
    #: A text of lines, as it is sent: blanks at its ends are part of it.
    keeps_blanks: bool = False

    @property
    def key(self) -> str:
        """Name in the service and the API."""
        return self.parameter or self.name

    def check(self, value: Any) -> bool | int | list[str] | None:
        """The value of an argument in bulk, or the default for none. Raises InvalidInput."""
        if value is None:
            default: bool | int | list[str] | None = self.default
            return default
        if self.type == ArgumentType.NAMES:
            return self._checked_names(value)
        if self.type == ArgumentType.YES_NO:
            if not isinstance(value, bool):
                raise InvalidInput.of("must be true or false", field=self.name)
            return value
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        least = value if self.least is None else self.least
        most = value if self.most is None else self.most
        if not is_whole or not least <= value <= most:
            message = f"must be a whole number from {self.least} to {self.most}"
            raise InvalidInput.of(message, field=self.name)
        return int(value)

    def _checked_names(self, value: Any) -> list[str]:
        is_list = isinstance(value, list) and len(value) <= (self.most or 0)
        if not is_list or not all(
            isinstance(each, str) and len(each) <= self.most_characters for each in value
        ):
            message = f"must be a list of at most {self.most} names"
            raise InvalidInput.of(message, field=self.name)
        return list(value)

    def for_service(self, value: Any) -> Any:
        """A value that people gave, as the service takes it."""
        return value if value is None or self.factor == 1 else value * self.factor
