"""Base class of list filters: rows, their order and pages, and parameters checked for storing.

Pages are read from a border on; if no index has the order, only the latest rows are sorted. Also
notes on rows that were not searched, whether a word passes a filter, and conditions that help
PostgreSQL's planner, such as ids instead of times.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

import django_filters as filters
from django.db.models import F, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from portal.lists.filter_fields import Chosen, ChosenField, Span
from portal.lists.sorting import Border, Order, Sorting
from wms.core.database.counting import EXACT_UP_TO
from wms.core.errors import Finding, InvalidInput
from wms.core.models import User

#: What stands in the address of a list beside its filters.
BESIDE_FILTERS = frozenset({"after", "before", "from", "saved"})
#: What tells the order.
SORT = "sort"
#: Rows that were made so long after others have larger ids.
_DISORDER = timedelta(hours=1)


class ListFilter(filters.FilterSet):
    """Filter of one list. Relative times count back from `now`; `me` is the user who asks.

    The filter named `sort` gives the order and excludes no rows. With only the filters in `by_age`
    an index has the oldest rows first.
    """

    by_age: frozenset[str] = frozenset()

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        queryset: QuerySet[Any] | None = None,
        *,
        now: datetime | None = None,
        user: User | None = None,
        **options: Any,
    ) -> None:
        super().__init__(data, queryset, **options)
        self.now = now or timezone.now()
        self._user = user

    @property
    def asking(self) -> int | None:
        """Id of the user who asks, if it is known."""
        user = self._user or getattr(self.request, "user", None)
        return None if user is None else user.pk

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The rows that pass every filter."""
        return self._passing(queryset, leaving=frozenset())

    def without(self, *names: str) -> QuerySet[Any]:
        """Rows that pass every filter but these; for a valid filter set only."""
        if not self.is_bound:
            return self.queryset.all()
        return self._passing(self.queryset.all(), leaving=frozenset(names))

    def _passing(self, queryset: QuerySet[Any], *, leaving: Collection[str]) -> QuerySet[Any]:
        for name, value in self.form.cleaned_data.items():
            if name not in leaving:
                queryset = self.filters[name].filter(queryset, value)
        return queryset

    def hinted(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The same rows with a hint where to find the latest ones, if it is known.

        Not for counts and estimates: the planner knows nothing of the hint.
        """
        return queryset

    def unknown(self) -> list[str]:
        """Query parameters that are no filters."""
        return sorted(set(self.data) - set(self.filters) - BESIDE_FILTERS) if self.data else []

    def notes(self) -> list[str]:
        """Notes for the reader about rows that were not searched."""
        return []

    def wider(self) -> list[tuple[str, dict[str, list[str]]]]:
        """Filters that search further, each with its label."""
        return []

    def parameters(self) -> dict[str, list[str]]:
        """The filters that are set, one text for each value: equal questions look the same."""
        found = {}
        for name, field in self.form.fields.items():
            texts = field.widget.value_from_datadict(self.data, {}, name) if self.data else []
            values = field.split(texts) if isinstance(field, ChosenField) else texts
            if values and name != SORT:
                found[name] = values
        return found

    def kept(self) -> dict[str, list[str]]:
        """Filters that are set, and the order if not the default: a saved filter's value."""
        found = self.parameters()
        if self.is_sorted:
            found[SORT] = [self.order.text]
        return found

    @property
    def sorting(self) -> Sorting:
        """Sort keys of the list."""
        declared: Sorting = self.filters[SORT]
        return declared

    @property
    def order(self) -> Order:
        """Requested order, or the default one."""
        order: Order | None = None
        if self.is_bound and self.is_valid():
            order = self.form.cleaned_data[SORT]
        return order or self.sorting.usual

    @property
    def is_sorted(self) -> bool:
        """Whether the order is not the default one."""
        return self.order != self.sorting.usual

    @property
    def is_walked(self) -> bool:
        """Whether an index has all rows in this order, however many pass the filter.

        Otherwise the latest EXACT_UP_TO of them are sorted. Oldest first is never walked: the rows
        that pass a filter may begin behind all others.
        """
        order = self.order
        return order.is_by_id and (order.is_falling or self.parameters().keys() <= self.by_age)

    def some(self, border: Border | None, limit: int, *, is_back: bool = False) -> list[Any]:
        """Next rows in order, from a border on or back from it, with `sort_key`. One query."""
        rows = _from_border(self.sortable(), self.order, border, is_back=is_back)
        return list(rows[:limit])

    def sortable(self) -> QuerySet[Any]:
        """The rows that are sorted, in no order yet."""
        listed, field = self.hinted(self.qs), F(self.order.sort.field)
        if self.is_walked:
            return listed.annotate(sort_key=field)
        # Behind the limit the database has no choice but to find these rows first, and it knows no
        # index of a COALESCE: else it may go through all rows in the order of some index, hoping
        # that they pass the filter.
        latest = listed.order_by("-pk").values("pk")[:EXACT_UP_TO]
        return self.queryset.filter(pk__in=latest).annotate(sort_key=Coalesce(field, field))


def _from_border(
    rows: QuerySet[Any], order: Order, border: Border | None, *, is_back: bool
) -> QuerySet[Any]:
    beyond = rows if border is None else rows.filter(order.beyond(border, is_back=is_back))
    return beyond.order_by(*order.by(is_back=is_back))


def within_ids(
    queryset: QuerySet[Any], every: QuerySet[Any], made: Span, now: datetime
) -> QuerySet[Any]:
    """Rows made in a stretch of time, with a hint: their ids are in a range.

    Ids follow `created_at`, by which `every` row has an index, except for transactions that were
    open at the same time.
    """
    start, end = made.ends(now)
    times = every.order_by().values("pk")
    if start is not None and start.year > 1:
        first = times.filter(created_at__gte=start - _DISORDER).order_by("created_at")[:1]
        queryset = queryset.filter(pk__gte=Subquery(first))
    if end is not None and end.year < 9999:
        last = times.filter(created_at__lte=end + _DISORDER).order_by("-created_at")[:1]
        queryset = queryset.filter(pk__lte=Subquery(last))
    return queryset


def normalised(
    filter_class: type[ListFilter], parameters: Mapping[str, Any]
) -> dict[str, list[str]]:
    """Filters among parameters, as a value that can be stored. Raises InvalidInput.

    Each filter by its name with its values as texts; `apply_filter` reads it.
    """
    return checked(filter_class, parameters).parameters()


def checked(filter_class: type[ListFilter], parameters: Mapping[str, Any]) -> ListFilter:
    """Validated filter over no rows. Raises InvalidInput with every fault."""
    list_filter = filter_class(parameters, queryset=filter_class.Meta.model._default_manager.none())
    faults = [Finding("is no filter of this list", field=name) for name in list_filter.unknown()]
    if not list_filter.is_valid():
        faults += [
            Finding(str(text), field=name)
            for name, texts in list_filter.form.errors.items()
            for text in texts
        ]
    if faults:
        raise InvalidInput(faults)
    return list_filter


def is_wanted(word: str, value: Chosen) -> bool:
    """Whether a word passes a filter of words."""
    return word not in value.excluded and (not value.included or word in value.included)
