"""Base form of the administration: validation by the domain, a reason, refusal of stale edits.

Also form fields of dates and times, and of JSON that the database can store.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import Any

from django import forms
from django.contrib.admin.widgets import AdminSplitDateTime
from django.db.models import Model, QuerySet
from django.forms.fields import InvalidJSONInput

from portal.admin.audit_targets import changes_of_row
from portal.admin.examples import with_examples
from portal.middleware.storable import faults_of_json
from wms.core.database.saving import lock_stored, marks_of
from wms.core.errors import Finding, InvalidInput, PilotageError

#: Of a value that is shown in a sentence.
_LONGEST_SHOWN = 300
#: So much of what is the same is shown before that which is not.
_BEFORE = 40


def date_and_time(label: str) -> AdminSplitDateTime:
    """Date and time fields with a label for each, for screen readers."""
    widget = AdminSplitDateTime()
    for part, name in zip(widget.widgets, ("date", "time"), strict=True):
        part.attrs["aria-label"] = f"{label}: {name}"
    return widget


class StorableJsonField(forms.JSONField):
    """JSON that the database can store, typed in by a person."""

    def to_python(self, value: Any) -> Any:
        """Return what was typed. Raises ValidationError with each fault."""
        try:
            found = super().to_python(value)
        except RecursionError:
            raise forms.ValidationError("is nested too deeply") from None
        except ValueError:
            # The one fault of JSON that is no JSONDecodeError: more digits than Python reads.
            raise forms.ValidationError("has a number beyond what 64 bits hold") from None
        if faults := faults_of_json(found):
            raise forms.ValidationError([str(fault) for fault in faults])
        return found

    def bound_data(self, data: Any, initial: Any) -> Any:
        """Return what is shown again: as it was typed, where it is none."""
        try:
            return super().bound_data(data, initial)
        except (RecursionError, ValueError):
            return InvalidJSONInput(data)


class CheckedForm(forms.ModelForm):
    """Form validated by the domain, with the findings at their fields.

    It carries a hash of each value that it showed. When somebody else has stored another value
    meanwhile, both values are shown and nothing is stored.
    """

    check: Callable[[Model], None]
    #: What the form is to show instead of what is stored.
    prefilled: Mapping[str, Any] = {}

    seen = forms.CharField(required=False, widget=forms.HiddenInput)
    reason = forms.CharField(
        required=False,
        max_length=2000,
        widget=forms.TextInput(attrs={"size": 80}),
        help_text="Why this is changed: it stands in the history beside what was changed.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        initial = {**self.prefilled, **(kwargs.pop("initial", None) or {})}
        super().__init__(*args, initial=initial, **kwargs)
        for name, field in self.fields.items():
            field.help_text = with_examples(name, field.help_text)
        if self.instance.pk is not None:
            self.initial["seen"] = self._marks(self.instance)

    @property
    def said_reason(self) -> str:
        """Reason of the change, as typed in the form."""
        return str(self.cleaned_data.get("reason", ""))

    def _stored_names(self) -> list[str]:
        fields = {field.name for field in self._meta.model._meta.get_fields()}
        return [name for name in self.fields if name in fields]

    def _marks(self, row: Model) -> str:
        return json.dumps(marks_of(row, self._stored_names()))

    def _post_clean(self) -> None:
        super()._post_clean()
        if self.instance.pk is not None:
            self._show_conflicts()
        if self.errors:
            return
        try:
            type(self).check(self.instance)
        except InvalidInput as error:
            for finding in error.findings:
                known = finding.field if finding.field in self.fields else None
                self.add_error(known, f"{_place_of(finding)}{finding.message}")
        except PilotageError as error:
            self.add_error(None, str(error))

    def _show_conflicts(self) -> None:
        """Show what others have stored since the form was made; from now on that is seen."""
        seen = _read_marks(self.data.get(self.add_prefix("seen"), ""))
        names = [name for name in self._stored_names() if name in seen]
        if not names:
            return
        stored = lock_stored(self.instance)
        now = marks_of(stored, names)
        # Who meanwhile stored the same as is typed here is of one mind with it.
        conflicts = [
            name
            for name in names
            if now[name] != seen[name]
            and name in self.cleaned_data
            and _comparable_text(self.cleaned_data[name]) != _stored_text(stored, name)
        ]
        if not conflicts:
            return
        self._add_conflict_error(stored, conflicts)
        # Who has read this and saves again wants it so.
        self.data = self.data.copy()
        self.data[self.add_prefix("seen")] = self._marks(stored)

    def _add_conflict_error(self, stored: Model, conflicts: list[str]) -> None:
        last = changes_of_row(stored).filter(facts__has_any_keys=_keys(stored, conflicts)).first()
        who = "somebody" if last is None else last.actor
        when = "" if last is None else f" at {last.created_at:%Y-%m-%d %H:%M} UTC"
        self.add_error(
            None,
            f"{who} changed this{when}, after you opened the form. Nothing was stored: compare "
            "both values at the marked fields, and save again to put yours in place of theirs.",
        )
        for name in conflicts:
            theirs, yours = _shown(
                _stored_text(stored, name), _comparable_text(self.cleaned_data.get(name))
            )
            self.add_error(name, f"Stored meanwhile: {theirs} - yours: {yours}")


def _keys(row: Model, names: list[str]) -> list[str]:
    """Names of fields in the audit trail."""
    fields = [row._meta.get_field(name) for name in names]
    return [str(getattr(field, "attname", field.name)) for field in fields]


def _place_of(finding: Finding) -> str:
    if finding.line is None:
        return ""
    column = "" if finding.column is None else f", column {finding.column}"
    return f"line {finding.line}{column}: "


def _read_marks(text: str) -> dict[str, str]:
    try:
        marks = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return marks if isinstance(marks, dict) else {}


def _stored_text(row: Model, name: str) -> str:
    field = row._meta.get_field(name)
    value = getattr(row, name)
    return _comparable_text(value.all() if field.many_to_many else value)


def _comparable_text(value: Any) -> str:
    """Value as text for comparison; values that look the same to people are equal."""
    if isinstance(value, QuerySet):
        value = ", ".join(sorted(str(each) for each in value))
    if isinstance(value, (dict, list)):
        value = json.dumps(value, sort_keys=True)
    text = "nothing" if value in (None, "") else str(value)
    return "\n".join(text.splitlines())


def _shown(theirs: str, yours: str) -> list[str]:
    """Two texts in short; of long ones the part where they differ."""
    same = sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(theirs, yours, strict=False))
    )
    is_short = max(len(theirs), len(yours)) <= _LONGEST_SHOWN
    start = 0 if is_short else max(0, same - _BEFORE)
    return [_cut(text, start) for text in (theirs, yours)]


def _cut(text: str, start: int) -> str:
    part = text[start : start + _LONGEST_SHOWN]
    return f"{'...' if start else ''}{part}{'...' if start + len(part) < len(text) else ''}"
