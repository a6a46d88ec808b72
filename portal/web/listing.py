"""What the lists have in common: a filter, the states with their counts, and pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db.models import Model, QuerySet
from django.forms import Form
from django.http import HttpRequest
from django_filters import FilterSet

from portal.web.paging import Page, page_of
from wms.core.selectors import count_by_state

_Row = TypeVar("_Row", bound=Model)


@dataclass(frozen=True, slots=True)
class Facet:
    """A state of the list, how many are in it, and the list of only those."""

    state: str
    count: int
    query: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Listing(Generic[_Row]):
    """A list as its page shows it. With a filter that does not parse there are no rows."""

    form: Form
    facets: Sequence[Facet]
    total: int
    chosen_total: int
    all_query: str
    is_filtered: bool
    page: Page[_Row]


def listing_of(
    request: HttpRequest,
    filter_class: type[FilterSet],
    queryset: QuerySet[Any],
    states: Sequence[str],
) -> Listing[Any]:
    """Filter by the address, count by state, cut a page: two queries.

    The counts are those of the filter without its states, so each is what its link leads to.
    """
    chosen = filter_class(request.GET, queryset=queryset)
    stateless = request.GET.copy()
    for name in ("state", "before", "after"):
        stateless.pop(name, None)
    is_valid = chosen.is_valid()
    rows = chosen.qs if is_valid else queryset.none()
    counts = count_by_state(filter_class(stateless, queryset=queryset).qs) if is_valid else {}
    wanted = set(request.GET.getlist("state"))
    facets = [
        Facet(
            state=state,
            count=counts.get(state, 0),
            query=_with_state(stateless, state),
            is_chosen=wanted == {state},
        )
        for state in states
    ]
    return Listing(
        form=chosen.form,
        facets=facets,
        total=sum(counts.values()),
        chosen_total=sum(counts.get(state, 0) for state in wanted or counts),
        all_query=f"?{stateless.urlencode()}",
        is_filtered=any(value for value in request.GET.values()),
        page=page_of(rows, request.GET),
    )


def _with_state(query: Any, state: str) -> str:
    changed = query.copy()
    changed["state"] = state
    return f"?{changed.urlencode()}"
