"""The forms by which the pages of objects offer what can be done with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import QueryDict

from portal.web.shared.forms import ReasonForm
from wms.actions.actions import Action
from wms.actions.arguments import Argument, ArgumentType, Order, Prompt
from wms.core.actors import Actor
from wms.core.errors import Finding, InvalidInput, PilotageError


class ActionForm(ReasonForm):
    """What is asked before an action: why, and its arguments."""

    def __init__(self, action: Action, data: QueryDict | None = None) -> None:
        super().__init__(data)
        self.action = action
        self.fields |= {argument.name: _form_field(argument) for argument in action.arguments}

    def order(self, actor: Actor, *, seen: str = "") -> Order:
        """What is to be done. Raises InvalidInput for an argument that does not fit."""
        reason = self.options()["reason"]
        for argument in self.action.arguments:
            if argument.name in self.errors:
                fault = str(self.errors[argument.name][0])
                raise InvalidInput([Finding(fault, field=_asked(argument).short)])
        return Order(actor, reason, self.action.for_service(self.cleaned_data), seen)


def _asked(argument: Argument) -> Prompt:
    return argument.on_page or Prompt(argument.label, argument.help, argument.label)


def _form_field(argument: Argument) -> forms.Field:
    if argument.type == ArgumentType.YES_NO:
        return forms.BooleanField(required=False)
    asked = _asked(argument)
    faults = {
        "invalid": asked.no_number, "min_value": asked.too_small, "max_value": asked.too_large,
    }  # fmt: skip
    return forms.IntegerField(
        required=False,
        min_value=argument.least,
        max_value=argument.most,
        error_messages={name: told for name, told in faults.items() if told},
    )


@dataclass(frozen=True, slots=True)
class OfferedField:
    """An argument in the form of an action; `value` is what was typed, where it was refused."""

    name: str
    label: str
    help: str
    is_yes_no: bool
    is_optional: bool
    value: Any
    fault: str

    @property
    def id(self) -> str:
        """Its name in the page."""
        return self.name.replace("_", "-")


@dataclass(frozen=True, slots=True)
class Refused:
    """An action that was refused just now: what was sent, and why it is not done."""

    form: ActionForm
    error: PilotageError

    @property
    def name(self) -> str:
        """The action's name in addresses."""
        return self.form.action.page_name


@dataclass(frozen=True, slots=True)
class Offer:
    """The form of an action; open, and with the reason that was typed, if it was refused."""

    action: Action
    label: str
    address: str
    fields: list[OfferedField]
    reason: str = ""
    error: PilotageError | None = None


def offers_of(
    actions: Iterable[Action],
    state: str,
    address: Callable[[str], str],
    *,
    refused: Refused | None = None,
    defaults: Mapping[str, str] | None = None,
) -> list[Offer]:
    """A form for each action on an object in this state, sent to the address of its name.

    `defaults` tells what it means to leave a field empty.
    """
    found = []
    for action in actions:
        assert action.page is not None
        sent = refused if refused and refused.form.action is action else None
        found.append(
            Offer(
                action,
                action.page.labels.get(state, action.label),
                address(action.page_name),
                [_offered(each, sent, defaults or {}) for each in action.arguments],
                str(sent.form["reason"].value() or "") if sent else "",
                sent.error if sent else None,
            )
        )
    return found


def _offered(argument: Argument, sent: Refused | None, defaults: Mapping[str, str]) -> OfferedField:
    asked = _asked(argument)
    value = sent.form[argument.name].value() if sent else argument.default
    faults = sent.form.errors.get(argument.name, []) if sent else []
    return OfferedField(
        name=argument.name,
        label=asked.label,
        help=asked.help.format(default=defaults.get(argument.name, "")),
        is_yes_no=argument.type == ArgumentType.YES_NO,
        is_optional=argument.default is None,
        value="" if value is None else value,
        fault=str(faults[0]) if faults else "",
    )
