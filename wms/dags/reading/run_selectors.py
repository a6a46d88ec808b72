"""Selectors of a DAG as a run: outer, inner and further runs, resume points, options, limits.

Also the rescues that were written for its files, its categories, and the limits that it shares with
other DAGs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime

from django.db.models import Q, QuerySet

from wms.accounting.walls import Walls, seen_by
from wms.core.models import User
from wms.dags.engine.round import options_of
from wms.dags.engine.settling.tolerance import room_of, tolerated_by_category
from wms.dags.engine.submitting.throttles import limits_of
from wms.dags.language.spec import RunOptions
from wms.dags.models import Dag, Rescue, SharedLimit
from wms.dags.reading.sql import FIND_OUTER_DAGS
from wms.dags.rescue.names import rescue_stem
from wms.dags.rescue.rescue_files import rescue_numbers_among, rescue_prefix
from wms.dags.services.dags import LIVE_OPTIONS
from wms.dags.services.shared_limits import with_submitted
from wms.jobs.models import WorkspaceFile


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """File from which a run can resume: a rescue file, or a save point with number 0.

    Counts are known for files that Pilotage wrote.
    """

    path: str
    number: int
    is_newest: bool = False
    done_count: int | None = None
    failed_count: int | None = None
    created_at: datetime | None = None
    dag: int | None = None

    @property
    def value(self) -> str:
        """Value of the resume point in a form."""
        if self.is_newest:
            return "newest"
        return str(self.number) if self.number else f"save:{self.path}"


@dataclass(frozen=True, slots=True)
class OptionLine:
    """Option of a run: value, default, and whether it can be changed while the run goes on."""

    name: str
    value: int | bool
    default: int | bool
    is_live: bool


@dataclass(frozen=True, slots=True)
class CategoryLine:
    """Category of nodes: limit (or None), number of submitted nodes, and failures it tolerates.

    `tolerance` is as the DAG file gives it, `tolerance_left` how many more failures that is.
    """

    name: str
    limit: int | None
    submitted: int
    tolerance: str
    tolerance_left: int | None
    tolerated: int


@dataclass(frozen=True, slots=True)
class RelatedRuns:
    """Inner DAGs of a DAG, latest first, and its further runs and edited copies."""

    inner: Sequence[Dag]
    further: Sequence[Dag]


def related_runs(dag: Dag, user: User, *, inner: int, further: int) -> RelatedRuns:
    """Inner DAGs and further runs, at most these numbers, with their outer nodes; one query.

    Edited copies may be of somebody else: those that the user may not see are left out.
    """
    inside = Dag.objects.filter(parent_node__dag=dag).order_by("-pk").values("pk")[:inner]
    after = seen_by(user, next_runs(dag), Walls.by_group).values("pk")[:further]
    rows = Dag.objects.filter(pk__in=inside.union(after, all=True)).select_related("parent_node")
    columns = ("name", "state", "done_count", "node_count", "previous_run_id", "workspace_id")
    of_node = ("parent_node__name", "parent_node__dag_id")
    runs = list(rows.only(*columns, *of_node).order_by("-pk"))
    return RelatedRuns(
        inner=[each for each in runs if each.parent_node and each.parent_node.dag_id == dag.pk],
        further=[each for each in reversed(runs) if each.previous_run_id == dag.pk],
    )


def outer_dags(dag: Dag) -> list[Dag]:
    """Outer DAGs of an inner DAG, outermost first; a query if there are more than one.

    The direct outer DAG has been read with the DAG, as `find_dag` does.
    """
    if dag.parent_node is None:
        return []
    outer = dag.parent_node.dag
    if outer.parent_node_id is None:
        return [outer]
    return [*Dag.objects.raw(FIND_OUTER_DAGS, [outer.pk]), outer]


def next_runs(dag: Dag) -> QuerySet[Dag]:
    """Runs that resumed this one, and copies that were made of it by edits."""
    return dag.next_runs.order_by("pk")


def rescues_of(dag: Dag) -> QuerySet[Rescue]:
    """Rescue files and save points that Pilotage wrote for a DAG's files, latest first."""
    stem = rescue_stem(dag.dag_files)
    return Rescue.objects.filter(workspace=dag.workspace_id, dag_file=stem).order_by("-pk")


def resume_points_of(dag: Dag, written: Sequence[Rescue]) -> list[ResumePoint]:
    """Resume points of a DAG: rescue files, newest first, then save points; one query.

    `written` are all rows of `rescues_of`.
    """
    by_name = Q(path__startswith=rescue_prefix(dag.dag_files))
    files = WorkspaceFile.objects.filter(
        by_name | Q(path__in={each.path for each in written}), workspace=dag.workspace_id
    )
    there = set(files.values_list("path", flat=True))
    numbers = rescue_numbers_among(there, dag.dag_files)
    newest = numbers.get(max(numbers, default=0))
    by_hand = {path: ResumePoint(path, number, path == newest) for number, path in numbers.items()}
    known = {
        each.path: ResumePoint(
            path=each.path,
            number=each.number,
            is_newest=each.path == newest,
            done_count=each.done_count,
            failed_count=each.failed_count,
            created_at=each.created_at,
            dag=each.dag_id,
        )
        for each in written
        if each.path in there
    }
    return sorted({**by_hand, **known}.values(), key=lambda start: (-start.number, start.path))


def options_seen(dag: Dag) -> list[OptionLine]:
    """All options of a run with their defaults."""
    now, defaults = options_of(dag), RunOptions()
    return [
        OptionLine(
            name=each.name,
            value=getattr(now, each.name),
            default=getattr(defaults, each.name),
            is_live=each.name in LIVE_OPTIONS,
        )
        for each in fields(RunOptions)
    ]


def categories_of(dag: Dag) -> list[CategoryLine]:
    """Categories that have a limit, a tolerance or submitted nodes."""
    submitted: dict[str, int] = {
        name: count
        for name, count in dag.category_counts.items()
        # No category's name begins with a blank: so do those of other counts.
        if count and name.strip() == name != ""
    }
    tolerated = tolerated_by_category(dag)
    return [
        CategoryLine(
            name,
            dag.category_limits.get(name),
            submitted.get(name, 0),
            tolerance=dag.tolerances[name]["given"] if name in dag.tolerances else "",
            tolerance_left=room_of(dag, name) if name in dag.tolerances else None,
            tolerated=tolerated.get(name, 0),
        )
        for name in sorted({*dag.category_limits, *dag.tolerances, *submitted})
    ]


def shared_limits_of(dag: Dag) -> QuerySet[SharedLimit]:
    """Limits that a DAG shares with others, with the number of `submitted` nodes under each."""
    return with_submitted(limits_of(dag))
