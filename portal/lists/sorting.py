"""Sort orders of lists, the `sort` parameter, and keyset borders for paging.

`sort=priority` is ascending, `sort=-priority` descending; rows without a value come last in both.
Rows with equal values are ordered by id, so that a page can begin behind any row.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.db.models import F, Q
from django.db.models.expressions import OrderBy
from django.utils.dateparse import parse_datetime

from portal.lists.filter_fields import Described, HiddenValues

_DOWN = "-"
_NUMBER = re.compile(r"-?[0-9]{1,18}")
_ID = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Sort:
    """Sort key of a list, with labels of both directions.

    `field` is the lookup of the value, `kind` its type. It belongs to the heads of `columns`; the
    first click gives the descending order, if it `falls_first`.
    """

    name: str
    label: str
    field: str = ""
    kind: type = int
    rising: str = "lowest first"
    falling: str = "highest first"
    columns: Sequence[str] = ()
    falls_first: bool = True
    is_nullable: bool = False

    @property
    def first(self) -> Order:
        """Direction that is offered first."""
        return Order(self, self.falls_first)


@dataclass(frozen=True, slots=True)
class Border:
    """Position of a row in a sorted list, for addresses.

    In the order of ids the key is the id itself (`is_id`).
    """

    key: Any
    pk: int
    is_id: bool = False

    def __str__(self) -> str:
        if self.is_id:
            return str(self.pk)
        if self.key is None:
            return f"_{self.pk}"
        text = self.key.isoformat() if isinstance(self.key, datetime) else str(self.key)
        return f"{text}={self.pk}"


@dataclass(frozen=True, slots=True)
class Order:
    """One direction of a sort."""

    sort: Sort
    is_falling: bool

    @property
    def text(self) -> str:
        """Value of the order in an address."""
        return f"{_DOWN if self.is_falling else ''}{self.sort.name}"

    @property
    def words(self) -> str:
        """Label of the order."""
        return self.sort.falling if self.is_falling else self.sort.rising

    @property
    def turned(self) -> Order:
        """Opposite order."""
        return Order(self.sort, not self.is_falling)

    @property
    def is_by_id(self) -> bool:
        """True for the order in which rows were made, or its opposite."""
        return self.sort.field == "pk"

    def by(self, *, is_back: bool) -> list[OrderBy]:
        """The order of rows with `sort_key`, from a border on or back from it."""
        down = self.is_falling is not is_back
        key, pk = F("sort_key"), F("pk")
        last = pk.desc() if down else pk.asc()
        # Told only where it is needed, since an index of a column without nulls is not used else.
        if not self.sort.is_nullable:
            nulls = {}
        elif is_back:
            nulls = {"nulls_first": True}
        else:
            nulls = {"nulls_last": True}
        return [key.desc(**nulls) if down else key.asc(**nulls), last]

    def beyond(self, border: Border, *, is_back: bool) -> Q:
        """True for rows with `sort_key` that come behind the border, or before it."""
        side = "lt" if self.is_falling is not is_back else "gt"
        later = Q(**{f"pk__{side}": border.pk})
        if self.is_by_id:
            return later
        if border.key is None:
            return Q(sort_key=None) & later if not is_back else ~Q(sort_key=None) | later
        found = Q(**{f"sort_key__{side}": border.key}) | Q(sort_key=border.key) & later
        if not self.sort.is_nullable:
            # The same once more, in the form by which an index is entered at the right place.
            return Q(**{f"sort_key__{side}e": border.key}) & found
        return found if is_back else found | Q(sort_key=None)

    def border_of(self, row: Any) -> Border:
        """Border at a row with `sort_key`."""
        return Border(row.sort_key, row.pk, self.is_by_id)

    def parse(self, text: str) -> Border | None:
        """The border that `str` made, for the same sort; None for any other text."""
        if self.is_by_id:
            return Border(int(text), int(text), is_id=True) if _ID.fullmatch(text) else None
        key, is_there, number = text.rpartition("=")
        if not is_there:
            number = text.removeprefix("_")
            is_null = self.sort.is_nullable and text.startswith("_")
            return Border(None, int(number)) if is_null and _ID.fullmatch(number) else None
        found = _parsed(key, self.sort.kind)
        return Border(found, int(number)) if found is not None and _ID.fullmatch(number) else None


def _parsed(text: str, kind: type) -> Any:
    if kind is int:
        return int(text) if _NUMBER.fullmatch(text) else None
    if kind is str:
        return text if len(text) <= 255 and "\0" not in text else None
    try:
        found = parse_datetime(text)
    except ValueError:
        return None
    # In another zone the first and last times that there are would be out of range.
    return found if found is not None and found.utcoffset() == timedelta() else None


class SortField(forms.Field):
    """One of some orders."""

    widget = HiddenValues

    def __init__(self, *, sorts: Sequence[Sort], **options: Any) -> None:
        super().__init__(**options)
        self.orders = orders_of(sorts)

    def to_python(self, value: Sequence[str] | None) -> Order | None:
        """The order; None for none. Raises ValidationError."""
        if not value:
            return None
        if len(value) > 1:
            raise forms.ValidationError("Give one order.")
        if value[0] not in self.orders:
            known = ", ".join(self.orders)
            raise forms.ValidationError(
                f"This list cannot be sorted by {value[0][:40]!r}; there are {known}."
            )
        return self.orders[value[0]]


def orders_of(sorts: Sequence[Sort]) -> Mapping[str, Order]:
    """All orders by their texts, of each sort first the one that is asked for first."""
    both = [order for sort in sorts for order in (sort.first, sort.first.turned)]
    return {order.text: order for order in both}


class Sorting(Described):
    """The filter that leaves all rows and tells their order; the first sort is the usual one."""

    field_class = SortField
    hint = "With - the falling order. Rows without a value come last."

    def __init__(self, *sorts: Sort) -> None:
        self.sorts = sorts
        self.schema = {"type": "string", "enum": list(orders_of(sorts))}
        super().__init__(label="Sort", sorts=sorts)

    @property
    def usual(self) -> Order:
        """The order of a list for which none is asked."""
        return self.sorts[0].first

    def filter(self, queryset: Any, value: Order | None) -> Any:
        """All rows."""
        return queryset


def newest(label: str, *columns: str) -> Sort:
    """Sort by the time at which rows were made, offered in the heads of these columns."""
    return Sort("id", label, "pk", rising="oldest first", falling="newest first", columns=columns)


def by_time(name: str, label: str, field: str, *columns: str, **options: Any) -> Sort:
    """Sort by a column of times."""
    words = {"rising": "earliest first", "falling": "latest first"}
    return Sort(name, label, field, datetime, columns=columns or (name,), **{**words, **options})


def by_text(name: str, label: str, field: str, *columns: str) -> Sort:
    """Sort by a column of text, in alphabetical order first."""
    return Sort(
        name, label, field, str, rising="A to Z", falling="Z to A", columns=columns or (name,),
        falls_first=False,
    )  # fmt: skip


def by_number(name: str, label: str, field: str, *columns: str, **options: Any) -> Sort:
    """Sort by a column of numbers."""
    return Sort(name, label, field, columns=columns or (name,), **options)
