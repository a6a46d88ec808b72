"""Counts of the rows of lists in bounded time, by state, by column or by list, exact or estimated.

A count of a large table takes as long as reading it. So nothing here looks at more rows than a
limit for each figure, up to which counts are exact; what is beyond is told by the planner, from its
statistics of the table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import QuerySet

from wms.core.database import sql

#: Counts up to this are exact.
EXACT_UP_TO = 10_000
#: The leader of a parallel plan helps its workers so much less the more there are of them.
_LEADER_LOSS = 0.3

_Statement = tuple[str, tuple[Any, ...]]
_NOTHING: _Statement = (sql.NO_ROWS, ())


@dataclass(frozen=True, slots=True)
class Count:
    """Number of rows, exact or estimated."""

    value: int = 0
    is_estimate: bool = False

    def __add__(self, other: Count) -> Count:
        return Count(self.value + other.value, self.is_estimate or other.is_estimate)


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts of a list.

    `groups` tells how many of the list's latest rows have which value, by the name of the group;
    these are all of its rows, unless `is_sample`: then they are the latest EXACT_UP_TO.
    """

    states: Mapping[str, Count] = field(default_factory=dict)
    groups: Mapping[str, Sequence[tuple[Any, int]]] = field(default_factory=dict)
    is_sample: bool = False


def summarise(
    listed: QuerySet[Any],
    *,
    every_state: QuerySet[Any],
    states: Sequence[str],
    groups: Mapping[str, Any],
    top: int = 8,
) -> Summary:
    """Count a list by state, whichever of the states it shows, and its latest rows by value.

    `every_state` is the list without the filter of its state. `groups` are expressions by name;
    of each the `top` most frequent values are told. One query, and a look at the planner's
    estimates if there are more than EXACT_UP_TO rows in a state.
    """
    rows = _read(_summary_statement(listed, every_state, states, groups, top), listed.db)
    bounded: dict[str, int] = {}
    found: dict[str, list[tuple[Any, int]]] = {name: [] for name in groups}
    sampled = 0
    for kind, value, count in rows:
        if kind == "state":
            bounded[value] = count
        elif kind == "all":
            sampled = count
        elif value is not None and value != "":
            found[kind.removeprefix("by ")].append((value, count))
    return Summary(
        states=_with_estimates(every_state, bounded),
        groups=found,
        is_sample=sampled > EXACT_UP_TO,
    )


def counts_by_state(queryset: QuerySet[Any], states: Sequence[str]) -> dict[str, Count]:
    """Number of rows in each of these states: exact up to EXACT_UP_TO, estimated above that.

    One query, and a second one if there are more in a state.
    """
    statement = _joined(
        _labelled("state", state, _bounded(queryset.filter(state=state))) for state in states
    )
    bounded = {value: count for _, value, count in _read(statement, queryset.db)}
    return _with_estimates(queryset, bounded)


def count_each(lists: Mapping[str, QuerySet[Any]]) -> dict[str, Count]:
    """Number of rows of each list by name: exact up to EXACT_UP_TO, estimated above that.

    One query, and a second one if a list has more.
    """
    using = next(iter(lists.values())).db
    statement = _joined(_labelled("list", name, _bounded(rows)) for name, rows in lists.items())
    bounded: dict[str, int] = {name: count for _, name, count in _read(statement, using)}
    many = [name for name, count in bounded.items() if count > EXACT_UP_TO]
    guesses = _estimates([lists[name] for name in many]) if many else []
    about = {
        name: Count(max(guess, EXACT_UP_TO + 1), is_estimate=True)
        for name, guess in zip(many, guesses, strict=True)
    }
    return {name: about.get(name, Count(count)) for name, count in bounded.items()}


def count_up_to(queryset: QuerySet[Any], limit: int) -> int:
    """Number of rows, or `limit` + 1 for more than `limit`. One query."""
    return queryset.order_by().values("pk")[: limit + 1].count()


def _summary_statement(
    listed: QuerySet[Any],
    every_state: QuerySet[Any],
    states: Sequence[str],
    groups: Mapping[str, Any],
    top: int,
) -> _Statement:
    """The figures as rows of a kind, a value and a number.

    The rows of `few` are all of the list if there are not many; only else each state is counted by
    itself, since the database computes a subquery of CASE when its branch is taken.
    """
    columns = {f"by_{name}": expression for name, expression in groups.items()}
    latest = _compiled(
        listed.order_by("-pk")
        .annotate(**columns)
        .values("pk", "state", *columns)[: EXACT_UP_TO + 1]
    )
    few = _few(listed, every_state)
    parts = [
        _labelled("state", state, _in_state(every_state.filter(state=state), state))
        for state in states
    ]
    if latest is None:
        latest = _NOTHING
    else:
        parts.append((sql.COUNT_LATEST, ()))
        parts += [_frequent(name, top) for name in groups]
    whole, parameters = _joined(parts)
    return (
        sql.SUMMARY.format(latest=latest[0], few=few[0], figures=whole),
        (*latest[1], *few[1], *parameters),
    )


def _few(listed: QuerySet[Any], every_state: QuerySet[Any]) -> _Statement:
    """The rows of any state, or one more than can be counted. Where the list is of any state as
    well, these are its latest: what takes long to find is not looked for twice.
    """
    few = _compiled(every_state.order_by().values("pk", "state")[: EXACT_UP_TO + 1])
    if few is None:
        return sql.NO_STATES, ()
    if few == _compiled(listed.order_by().values("pk", "state")[: EXACT_UP_TO + 1]):
        return sql.STATES_OF_LATEST, ()
    return few


def _frequent(name: str, top: int) -> _Statement:
    # The names are those of our own groups, never a user's.
    return sql.COUNT_FREQUENT.format(name=name, limit=EXACT_UP_TO, top=top), ()


def _in_state(rows: QuerySet[Any], state: str) -> _Statement:
    many, parameters = _bounded(rows)
    return (
        sql.COUNT_IN_STATE.format(limit=EXACT_UP_TO, many=many),
        (*parameters, state),
    )


def _bounded(rows: QuerySet[Any]) -> _Statement:
    inner = _compiled(rows.order_by().values("pk")[: EXACT_UP_TO + 1]) or _NOTHING
    return sql.COUNT_ROWS.format(rows=inner[0]), inner[1]


def _labelled(kind: str, value: str, number: _Statement) -> _Statement:
    return sql.LABELLED.format(number=number[0]), (kind, value, *number[1])


def _joined(parts: Iterable[_Statement]) -> _Statement:
    statements = list(parts)
    whole = sql.TOGETHER.join(text for text, _ in statements)
    return whole, tuple(value for _, values in statements for value in values)


def _compiled(queryset: QuerySet[Any]) -> _Statement | None:
    """The statement of a queryset; None for one that finds nothing, whatever there is."""
    try:
        text, parameters = queryset.query.sql_with_params()
    except EmptyResultSet:
        return None
    return text, tuple(parameters)


def _read(statement: _Statement, using: str) -> list[tuple[Any, ...]]:
    if not statement[0]:
        return []
    with connections[using].cursor() as cursor:
        cursor.execute(*statement)
        return list(cursor.fetchall())


def _with_estimates(rows: QuerySet[Any], bounded: Mapping[str, int]) -> dict[str, Count]:
    """Exact counts; for those that reached the bound, the planner's estimate."""
    many = [state for state, count in bounded.items() if count > EXACT_UP_TO]
    guesses = _estimates([rows.filter(state=state) for state in many]) if many else []
    about = {
        state: Count(max(guess, EXACT_UP_TO + 1), is_estimate=True)
        for state, guess in zip(many, guesses, strict=True)
    }
    return {state: about.get(state, Count(count)) for state, count in bounded.items()}


def _estimates(querysets: Sequence[QuerySet[Any]]) -> list[int]:
    """The planner's estimate of the rows of each. One query, which reads none of them."""
    parts = [_compiled(rows.order_by().values("pk")) or _NOTHING for rows in querysets]
    text, parameters = _joined(parts)
    [(plan,)] = _read((sql.EXPLAIN.format(statement=text), parameters), querysets[0].db)
    root = (json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]
    if len(querysets) == 1:
        return [int(root["Plan Rows"])]
    divisor = 1.0
    while root["Node Type"] != "Append":
        workers = root.get("Workers Planned", 0)
        divisor = workers + max(0.0, 1.0 - _LEADER_LOSS * workers) if workers else divisor
        root = root["Plans"][0]
    return [_rows_of(each, divisor) for each in root["Plans"]]


def _rows_of(plan: Mapping[str, Any], divisor: float) -> int:
    """The rows of a branch: one that several workers share tells the part of one of them."""
    return int(plan["Plan Rows"] * (divisor if _is_shared(plan) else 1.0))


def _is_shared(plan: Mapping[str, Any]) -> bool:
    return bool(plan.get("Parallel Aware")) or any(map(_is_shared, plan.get("Plans", ())))
