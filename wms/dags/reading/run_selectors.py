"""Reading a DAG as a run: what is around and inside of it, what it may begin from, its limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime

from django.db.models import Q, QuerySet

from wms.dags.engine.round import options_of
from wms.dags.engine.throttles import limits_of
from wms.dags.engine.transitions import DATA_CATEGORY
from wms.dags.language.spec import RunOptions
from wms.dags.models import Dag, Rescue, SharedLimit
from wms.dags.reading.sql import FIND_OUTER_DAGS
from wms.dags.rescue.names import rescue_stem
from wms.dags.rescue.rescue_files import rescue_numbers_among, rescue_prefix
from wms.dags.services.dags import LIVE_OPTIONS
from wms.dags.services.shared_limits import with_submitted
from wms.jobs.models import WorkspaceFile


@dataclass(frozen=True, slots=True)
class Start:
    """A file that a run may begin from: a rescue, or a save point, whose number is 0.

    What was done and failed is known of those that Pilotage wrote.
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
        """How it is named in a choice."""
        if self.is_newest:
            return "newest"
        return str(self.number) if self.number else f"save:{self.path}"


@dataclass(frozen=True, slots=True)
class OptionLine:
    """One option of a run: its value, and whether it can be changed while the run goes on."""

    name: str
    value: int | bool
    default: int | bool
    is_live: bool


@dataclass(frozen=True, slots=True)
class CategoryLine:
    """A category of nodes: its limit, if it has one, and how many nodes are submitted."""

    name: str
    limit: int | None
    submitted: int


@dataclass(frozen=True, slots=True)
class OtherRuns:
    """DAGs that the nodes of a DAG run, latest first, and runs that went on from it."""

    inner: Sequence[Dag]
    further: Sequence[Dag]


def other_runs(dag: Dag, *, inner: int, further: int) -> OtherRuns:
    """At most so many of each, with the nodes that run them; one query."""
    inside = Dag.objects.filter(parent_node__dag=dag).order_by("-pk").values("pk")[:inner]
    after = next_runs(dag).values("pk")[:further]
    rows = Dag.objects.filter(pk__in=inside.union(after, all=True)).select_related("parent_node")
    columns = ("name", "state", "done_count", "node_count", "previous_run_id", "parent_node__name")
    found = list(rows.only(*columns, "parent_node__dag_id").order_by("-pk"))
    return OtherRuns(
        inner=[each for each in found if each.parent_node and each.parent_node.dag_id == dag.pk],
        further=[each for each in reversed(found) if each.previous_run_id == dag.pk],
    )


def outer_of(dag: Dag) -> list[Dag]:
    """The DAGs around a DAG, the outermost first; a query if there are more than one.

    The first one has been read with the DAG, as `find_dag` does.
    """
    if dag.parent_node is None:
        return []
    outer = dag.parent_node.dag
    if outer.parent_node_id is None:
        return [outer]
    return [*Dag.objects.raw(FIND_OUTER_DAGS, [outer.pk]), outer]


def next_runs(dag: Dag) -> QuerySet[Dag]:
    """The runs that went on from this one."""
    return dag.next_runs.order_by("pk")


def rescues_of(dag: Dag) -> QuerySet[Rescue]:
    """The rescues and save points that were written of a DAG's files, latest first."""
    stem = rescue_stem(dag.dag_files)
    return Rescue.objects.filter(workspace=dag.workspace_id, dag_file=stem).order_by("-pk")


def starts_of(dag: Dag, written: Sequence[Rescue]) -> list[Start]:
    """What a further run may begin from: rescues, the newest first, then save points; one query.

    `written` are those of `rescues_of`, all of them.
    """
    by_name = Q(path__startswith=rescue_prefix(dag.dag_files))
    files = WorkspaceFile.objects.filter(
        by_name | Q(path__in={each.path for each in written}), workspace=dag.workspace_id
    )
    there = set(files.values_list("path", flat=True))
    numbers = rescue_numbers_among(there, dag.dag_files)
    newest = numbers.get(max(numbers, default=0))
    by_hand = {path: Start(path, number, path == newest) for number, path in numbers.items()}
    known = {
        each.path: Start(
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
    """All options of a run, those of a language with their defaults."""
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
    """The categories that have a limit, or of which nodes are submitted."""
    submitted: dict[str, int] = {
        name: count
        for name, count in dag.category_counts.items()
        if count and name not in ("", DATA_CATEGORY)
    }
    return [
        CategoryLine(name, dag.category_limits.get(name), submitted.get(name, 0))
        for name in sorted({*dag.category_limits, *submitted})
    ]


def shared_limits_of(dag: Dag) -> QuerySet[SharedLimit]:
    """The limits that a DAG shares with others, with how many nodes are `submitted` under each."""
    return with_submitted(limits_of(dag))
