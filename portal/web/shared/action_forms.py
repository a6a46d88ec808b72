"""Action forms on the page of an object: which actions are offered, their fields, refusals."""

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


class NamesField(forms.CharField):
    """Names with commas between them: None where nothing is given, and none of them for a dash."""

    def clean(self, value: Any) -> Any:
        """The names, or None."""
        text = super().clean(value)
        if not text:
            return None
        return [] if text == "-" else [part.strip() for part in text.split(",") if part.strip()]


class ActionForm(ReasonForm):
    """Form of an action: the reason and the action's arguments."""

    def __init__(self, action: Action, data: QueryDict | None = None) -> None:
        super().__init__(data)
        self.action = action
        asked = action.page_arguments
        self.fields |= {argument.name: _form_field(argument) for argument in asked}

    def order(self, actor: Actor, *, seen: str = "") -> Order:
        """Order for the service. Raises InvalidInput for an invalid argument."""
        reason = self.options()["reason"]
        for argument in self.action.page_arguments:
            if argument.name in self.errors:
                fault = str(self.errors[argument.name][0])
                raise InvalidInput([Finding(fault, field=_asked(argument).short)])
        return Order(actor, reason, self.action.for_service(self.cleaned_data), seen)


def _asked(argument: Argument) -> Prompt:
    return argument.on_page or Prompt(argument.label, argument.help, argument.label)


def _form_field(argument: Argument) -> forms.Field:
    if argument.type == ArgumentType.YES_NO:
        return forms.BooleanField(required=False)
    if argument.type == ArgumentType.NAMES:
        return NamesField(required=False, max_length=argument.most_characters)
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
    """Field of an action's form; `value` is the refused input."""

    name: str
    label: str
    help: str
    is_yes_no: bool
    is_number: bool
    is_optional: bool
    value: Any
    fault: str

    @property
    def id(self) -> str:
        """Id of the field in the page."""
        return self.name.replace("_", "-")


@dataclass(frozen=True, slots=True)
class Refused:
    """A refused action: what was sent, and the reason of the refusal."""

    form: ActionForm
    error: PilotageError

    @property
    def name(self) -> str:
        """Name of the action in addresses."""
        return self.form.action.page_name


@dataclass(frozen=True, slots=True)
class Offer:
    """Form of an action; if it was refused, open and with the typed reason."""

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
    """A form for each action that is possible in this state, posted to the address named after it.

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
                [_offered(each, sent, defaults or {}) for each in action.page_arguments],
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
        is_number=argument.type == ArgumentType.WHOLE,
        is_optional=argument.default is None,
        value="" if value is None else value,
        fault=str(faults[0]) if faults else "",
    )
