"""Form of an action on nodes: the reason, and the arguments that the action declares."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import QueryDict

from portal.web.dags.run_forms import faults_of
from portal.web.shared.forms import ReasonForm
from wms.actions.actions import Action
from wms.actions.arguments import Argument, ArgumentType
from wms.core.errors import Finding, InvalidInput

_MAX_CHARACTERS = 200_000


class NodeActionForm(ReasonForm):
    """Reason and arguments of an action on nodes, whose names the page has; empty is no change."""

    def __init__(self, action: Action, data: QueryDict | None = None) -> None:
        super().__init__(data)
        asked = [each for each in action.arguments if each.type != ArgumentType.NAMES]
        self.fields |= {argument.name: _form_field(argument) for argument in asked}
        self._arguments = asked

    def options(self) -> dict[str, Any]:
        """Arguments of the service, with the reason. Raises InvalidInput with every fault."""
        if not self._arguments:
            return super().options()
        if not self.is_valid():
            raise InvalidInput(faults_of(self))
        given = {each.name: self._value(each) for each in self._arguments}
        if all(value in (None, {}) for value in given.values()):
            raise InvalidInput.of("Nothing is to be changed: fill in what should be different.")
        return {**super().options(), **given}

    def _value(self, argument: Argument) -> Any:
        value = self.cleaned_data[argument.name]
        if argument.type == ArgumentType.TEXTS_BY_NAME:
            return _texts_by_name(value)
        return value


def _form_field(argument: Argument) -> forms.Field:
    if argument.type == ArgumentType.YES_NO:
        return forms.BooleanField(required=False)
    if argument.type == ArgumentType.WHOLE:
        return forms.IntegerField(required=False, min_value=argument.least, max_value=argument.most)
    return forms.CharField(required=False, max_length=_MAX_CHARACTERS)


def _texts_by_name(text: str) -> dict[str, str]:
    """The lines `name = value`. Raises InvalidInput for others."""
    found, findings = {}, []
    for line, written in enumerate(text.splitlines(), start=1):
        name, sign, value = written.partition("=")
        if not written.strip():
            continue
        if not sign or not name.strip():
            findings.append(Finding("must be name = value", field="VARS", line=line))
        found[name.strip()] = value.strip()
    if findings:
        raise InvalidInput(findings)
    return found
