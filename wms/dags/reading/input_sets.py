"""Input data of a DAG for its page and the API: the sets that it names, with where they are."""

from __future__ import annotations

from wms.dags.models import Dag
from wms.jobs.models import InputSet


def inputs_of_dag(dag: Dag) -> list[InputSet]:
    """What its nodes want near, then what they may fetch from afar; no query for most DAGs."""
    ids = [pk for pk in (dag.near_inputs_id, dag.far_inputs_id) if pk is not None]
    if not ids:
        return []
    # A set of a DAG may have thousands of names.
    sets = InputSet.objects.filter(pk__in=ids).defer("names", "expected")
    return list(sets.order_by("is_anywhere"))
