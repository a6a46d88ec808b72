"""Filter of the shift log: by person, subject, step, text, ticket and time.

Also the filters by which lists of subjects choose what is acknowledged, and assigned to whom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.db.models import Q, QuerySet

from portal.lists.base_filter import ListFilter, within_ids
from portal.lists.filter_fields import (
    MAX_ID,
    Chosen,
    ChosenField,
    Described,
    Moments,
    Numbers,
    Owners,
    OwnersField,
    Texts,
    Words,
    YesNo,
    _Chosen,
    users_of,
)
from portal.lists.sorting import Sorting, newest
from wms.remarks.models import Remark
from wms.remarks.selectors import acknowledged, assigned
from wms.remarks.states import RemarkEvent, SubjectKind
from wms.remarks.subjects import SUBJECTS


@dataclass(frozen=True, slots=True)
class NamedSubject:
    """Subject as addresses name it; a site by its name, others by their numbers."""

    kind: str
    key: str

    def condition(self) -> Q:
        """True for the remarks about it."""
        column = "subject_name" if SUBJECTS[self.kind].handle == "name" else "subject_id"
        return Q(subject_kind=self.kind, **{column: self.key})


class SubjectsField(ChosenField):
    """Subjects of remarks, as KIND:KEY."""

    def parsed(self, text: str) -> NamedSubject:
        """The kind and the key. Raises ValidationError."""
        kind, _, key = text.partition(":")
        is_number = key.isascii() and key.isdigit() and len(key) < 20 and int(key) <= MAX_ID
        if kind not in SUBJECTS or not key or (SUBJECTS[kind].handle == "pk" and not is_number):
            kinds = ", ".join(SUBJECTS)
            raise forms.ValidationError(f"Give KIND:KEY, such as dag:12 or site:UW, of {kinds}.")
        return NamedSubject(kind, key)


class Subjects(_Chosen):
    """Remarks about any of some subjects."""

    field_class = SubjectsField
    hint = "KIND:KEY, such as dag:12 or site:UW; several with commas; ! before one: not."

    def condition(self, values: Sequence[NamedSubject]) -> Q:
        """True for remarks about any of them."""
        whole = Q()
        for each in values:
            whole |= each.condition()
        return whole


class RemarkFilter(ListFilter):
    """Entries of the shift log by who wrote what about which subject, and when."""

    by_age = frozenset({"author", "created"})

    text = Texts(label="Text contains")
    event = Words(choices=RemarkEvent.choices, label="What")
    kind = Words(field_name="subject_kind", choices=SubjectKind.choices, label="Kind of subject")
    subject = Subjects(label="Subject")
    author = Owners(field_name="author_id", label="Author")
    person = Owners(field_name="person_id", label="Assigned to")
    ticket = Texts(label="Ticket contains")
    created = Moments(field_name="created_at", label="When")
    id = Numbers(smallest=1, label="Number")
    sort = Sorting(newest("When", "when"))

    class Meta:
        model = Remark
        fields: Sequence[str] = ()

    def hinted(self, queryset: QuerySet[Remark]) -> QuerySet[Remark]:
        """Entries of a stretch of time have ids in a range: nothing newer or older is passed by."""
        made: Chosen | None = self.form.cleaned_data["created"] if self.is_bound else None
        if not made:
            return queryset
        return within_ids(queryset, Remark.objects.all(), made.included[0], self.now)


class Acknowledged(YesNo):
    """Subjects whose acknowledgement holds, or those that nobody has acknowledged."""

    def __init__(self, kind: SubjectKind) -> None:
        super().__init__(label="Acknowledged")
        self.kind = kind

    def filter(self, queryset: QuerySet[Any], value: bool | None) -> QuerySet[Any]:
        """Rows that are, or are not."""
        if value is None:
            return queryset
        holds = acknowledged(self.kind, now=self.parent.now)
        return queryset.filter(holds) if value else queryset.filter(~holds)


class Assigned(Described):
    """Subjects that are assigned to any of some users."""

    field_class = OwnersField
    hint = Owners.hint

    def __init__(self, kind: SubjectKind) -> None:
        super().__init__(label="Assigned to")
        self.kind = kind

    def filter(self, queryset: QuerySet[Any], value: Chosen | None) -> QuerySet[Any]:
        """Rows that are assigned to any of the included users, and to none of the excluded."""
        users = users_of(value, self.parent.asking) or Chosen()
        if users.included:
            queryset = queryset.filter(assigned(self.kind, users.included))
        if users.excluded:
            queryset = queryset.filter(~assigned(self.kind, users.excluded))
        return queryset
