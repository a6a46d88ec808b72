"""Input data of DAGs: the sets that one names, with where they are, and the sets of open DAGs."""

from __future__ import annotations

from collections.abc import Collection

from wms.dags.models import Dag
from wms.jobs.models import InputSet


def inputs_of_dag(dag: Dag) -> list[InputSet]:
    """What its nodes want near, then what they may fetch from afar; no query for most DAGs.

    Of a DAG that has ended they are soon not known any more.
    """
    ids = [pk for pk in (dag.near_inputs_id, dag.far_inputs_id) if pk is not None]
    if not ids:
        return []
    # A set of a DAG may have thousands of names.
    sets = InputSet.objects.filter(pk__in=ids, is_asleep=False).defer("names", "expected")
    return list(sets.order_by("is_anywhere"))


def sets_of_open_dags(set_ids: Collection[int]) -> set[int]:
    """Those of these sets that a DAG names which has not ended."""
    is_open = Dag.objects.filter(ended_at=None).order_by()
    near = is_open.filter(near_inputs__in=set_ids).values_list("near_inputs_id", flat=True)
    far = is_open.filter(far_inputs__in=set_ids).values_list("far_inputs_id", flat=True)
    return {pk for pk in near.union(far) if pk is not None}
