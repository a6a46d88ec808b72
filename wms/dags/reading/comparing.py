"""Comparison of two DAGs, node by node of equal names, and the runs that a DAG is compared with.

`here` is the DAG that is looked at, `there` the one that it is compared with. All nodes are joined
in one statement, of which a page of lines comes back with the counts and sums of all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from wms.core.labels import campaigns_among, label_of_campaign
from wms.core.models import User
from wms.dags.lifecycle import JOB_TOPIC
from wms.dags.models import Dag
from wms.dags.reading.selectors import NodeCounts, counts_by_state, visible_dags
from wms.dags.reading.sql import COMPARE_DESCRIPTIONS, COMPARE_NODES
from wms.jobs.uses import UseOfJobs, use_of

#: Kinds of differences of a node, in words.
DIFFERENCES: Mapping[str, str] = {
    "only_here": "only here",
    "only_there": "only there",
    "state": "state",
    "outcome": "exit code or cause",
    "tries": "tries",
    "site": "site",
    "slower": "slower",
    "faster": "faster",
    "longer_queue": "longer in the queue",
    "shorter_queue": "shorter in the queue",
}
#: Choices of lines beside the kinds of differences.
CHOICES: Mapping[str, str] = {
    "all": "all nodes",
    "any": "any difference",
    **DIFFERENCES,
    "equal": "no difference",
}
#: Times differ when they do so by a fifth, and by so many seconds.
LEAST_S = 10.0
#: Most lines of a page.
MOST_LINES = 1000
_DESCRIPTIONS = 50
_SITES = 10
_PROPOSED = 10


@dataclass(frozen=True, slots=True)
class Side:
    """Node of one of the DAGs; `tries` are its retries and the attempts of its latest job.

    `queue_s` is from the submission of this job to the start of its latest attempt, `wall_s` how
    long that ran; None where it did not.
    """

    id: int
    state: str
    site: str
    tries: int
    exit_code: int | None
    signal: int | None
    cause: str
    queue_s: float | None
    wall_s: float | None


@dataclass(frozen=True, slots=True)
class ComparedNode:
    """Nodes of one name; `slower_s` is how much longer it ran here."""

    name: str
    here: Side | None
    there: Side | None
    slower_s: float | None
    differences: Sequence[str]


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums of one DAG: nodes by state, and nodes, seconds and core-hours of its jobs.

    `sites` are those where most nodes ran, `elapsed_s` is from its match or, before, its submission
    to its end.
    """

    states: NodeCounts
    elapsed_s: float
    wall_s: float
    queue_s: float
    use: UseOfJobs
    sites: Sequence[tuple[str, int]]
    more_sites: int


@dataclass(frozen=True, slots=True)
class ChangedDescription:
    """Submit description that is not the same in both DAGs, or stands in one alone."""

    name: str
    is_here: bool
    is_there: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of two DAGs, with one page of its lines; `total` lines are chosen.

    `counts` are of nodes by kind of difference, with `all`, `any` and `equal`.
    """

    here: Sums
    there: Sums
    counts: Mapping[str, int]
    total: int
    lines: Sequence[ComparedNode]
    descriptions: Sequence[ChangedDescription]
    are_descriptions_cut: bool


def compare(
    here: Dag, there: Dag, *, chosen: str = "all", offset: int = 0, limit: int = 100
) -> Comparison:
    """Comparison of two DAGs that the caller has found visible. Eight queries at most.

    `chosen` is one of CHOICES. Differences come first, those of states and ends before others, and
    the largest slow-downs first.
    """
    values: dict[str, Any] = {
        "here": here.pk, "there": there.pk, "chosen": chosen, "offset": offset,
        "limit": limit, "least_s": LEAST_S,
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(COMPARE_NODES, values)
        whole, differing, sites, lines = map(json.loads, cursor.fetchone())
        cursor.execute(COMPARE_DESCRIPTIONS, {**values, "limit": _DESCRIPTIONS + 1})
        changed = [ChangedDescription(*row) for row in cursor.fetchall()]
    counts = dict.fromkeys(CHOICES, 0) | differing
    counts |= {name: whole[name] for name in ("all", "equal")}
    counts["any"] = counts["all"] - counts["equal"]
    return Comparison(
        here=_sums(here, "here", whole, sites),
        there=_sums(there, "there", whole, sites),
        counts=counts,
        total=counts[chosen],
        lines=[_line(row) for row in lines],
        descriptions=changed[:_DESCRIPTIONS],
        are_descriptions_cut=len(changed) > _DESCRIPTIONS,
    )


def _sums(dag: Dag, side: str, whole: Mapping[str, Any], sites: Sequence[Any]) -> Sums:
    there = [(row["site"], row["nodes"]) for row in sites if row["side"] == side]
    return Sums(
        states=counts_by_state(dag),
        elapsed_s=_elapsed_s(dag),
        wall_s=whole[f"{side}_wall_s"] or 0.0,
        queue_s=whole[f"{side}_queue_s"] or 0.0,
        use=use_of(Q(topic=JOB_TOPIC, topic_key=dag.pk)),
        sites=there[:_SITES],
        more_sites=max(0, len(there) - _SITES),
    )


def _elapsed_s(dag: Dag) -> float:
    begun = dag.matched_at or dag.created_at
    ended = dag.ended_at or Dag.objects.filter(pk=dag.pk).values_list(Now(), flat=True).get()
    return max(0.0, (ended - begun).total_seconds())


def _line(row: Mapping[str, Any]) -> ComparedNode:
    return ComparedNode(
        row["name"], _side(row, "here"), _side(row, "there"), row["slower_s"], row["differences"]
    )


def _side(row: Mapping[str, Any], side: str) -> Side | None:
    if row[f"{side}_id"] is None:
        return None
    return Side(
        id=row[f"{side}_id"],
        state=row[f"{side}_state"],
        site=row[f"{side}_site"] or "",
        tries=row[f"{side}_tries"],
        exit_code=row[f"{side}_code"],
        signal=row[f"{side}_signal"],
        cause=row[f"{side}_cause"],
        queue_s=row[f"{side}_queue_s"],
        wall_s=row[f"{side}_wall_s"],
    )


@dataclass(frozen=True, slots=True)
class Proposed:
    """Runs that a DAG may be compared with, and why."""

    why: str
    dags: Sequence[Dag]


def proposed_runs(
    user: User, dag: Dag, more: Sequence[tuple[str, QuerySet[Dag]]] = ()
) -> list[Proposed]:
    """Runs that the user may see and that are akin to a DAG, the latest first.

    Its rescue chain, earlier runs of its name and owner, `more` that an app above knows of, and its
    campaigns. Each is once there.
    """
    others = visible_dags(user).exclude(pk=dag.pk).order_by("-pk")
    akin: list[tuple[str, QuerySet[Dag]]] = [
        ("Rescue chain", others.filter(workspace=dag.workspace_id, parent_node=dag.parent_node_id)),
        ("Same name and owner", others.filter(owner=dag.owner_id, name=dag.name, pk__lt=dag.pk)),
    ]
    akin += [(why, others.filter(pk__in=dags.values("pk"))) for why, dags in more]
    akin += [
        (f"Campaign {name}", others.filter(labels__contains=[label_of_campaign(name)]))
        for name in campaigns_among(dag.labels)[:3]
    ]
    return _first_of_each(akin)


def _first_of_each(akin: Sequence[tuple[str, QuerySet[Dag]]]) -> list[Proposed]:
    """The latest of each kind of runs, without those of kinds before, and without empty kinds."""
    known: set[int] = set()
    found = []
    for why, dags in akin:
        rows = dags.select_related("owner").only(*_PROPOSED_COLUMNS)[: _PROPOSED + len(known)]
        new = [each for each in rows if each.pk not in known][:_PROPOSED]
        known |= {each.pk for each in new}
        if new:
            found.append(Proposed(why, new))
    return found


_PROPOSED_COLUMNS = (
    "name", "state", "created_at", "ended_at", "node_count", "done_count", "failed_count",
    "owner__username",
)  # fmt: skip
