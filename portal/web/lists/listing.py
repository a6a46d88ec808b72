"""List page of any kind: filtered rows, counts by state and by value with links, paging, refresh.

It opens with the user's own filter. The counts of a state are those of the list its link leads to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.forms import Form
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict

from portal.lists.base_filter import ListFilter, is_wanted
from portal.lists.filter_fields import ME, Chosen
from portal.lists.registry import ListSpec, find_list
from portal.lists.sorting import Order
from portal.personal.selectors import preferences_of
from portal.web.lists.bar import ListBar, bar_of, default_query, remember_last
from portal.web.lists.bulk_bar import BulkBar, bulk_bar_of
from portal.web.lists.paging import Page, narrowed, sorted_page
from portal.web.lists.sort_links import Head, heads_of
from portal.web.shared.pages import is_part, render_page
from wms.core.database.counting import EXACT_UP_TO, Count, Summary, summarise

#: Of a list that was left out, because its filter does not parse.
_NONE = Count()
_NOTHING = Page(rows=(), newer="", older="")
#: Filters by whom something is assigned to.
_ASSIGNED = ("assigned", "person")


@dataclass(frozen=True, slots=True)
class Facet:
    """A value, the number of rows with it, and the link to only those."""

    state: Any
    count: Count | int
    query: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Group:
    """An attribute of the rows, with its most frequent values."""

    name: str
    label: str
    facets: Sequence[Facet]


@dataclass(frozen=True, slots=True)
class Mine:
    """Link to what is assigned to the user, or back from it."""

    query: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Listing:
    """A list as its page shows it. With a filter that does not parse there are no rows.

    `total` is that of the filter without its states, `chosen_total` that of the list. `sampled` is
    of how many latest rows the groups tell, if these are not all. A list that `is_partly_sorted`
    has only its latest rows, in the order that was asked for.
    """

    kind: ListSpec
    form: Form
    is_valid: bool
    is_filtered: bool
    all_query: str
    heads: Sequence[Head]
    shown: frozenset[str]
    order: Order
    density: str
    bar: ListBar | None
    bulk: BulkBar | None = None
    facets: Sequence[Facet] = ()
    mine: Mine | None = None
    groups: Sequence[Group] = ()
    sampled: int | None = None
    total: Count = _NONE
    chosen_total: Count = _NONE
    page: Page[Any] = _NOTHING
    is_partly_sorted: bool = False
    lines: Sequence[Any] = ()

    @property
    def sorted_among(self) -> int:
        """Number of rows that were sorted, if the list is partly sorted."""
        return EXACT_UP_TO

    @property
    def has_chosen(self) -> bool:
        """True when a state is chosen."""
        return any(facet.is_chosen for facet in self.facets)


def listing_of(request: HttpRequest, kind: ListSpec) -> Listing:
    """Rows of the list by the address: filtered, counted by state and value, cut to a page.

    Each count of a state is what its link leads to: all others of the filter are kept.
    """
    list_filter = kind.filter_of(request.GET, request.user)
    if not is_valid_filter(list_filter):
        return framed(request, kind, list_filter)
    summary = _summary(kind, list_filter)
    page = sorted_page(list_filter, request.GET)
    chosen: Chosen = list_filter.form.cleaned_data[kind.state_filter] or Chosen()
    return framed(
        request,
        kind,
        list_filter,
        facets=facets_of(request.GET, kind.state_filter, summary.states, chosen),
        groups=_groups(request.GET, kind, summary, list_filter),
        sampled=EXACT_UP_TO if summary.is_sample else None,
        total=sum(summary.states.values(), Count()),
        chosen_total=sum(
            (n for state, n in summary.states.items() if is_wanted(state, chosen)), Count()
        ),
        page=page,
        lines=kind.lines(page.rows),
        is_partly_sorted=not list_filter.is_walked and _many(summary, chosen),
    )


def _many(summary: Summary, chosen: Chosen) -> bool:
    """True for more rows than are sorted without an index."""
    wanted = (count for state, count in summary.states.items() if is_wanted(state, chosen))
    return sum(wanted, Count()).value > EXACT_UP_TO


def is_valid_filter(list_filter: ListFilter) -> bool:
    """Whether every parameter is a filter, and every filter parses."""
    return list_filter.is_valid() and not list_filter.unknown()


def framed(
    request: HttpRequest, kind: ListSpec, list_filter: ListFilter, **content: Any
) -> Listing:
    """Listing with the found rows, in the user's columns and density."""
    kept = preferences_of(request.user)
    columns = kind.shown_columns(kept.columns.get(kind.name, []), list_filter)
    if content.get("lines"):
        total = content["chosen_total"]
        content["bulk"] = bulk_bar_of(kind, list_filter, total, request.user)
    return Listing(
        kind=kind,
        form=list_filter.form,
        is_valid=is_valid_filter(list_filter),
        is_filtered=bool(list_filter.parameters()),
        all_query=narrowed(request.GET, kind.state_filter, None),
        heads=heads_of(columns, list_filter, request.GET),
        order=list_filter.order,
        shown=frozenset(column.name for column in columns),
        mine=mine_of(request.GET, list_filter),
        density=kept.density,
        bar=None if is_part(request) else bar_of(request, kind, list_filter, kept),
        **content,
    )


def show_list(request: HttpRequest, name: str, **context: Any) -> HttpResponse:
    """List page, or its live part; opened without a filter, with the user's own one.

    Values of the context that are functions are called with the listing.
    """
    listing = listing_of(request, find_list(name))
    return show_listing(request, listing, **context)


def show_listing(request: HttpRequest, listing: Any, **context: Any) -> HttpResponse:
    """Page of a listing."""
    bar: ListBar | None = listing.bar
    if bar and not request.GET and (query := default_query(bar)):
        return HttpResponseRedirect(query)
    values = {key: each(listing) if callable(each) else each for key, each in context.items()}
    name = listing.kind.name.replace("-", "_")
    response = render_page(request, name, {"listing": listing, "bar": bar, **values})
    if bar and listing.is_valid:
        remember_last(response, request, bar)
    return response


def _summary(kind: ListSpec, list_filter: ListFilter) -> Summary:
    return summarise(
        list_filter.hinted(list_filter.qs),
        every_state=list_filter.without(kind.state_filter),
        states=kind.states,
        groups={group.name: group.expression for group in kind.groups},
    )


def facets_of(
    query: QueryDict, name: str, counts: Mapping[str, Count | int], chosen: Chosen
) -> list[Facet]:
    """A link to each value; a chosen value's link removes it."""
    facets = []
    for value, count in counts.items():
        is_chosen = value in chosen.included
        rest = [each for each in chosen.included if each != value] if is_chosen else [value]
        facets.append(Facet(value, count, narrowed(query, name, rest), is_chosen))
    return facets


def mine_of(query: QueryDict, list_filter: ListFilter) -> Mine | None:
    """Link of a list by whose filters one finds what is assigned to somebody."""
    name = next((name for name in _ASSIGNED if name in list_filter.filters), None)
    if name is None:
        return None
    is_chosen = query.getlist(name) == [ME]
    return Mine(narrowed(query, name, None if is_chosen else [ME]), is_chosen)


def _groups(
    query: QueryDict, kind: ListSpec, summary: Summary, list_filter: ListFilter
) -> list[Group]:
    set_now = list_filter.parameters()
    found = []
    for group in kind.groups:
        values = set_now.get(group.name, [])
        facets = [
            Facet(
                value,
                count,
                narrowed(query, group.name, None if value in values else [value]),
                value in values,
            )
            for value, count in summary.groups.get(group.name, ())
        ]
        # A single value that all rows share tells nothing that could be narrowed.
        if len(facets) > 1 or any(facet.is_chosen for facet in facets):
            found.append(Group(group.name, group.label, facets))
    return found
