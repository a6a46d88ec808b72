"""Forms that steer nodes: rerun, retry, mark done or failed, change."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import QueryDict

from portal.web.dags.run_forms import faults_of
from portal.web.shared.forms import ReasonForm
from wms.core.errors import Finding, InvalidInput


class RerunForm(ReasonForm):
    """Form to rerun nodes: the reason, and whether their descendants run again."""

    with_descendants = forms.BooleanField(required=False)

    def options(self) -> dict[str, Any]:
        """Options for the service."""
        descendants = self.is_valid() and self.cleaned_data["with_descendants"]
        return {**super().options(), "with_descendants": descendants}


class ChangeForm(ReasonForm):
    """Form to change nodes that are not submitted yet; empty fields change nothing."""

    variables = forms.CharField(required=False, max_length=200_000)
    priority = forms.IntegerField(required=False, min_value=-(2**31), max_value=2**31 - 1)
    max_retries = forms.IntegerField(required=False, min_value=0, max_value=2**31 - 1)

    def options(self) -> dict[str, Any]:
        """Options for the service. Raises InvalidInput with every fault."""
        if not self.is_valid():
            raise InvalidInput(faults_of(self))
        given = self.cleaned_data
        variables = _variables(given["variables"])
        if not variables and given["priority"] is None and given["max_retries"] is None:
            raise InvalidInput.of("Nothing is to be changed: fill in what should be different.")
        return {
            **super().options(),
            "variables": variables,
            "priority": given["priority"],
            "max_retries": given["max_retries"],
        }


def _variables(text: str) -> dict[str, str]:
    """Variables of the lines `name = value`. Raises InvalidInput for other lines."""
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


#: Of actions that ask for more than a reason.
_FORMS: dict[str, type[ReasonForm]] = {"rerun": RerunForm, "change": ChangeForm}


def form_of(name: str, data: QueryDict | None = None) -> ReasonForm:
    """Form of the action with this name."""
    return _FORMS.get(name, ReasonForm)(data)
