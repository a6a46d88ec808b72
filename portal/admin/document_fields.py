"""Generator of docs/reference/fields.md, the reference of the administration's form fields.

It is written from the labels and help texts of the forms.
"""

from __future__ import annotations

from collections.abc import Iterator

from django import forms
from django.utils.text import capfirst

from portal.admin.accounting import GroupForm, LimitForm, QuotaForm, SubmitterForm
from portal.admin.checks import NodeCheckForm
from portal.admin.credentials import CredentialForm
from portal.admin.examples import EXAMPLES
from portal.admin.factories import RemoteFactoryForm, RemoteFrontendForm
from portal.admin.forms import CheckedForm
from portal.admin.frontends import FrontendEntryForm, FrontendForm
from portal.admin.matchmaking import MatchmakingPolicyForm
from portal.admin.pilot_limits import PilotLimitForm
from portal.admin.shared_limits import SharedLimitForm
from portal.admin.sites import DowntimeForm, QueueForm, SiteForm
from portal.admin.storages import StorageForm
from portal.admin.task_queues import RunningLimitForm, TaskQueuePolicyForm

FORMS: tuple[type[forms.ModelForm], ...] = (
    SiteForm, QueueForm, DowntimeForm, RunningLimitForm, PilotLimitForm, SharedLimitForm,
    FrontendForm, FrontendEntryForm, CredentialForm, RemoteFactoryForm, RemoteFrontendForm,
    GroupForm, SubmitterForm, QuotaForm, LimitForm, MatchmakingPolicyForm, TaskQueuePolicyForm,
    NodeCheckForm, StorageForm,
)  # fmt: skip
#: What every form has besides the fields of its object.
_COMMON = {str(field.help_text) for field in CheckedForm.base_fields.values()}

_HEAD = """\
# Fields of the administration

What the forms of the administration ask for, in their own words; the names are those of the API, of
[sites as YAML](sites-yaml.md) and of the audit trail. For expressions see
[matchmaking](../matchmaking.md) and the portal's help page.

A test fails when this page and the forms differ; `UPDATE_FIELDS=1 make test
ARGS=tests/portal/admin/test_document_fields.py` writes it anew.
"""


def render() -> str:
    """Text of the document."""
    return "\n".join([_HEAD, *(_section(form) for form in FORMS)])


def fields_of(form: type[forms.ModelForm]) -> Iterator[tuple[str, str, str]]:
    """Name, label and help of each field."""
    for name, field in form.base_fields.items():
        if name not in CheckedForm.base_fields or str(field.help_text) not in _COMMON:
            yield name, capfirst(str(field.label or name)), str(field.help_text)


def _section(form: type[forms.ModelForm]) -> str:
    title = capfirst(str(form._meta.model._meta.verbose_name))
    rows = [f"| `{name}` | {label} | {_field_line(name, help_text)} |"
            for name, label, help_text in fields_of(form)]  # fmt: skip
    return "\n".join([f"## {title}", "", "| name | field | meaning |", "|---|---|---|", *rows, ""])


def _field_line(name: str, help_text: str) -> str:
    examples = "; ".join(f"`{each.text}` ({each.meaning})" for each in EXAMPLES.get(name, ()))
    text = f"{help_text} For example: {examples}." if examples else help_text
    return text.replace("|", "\\|")
