"""Search over everything that a user may see: by number, by the id of a pilot, by words of names.

Each kind is asked once, for a bounded number of hits; the links behind them lead to the lists that
have all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.http import urlencode

from wms.accounting.walls import Walls, seen_by
from wms.core.models import User
from wms.dags.reading.selectors import listed_dags
from wms.dags.trials.selectors import listed_trials
from wms.failures.selectors import visible_groups
from wms.jobs.clusters.selectors import listed_clusters
from wms.jobs.selectors import listed_jobs
from wms.pilots.selectors import listed_pilots
from wms.placement.selectors import listed_requests
from wms.schedules.selectors import listed_schedules
from wms.sites.models import Queue
from wms.sites.selectors import visible_sites

#: Hits of one kind that are shown.
MOST_OF_A_KIND = 8
MAX_CHARACTERS = 200
_MAX_NUMBER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Hit:
    """One object that was found; `state` and `badge` say what its badge shows, if it has one."""

    name: str
    address: str
    beside: str = ""
    state: str = ""
    badge: str = ""


@dataclass(frozen=True, slots=True)
class Hits:
    """Hits of one kind, and the address of the list that has all; empty where there is none."""

    title: str
    hits: Sequence[Hit]
    is_cut: bool = False
    all_address: str = ""


def find_everywhere(user: User, text: str) -> list[Hits]:
    """Hits by kind, without kinds of which nothing was found. Nothing is found by an empty text."""
    text = text.strip()[:MAX_CHARACTERS]
    if not text:
        return []
    if text.isascii() and text.isdigit():
        found = _by_number(user, int(text)) if int(text) <= _MAX_NUMBER else iter(())
    elif (uuid := _uuid(text)) is not None:
        pilots = listed_pilots(user).filter(uuid=uuid)
        found = iter([_cut("Pilots", pilots, _pilot)])
    else:
        found = _by_words(user, text)
    return [each for each in found if each.hits]


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _by_number(user: User, number: int) -> Iterator[Hits]:
    kinds: list[tuple[str, QuerySet[Any], Callable[[Any], Hit]]] = [
        ("DAGs", listed_dags(user), _dag),
        ("Jobs", listed_jobs(user), _job),
        ("Clusters", listed_clusters(user), _cluster),
        ("Pilots", listed_pilots(user), _pilot),
        ("Placements", listed_requests(user), _placement),
        ("Failures", visible_groups(user), _failure),
        ("Schedules", listed_schedules(user), _schedule),
        ("Trials", listed_trials(user), _trial),
    ]
    for title, rows, hit in kinds:
        yield Hits(title, [hit(row) for row in rows.filter(pk=number)])


def _by_words(user: User, text: str) -> Iterator[Hits]:
    """Names that contain the text. Jobs are too many: there is a link to their list instead."""
    sites = visible_sites(user).filter(name__icontains=text).order_by("name")
    yield _cut("Sites", sites, _site, "web:sites", name=text)
    queues = Queue.objects.filter(site__in=visible_sites(user), name__icontains=text)
    yield _cut("Queues", queues.select_related("site").order_by("site__name", "name"), _queue)
    dags = listed_dags(user).filter(name__icontains=text)
    yield _cut("DAGs", dags, _dag, "web:dags", name=text)
    clusters = listed_clusters(user).filter(name__icontains=text)
    yield _cut("Clusters", clusters, _cluster, "web:clusters", name=text)
    schedules = listed_schedules(user).filter(name__icontains=text)
    yield _cut("Schedules", schedules, _schedule, "web:schedules", name=text)
    groups = visible_groups(user).filter(text__icontains=text).order_by("-last_seen", "-pk")
    yield _cut("Failures", groups, _failure, "web:errors", text=text, within="all")
    people = seen_by(user, User.objects.filter(username=text), Walls.of_users)
    yield _cut("DAGs of", people, _person)
    jobs = f"{reverse('web:jobs')}?{urlencode({'name': text})}"
    yield Hits("Jobs", [Hit(f"Jobs whose name contains {text}", jobs)])


def _cut(
    title: str, rows: QuerySet[Any], hit: Callable[[Any], Hit], view: str = "", **query: str
) -> Hits:
    found = list(rows[: MOST_OF_A_KIND + 1])
    address = f"{reverse(view)}?{urlencode(query)}" if view else ""
    shown = [hit(row) for row in found[:MOST_OF_A_KIND]]
    return Hits(title, shown, len(found) > MOST_OF_A_KIND, address)


def _dag(dag: Any) -> Hit:
    beside = f"of {dag.owner.username}"
    return Hit(f"{dag.name} {dag.pk}", reverse("web:dag", args=[dag.pk]), beside, dag.state, "dag")


def _job(job: Any) -> Hit:
    beside = f"of {job.owner.username}"
    return Hit(f"{job.name} {job.pk}", reverse("web:job", args=[job.pk]), beside, job.state, "job")


def _cluster(cluster: Any) -> Hit:
    return Hit(
        f"{cluster.name} {cluster.pk}", reverse("web:cluster", args=[cluster.pk]),
        f"of {cluster.owner.username}", cluster.state, "cluster",
    )  # fmt: skip


def _pilot(pilot: Any) -> Hit:
    return Hit(
        f"Pilot {pilot.pk}", reverse("web:pilot", args=[pilot.pk]), f"at {pilot.queue}",
        pilot.state, "pilot",
    )  # fmt: skip


def _placement(request: Any) -> Hit:
    return Hit(
        f"Placement {request.pk}", reverse("web:placement", args=[request.pk]),
        state=request.state, badge="placement",
    )  # fmt: skip


def _failure(group: Any) -> Hit:
    address = f"{reverse('web:error', args=[group.pk])}?within=all"
    return Hit(group.text, address, f"{group.total:,} in all", group.state, "failure")


def _schedule(schedule: Any) -> Hit:
    return Hit(
        f"{schedule.name} {schedule.pk}", reverse("web:schedule", args=[schedule.pk]),
        f"of {schedule.owner.username}", schedule.state, "schedule",
    )  # fmt: skip


def _trial(trial: Any) -> Hit:
    return Hit(f"Trial {trial.pk}", reverse("web:trial", args=[trial.pk]))


def _site(site: Any) -> Hit:
    return Hit(site.name, reverse("web:site", args=[site.name]))


def _queue(queue: Any) -> Hit:
    return Hit(str(queue), reverse("web:queue", args=[queue.site.name, queue.name]))


def _person(user: Any) -> Hit:
    return Hit(user.username, f"{reverse('web:dags')}?{urlencode({'owner': user.username})}")
