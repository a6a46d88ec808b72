"""Toolbar above a list: search, filters, chips, saved filters, columns and exports.

It depends on the address and the user alone, so it is not refreshed with the rows. Also the filter
with which a list opens: the user's default, or the last one, kept in a cookie.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import Case, When
from django.http import HttpRequest, QueryDict
from django.urls import reverse

from portal.lists.base_filter import SORT, ListFilter
from portal.lists.columns import Column
from portal.lists.filter_fields import ChosenField, MomentsField, NumbersField, WordsField
from portal.lists.list_spec import ListSpec
from portal.lists.sorting import Order
from portal.personal.models import Preferences, SavedFilter
from portal.personal.policy import may_change
from portal.personal.selectors import visible_filters
from portal.web.lists.paging import NO_SAVED, SAVED
from portal.web.lists.sort_links import SortLink, choices_of
from portal.web.shared.stale_forms import version_of
from wms.core.errors import InvalidInput
from wms.core.models import Role, User
from wms.core.policy import has_role

_SAVED_SHOWN = 100
_MANY_CHOICES = 12
_LAST_USED = "last-filter"
_LAST_BYTES = 1500
_HINTS = {
    MomentsField: "24h, 2026-11-20 or A..B",
    NumbersField: "5, 5..9 or 5..",
    WordsField: "one, or a, b",
}


@dataclass(frozen=True, slots=True)
class Chip:
    """One value of a filter, with the links to the list without it and with its opposite."""

    label: str
    text: str
    is_not: bool
    without: str
    flipped: str


@dataclass(frozen=True, slots=True)
class Option:
    """A value that can be ticked."""

    value: str
    label: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Field:
    """Form field of a filter. `kept` are values sent along in hidden fields."""

    name: str
    label: str
    value: str
    kept: Sequence[str]
    options: Sequence[Option]
    fault: str
    hint: str


@dataclass(frozen=True, slots=True)
class SavedLine:
    """A saved filter in the menu."""

    saved: SavedFilter
    query: str
    is_current: bool
    is_own: bool
    is_default: bool
    may_change: bool

    @property
    def version(self) -> str:
        """Version of the filter's changeable fields, against stale forms."""
        return version_of(self.saved.name, self.saved.is_shared)


@dataclass(frozen=True, slots=True)
class ListBar:
    """Everything above the rows of a list."""

    kind: ListSpec
    search: Field
    fields: Sequence[Field]
    hidden: Sequence[tuple[str, str]]
    faults: Sequence[str]
    chips: Sequence[Chip]
    clear: str
    is_filtered: bool
    notes: Sequence[str]
    wider: Sequence[tuple[str, str]]
    sorts: Sequence[tuple[str, Sequence[SortLink]]]
    sorted_by: Order | None
    saved: Sequence[SavedLine]
    current: SavedLine | None
    may_share: bool
    last_used: str
    last_chips: Sequence[Chip]
    columns: Sequence[tuple[Column, bool]]
    has_own_columns: bool
    density: str
    exports: Sequence[tuple[str, str]]
    address: str
    parameters: Sequence[tuple[str, str]]

    @property
    def is_own(self) -> bool:
        """True when the address has something to save: filters, or an order."""
        return bool(self.parameters)

    @property
    def query(self) -> str:
        """Filters and order as a query string."""
        return urlencode(self.parameters)


def query_of(parameters: Mapping[str, Sequence[str]], **beside: Any) -> str:
    """Query string of these filters."""
    pairs = [(name, value) for name, values in parameters.items() for value in values]
    return "?" + urlencode([*pairs, *beside.items()])


def bar_of(
    request: HttpRequest, kind: ListSpec, list_filter: ListFilter, kept: Preferences
) -> ListBar:
    """Bar of a list. One query."""
    parameters, whole = list_filter.parameters(), _whole(list_filter)
    saved = _saved_lines(request, kind, kept, whole)
    order = {SORT: whole[SORT]} if SORT in whole else {}
    clear = query_of(order) if order else f"?{SAVED}={NO_SAVED}"
    fields = {name: _field(list_filter, name) for name in list_filter.form.fields}
    shown = [f for name, f in fields.items() if not list_filter.form.fields[name].widget.is_hidden]
    hidden = [name for name in fields if list_filter.form.fields[name].widget.is_hidden]
    names = kept.columns.get(kind.name, [])
    columns = kind.shown_columns(names, list_filter)
    is_fine = list_filter.is_bound and list_filter.is_valid()
    last = "" if whole else _last_used(request, kind)
    return ListBar(
        kind=kind,
        search=fields[kind.search],
        fields=[f for f in shown if f.name != kind.search],
        hidden=[(name, value) for name in hidden for value in _texts(list_filter, name)],
        faults=_faults(list_filter, hidden),
        chips=chips_of(list_filter, parameters, clear=clear, beside=order),
        clear=clear,
        is_filtered=bool(parameters),
        notes=list_filter.notes() if is_fine else [],
        wider=[(text, query_of({**way, **order})) for text, way in list_filter.wider()]
        if is_fine
        else [],
        sorts=choices_of(list_filter, request.GET),
        sorted_by=list_filter.order if list_filter.is_sorted else None,
        saved=saved,
        current=next((line for line in saved if line.is_current), None),
        may_share=has_role(request.user, Role.USER),
        last_used=last,
        last_chips=_chips_of_text(kind, last),
        columns=[(column, column in columns) for column in kind.columns],
        has_own_columns=bool(names),
        density=kept.density,
        exports=_exports(kind, request.GET, columns),
        address=request.get_full_path(),
        parameters=[(name, value) for name, values in whole.items() for value in values],
    )


def _whole(list_filter: ListFilter) -> dict[str, list[str]]:
    """Parts of the address that can be saved; with a fault only the filters as they are written."""
    return (
        list_filter.kept()
        if list_filter.is_bound and list_filter.is_valid()
        else list_filter.parameters()
    )


def _texts(list_filter: ListFilter, name: str) -> list[str]:
    widget = list_filter.form.fields[name].widget
    texts = widget.value_from_datadict(list_filter.data or {}, {}, name)
    return [text for text in (texts if isinstance(texts, list) else [texts]) if text]


def _field(list_filter: ListFilter, name: str) -> Field:
    field = list_filter.form.fields[name]
    texts = _texts(list_filter, name)
    split = field.split(texts) if hasattr(field, "split") else texts
    choices = getattr(field, "choices", None) or ()
    fault = list_filter.form.errors.get(name, [""])[0] if list_filter.is_bound else ""
    if choices and len(choices) <= _MANY_CHOICES and not fault:
        options = [Option(value, label, value in split) for value, label in choices]
        kept = [text for text in split if text not in dict(choices)]
        return Field(name, field.label, "", kept, options, fault, "")
    # Parts of a text may have commas, so only one of them can be written in a field.
    one = getattr(field, "separator", "") == ""
    value, kept = (texts[0] if texts else "", texts[1:]) if one else (", ".join(split), [])
    hint = next((text for kind, text in _HINTS.items() if isinstance(field, kind)), "")
    return Field(name, field.label, value, kept, (), fault, hint)


def _faults(list_filter: ListFilter, hidden: Sequence[str]) -> list[str]:
    """Faults that have no form field on the page."""
    known = ", ".join(list_filter.filters)
    faults = [
        f"There is no filter {name!r} of this list; there are {known}."
        for name in list_filter.unknown()
    ]
    errors = list_filter.form.errors if list_filter.is_bound else {}
    return faults + [
        f"{list_filter.form.fields[name].label}: {errors[name][0]}"
        for name in hidden
        if name in errors
    ]


def chips_of(
    list_filter: ListFilter,
    parameters: Mapping[str, Sequence[str]],
    *,
    clear: str = "?",
    beside: Mapping[str, Sequence[str]] | None = None,
) -> list[Chip]:
    """A chip for every value that is set, with the links to remove and to negate it.

    What stands `beside` the filters is kept by both.
    """
    return [
        _chip(list_filter, parameters, name, value, clear, beside or {})
        for name, values in parameters.items()
        for value in values
    ]


def _chip(
    list_filter: ListFilter,
    parameters: Mapping[str, Sequence[str]],
    name: str,
    value: str,
    clear: str,
    beside: Mapping[str, Sequence[str]],
) -> Chip:
    field = list_filter.form.fields[name]
    is_not = value.startswith("!")
    opposite = value[1:] if is_not else f"!{value}"
    can_flip = isinstance(field, ChosenField) and field.can_flip
    rest = _changed(parameters, name, value, None)
    shown = value[1:].strip() if is_not else value
    return Chip(
        label=field.label,
        text=str(dict(getattr(field, "choices", None) or ()).get(shown, shown)),
        is_not=is_not,
        without=query_of({**rest, **beside}) if rest else clear,
        flipped=query_of({**_changed(parameters, name, value, opposite), **beside})
        if can_flip
        else "",
    )


def _changed(
    parameters: Mapping[str, Sequence[str]], name: str, old: str, new: str | None
) -> dict[str, list[str]]:
    changed = {key: list(values) for key, values in parameters.items()}
    place = changed[name].index(old)
    changed[name][place : place + 1] = [] if new is None else [new]
    return {key: values for key, values in changed.items() if values}


def _saved_lines(
    request: HttpRequest, kind: ListSpec, kept: Preferences, parameters: Mapping[str, Sequence[str]]
) -> list[SavedLine]:
    user: User = request.user
    default = kept.default_filters.get(kind.name)
    # However many others share: the one that the list opens with, and the user's own, are there.
    place = Case(When(pk=default, then=0), When(owner=user, then=1), default=2)
    seen = visible_filters(user).filter(list_name=kind.name).order_by(place, "name", "pk")
    return [
        SavedLine(
            saved=saved,
            query=query_of(saved.parameters, saved=saved.pk),
            is_current=request.GET.get(SAVED) == str(saved.pk) and saved.parameters == parameters,
            is_own=saved.owner_id == user.pk,
            is_default=saved.pk == default,
            may_change=may_change(user, saved),
        )
        for saved in seen[:_SAVED_SHOWN]
    ]


def default_query(bar: ListBar) -> str:
    """Filter with which the user's list opens, empty for none."""
    return next((line.query for line in bar.saved if line.is_default), "")


def _exports(kind: ListSpec, query: QueryDict, columns: Sequence[Column]) -> list[tuple[str, str]]:
    export_query = query.copy()
    for name in ("after", "before", "from", SAVED):
        export_query.pop(name, None)
    export_query["columns"] = ",".join(column.name for column in columns)
    return [
        (form.upper(), f"{_export_address(kind, form)}?{export_query.urlencode()}")
        for form in ("csv", "json")
    ]


def _export_address(kind: ListSpec, form: str) -> str:
    return reverse("api:list-export", kwargs={"list_name": kind.name, "form": form})


def remember_last(response: Any, request: HttpRequest, bar: ListBar) -> None:
    """Store the filter in a cookie of this list, to be offered when the list opens without one."""
    if not bar.is_filtered or bar.faults:
        return
    text = f"{request.user.pk}:{urlencode(bar.parameters)}"
    if len(text) <= _LAST_BYTES:
        response.set_cookie(
            _LAST_USED,
            text,
            path=request.path,
            max_age=90 * 86_400,
            httponly=True,
            samesite="Lax",
            secure=request.is_secure(),
        )


def _last_used(request: HttpRequest, kind: ListSpec) -> str:
    """Filter that the user last used in this list, as a query string; empty for none."""
    owner, _, text = request.COOKIES.get(_LAST_USED, "").partition(":")
    if owner != str(request.user.pk) or not text:
        return ""
    try:
        return query_of(kind.kept(QueryDict(text)))
    except InvalidInput:
        return ""


def _chips_of_text(kind: ListSpec, query: str) -> list[Chip]:
    if not query:
        return []
    list_filter = kind.filter_class(QueryDict(query[1:]))
    return chips_of(list_filter, list_filter.parameters())
