"""History page of a configured object: its changes, filtered and in pages.

Also form values from before a change, with which the object's form is prefilled to revert it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django import forms
from django.contrib.admin import ModelAdmin
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.text import capfirst

from portal.admin.audit_targets import changes_of_row
from wms.core.audit_changes import Difference, differences, further_facts
from wms.core.models import AuditEntry, User

_SHOWN = 50


class HistoryForm(forms.Form):
    """Filter of the changes that are shown."""

    actor = forms.CharField(required=False, max_length=160, label="By")
    field = forms.ChoiceField(required=False, label="Field")
    since = forms.DateField(required=False, label="From", widget=forms.DateInput({"type": "date"}))
    until = forms.DateField(required=False, label="To", widget=forms.DateInput({"type": "date"}))
    before = forms.IntegerField(required=False, min_value=1, widget=forms.HiddenInput)

    def __init__(self, row: Model, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["field"].choices = [("", "any"), *sorted(_labels(row).items())]

    def clean(self) -> dict[str, Any]:
        """Refuse a time that ends before it begins."""
        values: dict[str, Any] = super().clean() or {}
        since, until = values.get("since"), values.get("until")
        if until and until == date.max:
            self.add_error("until", "is too far away")
        elif since and until and until < since:
            self.add_error("until", "must not be before the first day")
        return values

    def chosen(self, entries: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
        """Entries that pass the filter."""
        values = self.cleaned_data
        if values["actor"]:
            entries = entries.filter(actor=values["actor"])
        if values["field"]:
            entries = entries.filter(facts__has_key=values["field"])
        if values["since"]:
            entries = entries.filter(created_at__gte=_midnight(values["since"]))
        if values["until"]:
            entries = entries.filter(created_at__lt=_midnight(values["until"]) + timedelta(days=1))
        if values["before"]:
            entries = entries.filter(pk__lt=values["before"])
        return entries


@dataclass(frozen=True, slots=True)
class ChangedField:
    """A field of a change, with its values as text."""

    label: str
    difference: Difference
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the history; `revert_address` is empty where nothing can be reverted."""

    entry: AuditEntry
    lines: list[ChangedField]
    facts: list[tuple[str, str]]
    revert_address: str

    @property
    def is_new(self) -> bool:
        """True when the object was made: there was nothing before."""
        return self.entry.action.startswith("create ")


def history_page(model_admin: ModelAdmin, request: HttpRequest, row: Model) -> HttpResponse:
    """Page with the changes of a row, latest first, in pages."""
    form = HistoryForm(row, request.GET or {})
    found = list(form.chosen(changes_of_row(row))[: _SHOWN + 1]) if form.is_valid() else []
    entries = found[:_SHOWN]
    older = request.GET.copy()
    if len(found) > _SHOWN:
        older["before"] = str(entries[-1].pk)
    may_change = model_admin.has_change_permission(request, row)
    context = {
        **model_admin.admin_site.each_context(request),
        "title": f"History of {row}",
        "opts": model_admin.opts,
        "object": row,
        "form": form,
        "changes": _changes(row, entries, may_change=may_change),
        "older": f"?{older.urlencode()}" if len(found) > _SHOWN else "",
        "is_filtered": bool(request.GET),
    }
    return TemplateResponse(request, "admin/object_history.html", context)


def _changes(row: Model, entries: Iterable[AuditEntry], *, may_change: bool) -> list[Change]:
    entries = list(entries)
    labels, names = _labels(row), _names(row, entries)
    address = _change_address(row)
    changes = []
    for entry in entries:
        lines = [
            ChangedField(
                labels.get(each.name, each.name),
                each,
                _shown(each.old, names.get(each.name)),
                _shown(each.new, names.get(each.name)),
            )
            for each in differences(entry.facts)
        ]
        facts = [(name, _shown(value)) for name, value in further_facts(entry.facts).items()]
        can_revert = may_change and bool(lines) and entry.action.startswith("change ")
        changes.append(
            Change(entry, lines, facts, f"{address}?revert={entry.pk}" if can_revert else "")
        )
    return changes


def prefilled_by(chosen: str, row: Model, form: Any) -> tuple[dict[str, Any], str]:
    """Field values before a change, and a message about it. Raises Http404."""
    is_number = chosen.isascii() and chosen.isdigit()
    entry = changes_of_row(row).filter(pk=chosen).first() if is_number else None
    if entry is None:
        raise Http404("There is no such change of this object.")
    fields = {
        str(getattr(field, "attname", field.name)): field.name for field in row._meta.get_fields()
    }
    values = {
        fields[each.name]: _usable(row, fields[each.name], each.old)
        for each in differences(entry.facts)
        if fields.get(each.name) in form.base_fields
    }
    message = (
        f"The form shows what was before the change by {entry.actor} at "
        f"{entry.created_at:%Y-%m-%d %H:%M} UTC: {', '.join(values) or 'nothing that can be set'}. "
        "Nothing is changed until you save it."
    )
    return values, message


def _usable(row: Model, name: str, value: Any) -> Any:
    """Recorded value as a form takes it: users in a list are recorded by name."""
    field = row._meta.get_field(name)
    if field.many_to_many and field.related_model is User:
        return list(User.objects.filter(username__in=value or ()).values_list("pk", flat=True))
    return field.to_python(value) if hasattr(field, "to_python") else value


def _labels(row: Model) -> dict[str, str]:
    """Labels of fields by the names that the audit trail records."""
    fields = [*row._meta.concrete_fields, *row._meta.many_to_many]
    return {
        str(field.attname): capfirst(str(field.verbose_name))
        for field in fields
        if not getattr(field, "primary_key", False)
    }


def _names(row: Model, entries: Iterable[AuditEntry]) -> dict[str, dict[Any, str]]:
    """Current names of the objects in foreign keys; one query for each changed key."""
    names: dict[str, dict[Any, str]] = {}
    for field in row._meta.concrete_fields:
        if not field.is_relation:
            continue
        pairs = [entry.facts.get(field.attname) for entry in entries]
        ids = {each for pair in pairs if isinstance(pair, list) for each in pair if each}
        if ids and field.related_model is not None:
            found = field.related_model._default_manager.in_bulk(list(ids))
            names[field.attname] = {pk: str(each) for pk, each in found.items()}
    return names


#: A moment as facts keep it.
_MOMENT = re.compile(r"^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?(?:\+00:00|Z)$")


def _shown(value: Any, names: Mapping[Any, str] | None = None) -> str:
    if value in (None, "", [], {}):
        return "nothing"
    if names is not None:
        return names.get(value, f"number {value}, which is gone")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return _MOMENT.sub(r"\1 \2 UTC", str(value))


def _change_address(row: Model) -> str:
    meta = row._meta
    return reverse(f"admin:{meta.app_label}_{meta.model_name}_change", args=[row.pk])


def _midnight(day: Any) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
