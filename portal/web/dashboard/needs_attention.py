"""Attention items of the dashboard: what needs a person, and the link to act on it.

DAGs failing, held or without a site; held jobs; sites, queues, node checks and control loops in
trouble. Downtimes are planned: they stand with the sites.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby, zip_longest
from typing import Any

from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from portal.shared.site_lines import SiteLine
from portal.web.dashboard.attention_rows import MOST_OF_A_KIND
from wms.accounting.frontends import called
from wms.core.selectors import LoopHealth, LoopStatus
from wms.dags.models import Dag
from wms.dags.states import DagState
from wms.remarks.selectors import NO_CARE, Care
from wms.remarks.states import SubjectKind

_FAILING = frozenset({DagState.RUNNING.value, DagState.FAILED.value})
_UNWANTED = frozenset({"late", "expired", "throttled"})


@dataclass(frozen=True, slots=True)
class AttentionItem:
    """One thing that needs a person, or several alike, whose name says what and how many they are.

    `state` gives its badge; `act` is the label of the link.
    """

    state: str
    kind: str
    label: str
    thing: str
    name: str
    address: str
    mark: str
    why: str
    act: str
    act_address: str
    since: datetime | None = None
    beside: str = ""
    until: datetime | None = None
    failed_at: datetime | None = None
    care: Care = NO_CARE
    are_several: bool = False


def attention_items_of(
    *,
    dags: Iterable[Dag],
    failed_at: Mapping[int, datetime],
    cares: Mapping[tuple[str, int], Care],
    loops: Sequence[LoopStatus],
    sites: Sequence[SiteLine],
    rows: Sequence[tuple[Any, ...]],
    held_jobs: str,
    owner: str,
) -> list[AttentionItem]:
    """All attention items, the most severe first; those that are acknowledged after all others.

    `rows` are those of `attention_rows`, `held_jobs` is their number as text, and `owner` the user
    whose items alone are shown, or empty. DAGs come in their order; of those with equally many
    failed nodes, the one whose first failure is longest ago, `failed_at`, comes first.
    """
    of_rows: dict[str, list[AttentionItem]] = {}
    for row in rows:
        of_rows.setdefault(row[0], []).append(_of_row(row, held_jobs, owner))
    found = [
        *_of_loops(loops),
        *_of_dags(dags, failed_at, owner, cares),
        *of_rows.get("held", ()),
        *_of_sites(sites, cares),
        *of_rows.get("demand", ()),
        *of_rows.get("backoff", ()),
        *of_rows.get("credential", ()),
        *of_rows.get("check", ()),
    ]
    return sorted(found, key=lambda item: bool(item.care.acknowledged_by))


def in_turns(items: Sequence[AttentionItem], most: int) -> list[AttentionItem]:
    """At most so many items in their order, taken in turns from the things that they are about.

    So many DAGs in trouble do not hide that a site is, too.
    """
    by_thing: dict[str, list[int]] = {}
    for place, item in enumerate(items):
        by_thing.setdefault(item.thing, []).append(place)
    turns = zip_longest(*by_thing.values())
    places = [place for turn in turns for place in turn if place is not None]
    return [items[place] for place in sorted(places[:most])]


def _of_loops(loops: Sequence[LoopStatus]) -> list[AttentionItem]:
    words = {
        LoopHealth.FAILING: "",
        LoopHealth.LATE: "No run for several periods: are the worker and the beat process alive?",
    }
    return [
        AttentionItem(
            state=loop.health.value,
            kind="loop",
            label="",
            thing="Control loop",
            name=loop.name,
            address="#loops-title",
            mark=f"needy-loop-{loop.name}",
            why=loop.error or words[loop.health],
            act="",
            act_address="",
            since=loop.started_at,
        )
        for loop in loops
        if loop.health in words
    ]


def _of_dags(
    dags: Iterable[Dag],
    failed_at: Mapping[int, datetime],
    owner: str,
    cares: Mapping[tuple[str, int], Care],
) -> list[AttentionItem]:
    """Items of DAGs in their order; those of one state and care that say the same are one item."""
    alike: dict[tuple[str, str, str], list[Dag]] = {}
    for dag in _by_first_failure(dags, failed_at):
        care = cares.get((SubjectKind.DAG, dag.pk), NO_CARE)
        alike.setdefault((dag.state, _why_dag(dag), str(care)), []).append(dag)
    items = []
    for same in alike.values():
        care = cares.get((SubjectKind.DAG, same[0].pk), NO_CARE)
        one = _of_dag(same[0], failed_at) if len(same) == 1 else _of_alike(same, failed_at, owner)
        items.append(replace(one, care=care))
    return items


def _by_first_failure(dags: Iterable[Dag], failed_at: Mapping[int, datetime]) -> list[Dag]:
    """The DAGs with runs of equal severity and size put in the order of their first failures."""
    ranked: list[Dag] = []
    for _, alike in groupby(dags, key=lambda dag: (dag.state in _FAILING, _affected(dag))):
        ranked += sorted(alike, key=lambda dag: failed_at.get(dag.pk, dag.state_since))
    return ranked


def _affected(dag: Dag) -> tuple[str, int]:
    return "" if dag.state in _FAILING else dag.state, dag.failed_count + dag.futile_count


def _of_alike(dags: Sequence[Dag], failed_at: Mapping[int, datetime], owner: str) -> AttentionItem:
    """One item for DAGs that need the same for the same reason."""
    first = _of_dag(dags[0], failed_at)
    times = [failed_at[dag.pk] for dag in dags if dag.pk in failed_at]
    query = {"attention": "true", "state": dags[0].state, **({"owner": owner} if owner else {})}
    listed = f"{reverse('web:dags')}?{urlencode(query)}"
    owners = sorted({dag.owner.username for dag in dags})
    return replace(
        first,
        thing="DAG",
        name=f"{len(dags)} DAGs",
        are_several=True,
        address=listed,
        act="Show them",
        act_address=listed,
        since=min(dag.state_since for dag in dags),
        failed_at=min(times, default=None),
        beside=f"of {owners[0]}" if len(owners) == 1 else f"of {len(owners)} people",
    )


def _of_dag(dag: Dag, failed_at: Mapping[int, datetime]) -> AttentionItem:
    page = reverse("web:dag", args=[dag.pk])
    is_idle, is_failing = dag.state == DagState.IDLE, dag.state == DagState.RUNNING
    state = "unmatched" if is_idle else "failing" if is_failing else dag.state
    beside = f"of {dag.owner.username}" + (f" at {dag.site.name}" if dag.site else "")
    return AttentionItem(
        state=state,
        kind="dag" if not is_failing else "loop",
        label="no site" if is_idle else "",
        thing="DAG",
        name=f"{dag.name} {dag.pk}",
        address=page,
        mark=f"needy-{dag.pk}",
        why=_why_dag(dag),
        act=_act_of(dag),
        act_address=_act_on(dag, page),
        since=dag.state_since,
        beside=beside,
        failed_at=failed_at.get(dag.pk),
    )


def _why_dag(dag: Dag) -> str:
    if dag.state == DagState.IDLE:
        return dag.unmatched_reason or "Not considered by the negotiator yet."
    if dag.state == DagState.RUNNING:
        nodes = "node has" if dag.failed_count == 1 else "nodes have"
        futile = f", {dag.futile_count} cannot run any more" if dag.futile_count else ""
        return f"{dag.failed_count} {nodes} failed for good{futile}; the others go on."
    return dag.state_reason


def _act_of(dag: Dag) -> str:
    if dag.state == DagState.IDLE:
        return "Explain"
    if dag.state == DagState.RUNNING:
        return "Failed nodes"
    if dag.state == DagState.FAILED:
        return "Retry failed" if dag.failed_count else "New run"
    return "Release"


def _act_on(dag: Dag, page: str) -> str:
    if dag.state == DagState.IDLE:
        return f"{reverse('web:explain')}?dag={dag.pk}"
    if dag.state == DagState.RUNNING:
        return f"{page}?tab=nodes&nodes=failed"
    if dag.state == DagState.FAILED and dag.failed_count:
        return f"{reverse('web:steer-nodes', args=[dag.pk, 'retry'])}?state=failed"
    if dag.state == DagState.FAILED:
        return reverse("web:rescue", args=[dag.pk])
    return page


def _of_sites(
    sites: Sequence[SiteLine], cares: Mapping[tuple[str, int], Care]
) -> list[AttentionItem]:
    """Items of sites that get no matches although nobody closed them."""
    needy = [line for line in sites if line.state in _UNWANTED]
    return [
        AttentionItem(
            state=line.state,
            kind="site",
            label="",
            thing="Site",
            name=line.site.name,
            address=reverse("web:site", args=[line.site.name]),
            mark=f"needy-{line.site.name}",
            why="Its ad has expired or was never published, so no DAG is matched to it."
            if line.state == "late"
            else f"It is {line.standing.reason}.",
            act="Explain",
            act_address=f"{reverse('web:explain')}?{urlencode({'site': line.site.name})}",
            care=cares.get((SubjectKind.SITE, line.site.pk), NO_CARE),
        )
        for line in needy[:MOST_OF_A_KIND]
    ]


def _credential_item(
    number: int, site: str, name: str, ends: datetime, frontend: str
) -> AttentionItem:
    address, whose = reverse("web:frontend", args=[frontend]), called(frontend)
    if ends <= timezone.now():
        state, badge, beside = "expired", "credential ended", "expired"
        words = f"No pilot of {whose} is submitted with it any more: set it anew."
    else:
        state, badge, beside = "late", "credential ends", "expires"
        words = f"Pilots of {whose} are submitted with it until it expires: set it anew."
    return AttentionItem(
        state, "credential", badge, "Credential", f"{name} at {site}", address,
        f"needy-credential-{number}", words, "Frontend", address, beside=beside, until=ends,
    )  # fmt: skip


def _of_row(row: tuple[Any, ...], held_jobs: str, owner: str) -> AttentionItem:
    kind, number, site, name, since, why, count = row
    if kind == "held":
        return _held_item(number, name, since, why, held_jobs, owner)
    page = reverse("web:site", args=[site])
    queue = reverse("web:queue", args=[site, name]) if kind in {"demand", "backoff"} else ""
    if kind == "demand":
        return _demand_item(site, name, queue, why, count)
    if kind == "backoff":
        times = "once" if count == 1 else f"{count} times in a row"
        return AttentionItem(
            "late", "site", "retrying later", "Queue", f"{name} of {site}", queue,
            f"needy-queue-{number}-{row[0]}", f"Failed {times}: {why}", "Queue", queue, since,
        )  # fmt: skip
    if kind == "credential":
        return _credential_item(number, site, name, since, why)
    return AttentionItem(
        "failed", "check", "check fails", "Check", f"{name} at {site}", page,
        f"needy-check-{number}", f"{count} in the last hour: {why or 'no reason given'}",
        "Site", f"{page}#failed-checks-title", since,
    )  # fmt: skip


def _held_item(
    number: int, name: str, since: datetime, why: str, held_jobs: str, owner: str
) -> AttentionItem:
    query = urlencode({"state": "held", **({"owner": owner} if owner else {})})
    listed = f"{reverse('web:jobs')}?{query}"
    return AttentionItem(
        "held", "job", "", "Jobs", f"{held_jobs} held", listed, "needy-held-jobs",
        f"The latest, {name} {number}: {why}", "Review and release", listed, since,
    )  # fmt: skip


def _demand_item(site: str, name: str, queue: str, why: str, count: int) -> AttentionItem:
    jobs = "1 job waits" if count == 1 else f"{count} jobs wait"
    reason_text = why.strip("[]").replace('"', "").replace("\\", "")
    reason = f": {reason_text}" if reason_text else ""
    return AttentionItem(
        "unmatched", "site", "no pilots", "Queue", f"{name} of {site}", queue,
        f"needy-demand-{site}-{name}", f"{jobs} for its pilots, and the site has none{reason}.",
        "Pressure", queue,
    )  # fmt: skip
