"""Sets of inputs of DAGs sleep when all of the DAGs have ended, until one of them is reopened.

A set of a DAG may have thousands of names, and is not deleted, because a DAG that has ended can be
reopened. Nobody else joins by a set that sleeps, and it hears of no change. Which DAGs are open is
known above jobs: who keeps them registers a finder.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeAlias

from wms.jobs.input_data.changes import note_sets
from wms.jobs.models import InputSet, ResolvedSet

#: Those of the sets with these ids that open DAGs name.
Finder: TypeAlias = Callable[[Collection[int]], set[int]]
_finders: list[Finder] = []


def register_finder(finder: Finder) -> None:
    """Have this function tell which sets are those of open DAGs, with few queries for all."""
    _finders[:] = [finder]


def put_to_sleep(set_ids: Collection[int]) -> set[int]:
    """Let those of these locked sets sleep of which all DAGs have ended; the ids of these.

    A DAG that is being submitted holds its sets, so none that it names is among them.
    """
    rows = InputSet.objects.filter(pk__in=set_ids, is_of_dag=True)
    of_dags = set(rows.values_list("pk", flat=True))
    if not of_dags:
        return set()
    [finder] = _finders
    unused = of_dags - finder(of_dags)
    rows.filter(pk__in=unused, is_asleep=False).update(is_asleep=True, key=None)
    ResolvedSet.objects.filter(pk__in=unused).delete()
    return unused


def wake(set_ids: Collection[int]) -> None:
    """Let those of these locked sets that sleep be told of changes again.

    They are resolved once more after the commit, as new ones: a change may be told before it.
    """
    asleep = InputSet.objects.filter(pk__in=set_ids, is_asleep=True)
    woken = list(asleep.values_list("pk", flat=True))
    if woken:
        InputSet.objects.filter(pk__in=woken).update(is_asleep=False)
        note_sets(woken)
