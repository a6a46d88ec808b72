"""Failures by site: the matrix of sites and causes, and a cause's failures at each site."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Case, Count, F, QuerySet, Sum, When

from wms.core.models import User
from wms.failures.models import FailureGroup
from wms.failures.seen import rows_to_count
from wms.failures.selectors import CountedGroup, Window, bins_in, failures_in, within


@dataclass(frozen=True, slots=True)
class SiteRow:
    """A site's line of the matrix: a count for each group of its columns, the others, and all."""

    site: str
    counts: Sequence[int]
    other: int
    total: int


@dataclass(frozen=True, slots=True)
class Matrix:
    """Sites and the causes of their failures: those of at least one in a hundred, and the rest."""

    groups: Sequence[FailureGroup]
    rows: Sequence[SiteRow]
    totals: Sequence[int]
    other: int
    other_groups: int
    total: int
    hidden_sites: int


def matrix_of(
    user: User,
    counted: Sequence[CountedGroup],
    groups: QuerySet[FailureGroup],
    window: Window,
    *,
    now: datetime,
    site: str = "",
    dag_id: int | None = None,
    columns: int = 8,
    most_rows: int = 20,
) -> Matrix:
    """Matrix of sites and these groups. One query.

    A cause of less than one in a hundred, and what no column is left for, is under "other".
    """
    total = sum(hit.count for hit in counted)
    shown = [hit for hit in counted if 100 * hit.count >= total][:columns]
    places = {hit.group.pk: place for place, hit in enumerate(shown)}
    column = Case(When(group__in=list(places), then=F("group_id")), default=None)
    seen, cells = rows_to_count(user, dag_id), defaultdict[str, Counter[int | None]](Counter)
    rows: QuerySet[Any, Any]
    if seen is None:
        bins = bins_in(window, now=now, site=site, at_sites=True).filter(group__in=groups)
        rows = bins.order_by().values_list("site_name", column).annotate(Sum("count"))
    else:
        failures = within(seen, window, now, site).filter(group__in=groups)
        rows = failures.values_list("site_name", column).annotate(Count("pk"))
    for name, pk, count in rows:
        cells[name][None if pk is None else places[pk]] = count
    lines = [_site_row(name, counts, len(shown)) for name, counts in cells.items()]
    lines.sort(key=lambda row: (-row.total, row.site))
    totals = [sum(row.counts[place] for row in lines) for place in range(len(shown))]
    return Matrix(
        groups=[hit.group for hit in shown],
        rows=lines[:most_rows],
        totals=totals,
        other=sum(row.other for row in lines),
        other_groups=len(counted) - len(shown),
        total=sum(row.total for row in lines),
        hidden_sites=max(0, len(lines) - most_rows),
    )


def _site_row(site: str, cells: Mapping[int | None, int], columns: int) -> SiteRow:
    counts = [cells.get(place, 0) for place in range(columns)]
    return SiteRow(site, counts, cells.get(None, 0), sum(cells.values()))


def total_at_sites(
    user: User,
    group: FailureGroup,
    window: Window,
    *,
    now: datetime,
    owner_id: int | None = None,
    dag_id: int | None = None,
) -> list[tuple[str, int]]:
    """Visible failures of a group by site, most first; of an owner's objects or a DAG if given."""
    counts: Any
    if owner_id is None and rows_to_count(user, dag_id) is None:
        bins = bins_in(window, now=now, at_sites=True).filter(group=group).order_by()
        counts = bins.values_list("site_name").annotate(Sum("count"))
    else:
        own = failures_in(
            user, window, now=now, group_id=group.pk, owner_id=owner_id, dag_id=dag_id
        ).order_by()
        counts = own.values_list("site_name").annotate(Count("pk"))
    return sorted(counts, key=lambda pair: (-pair[1], pair[0]))
