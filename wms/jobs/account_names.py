"""Group and labels to whose accounts the use of a job is added: those of its DAG or cluster.

The apps that have the topics of jobs register readers for theirs when they are set up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

from django.db.models import QuerySet


class AccountNames(NamedTuple):
    """Name of the accounting group, empty for none, and labels; as they are now."""

    group_name: str = ""
    labels: tuple[str, ...] = ()


Reader = Callable[[Collection[int]], dict[int, AccountNames]]
_READERS: dict[str, Reader] = {}


def register_names(topic: str, reader: Reader) -> None:
    """Register how the names of a topic are read: all of many keys by one query."""
    _READERS[topic] = reader


def names_of(works: Iterable[tuple[str, int]]) -> dict[tuple[str, int], AccountNames]:
    """Names by topic and key, of those that are there. A query for each topic."""
    keys: dict[str, set[int]] = defaultdict(set)
    for topic, key in works:
        keys[topic].add(key)
    return {
        (topic, key): names
        for topic, reader in _READERS.items()
        if topic in keys
        for key, names in reader(keys[topic]).items()
    }


def names_in(rows: QuerySet[Any], keys: Collection[int]) -> dict[int, AccountNames]:
    """Names of rows that have an accounting group and labels, by their ids. One query."""
    found = rows.filter(pk__in=keys).order_by()
    told = found.values_list("pk", "accounting_group__name", "labels")
    return {key: AccountNames(group or "", tuple(labels)) for key, group, labels in told}
