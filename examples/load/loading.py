"""Loading of the example, step by step: accounts, sites, pilots, DAGs, jobs, nodes, TaskQueues.

Then the real loops make ads, requests for pilots, failure groups and the history of them.
`refuse_unless_empty` raises `NotEmpty` where the portal has objects already.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from django.db import connection, transaction

from examples.load.accounts_and_sites import close_some, keep_ads_alive, make_accounts, make_places
from examples.load.archives import fill_archives
from examples.load.copying import moment
from examples.load.graphs import Graphs, make_dags
from examples.load.jobs import Common, Jobs, needs_of
from examples.load.pilots import Fleet
from examples.load.scale import Scale
from examples.load.simulation import in_order, play_all
from wms.dags.models import Dag
from wms.dags.negotiation.requests import loads_by_site
from wms.failures.counting import remove_old_bins
from wms.failures.grouping import group_announced
from wms.jobs.models import Job
from wms.pilots.models import Pilot
from wms.pilots.pressure.director import plan_requests
from wms.sites.ads import publish_ads
from wms.sites.models import Site
from wms.taskqueues.operations import Entry, enqueue
from wms.taskqueues.priorities import recompute

Say = Callable[[str], None]
_ENQUEUED = 5_000


class NotEmpty(Exception):
    """The portal has things of its own; the text says which."""


def refuse_unless_empty() -> None:
    """Raise NotEmpty when there is anything that the example could be taken for."""
    for model in (Dag, Job, Pilot, Site):
        if model._default_manager.exists():
            raise NotEmpty(f"there are {model._meta.verbose_name_plural} in this portal already")


def load(scale: Scale, *, password: str, now: datetime, say: Say = lambda words: None) -> None:
    """Fill the database; `say` is told what has been done. One transaction a step."""
    steps = _Steps(scale, password, now.replace(microsecond=0))
    for step in (
        steps.make_places, steps.make_pilots, steps.play, steps.make_dags, steps.make_jobs,
        steps.make_nodes, steps.enqueue, steps.publish, steps.analyze, steps.group_failures,
        steps.fill_archives, steps.analyze,
    ):  # fmt: skip
        began_s = time.monotonic()
        told = step()
        say(f"{time.monotonic() - began_s:6.1f} s  {told}")


class _Steps:
    """What each step leaves for those after it."""

    def __init__(self, scale: Scale, password: str, now: datetime) -> None:
        self._scale, self._password, self._now = scale, password, now
        self._now_s = now.timestamp()
        self._draw = random.Random(scale.seed)

    @transaction.atomic
    def make_places(self) -> str:
        self._owners = make_accounts(self._password)
        self._places = make_places(self._scale, self._draw)
        close_some(self._places, self._draw, self._now)
        return f"{len(self._places)} sites, {len(self._owners)} owners"

    @transaction.atomic
    def make_pilots(self) -> str:
        self._runners = Fleet(self._scale, self._draw, self._now_s).write(self._places)
        return f"{self._scale.pilots} pilots"

    def play(self) -> str:
        weights, owners = [place.weight for place in self._places], len(self._owners)
        self._flows = play_all(self._scale, weights, owners, self._draw, self._now_s)
        return "all DAGs played through"

    @transaction.atomic
    def make_dags(self) -> str:
        self._dags = make_dags(self._flows, self._owners, self._places, self._now_s)
        return f"{len(self._dags)} DAGs"

    @transaction.atomic
    def make_jobs(self) -> str:
        commons = [self._common(number) for number in range(len(self._flows))]
        writer = Jobs(self._scale.jobs, self._draw, self._now_s)
        self._waiting = writer.write(in_order(self._flows), self._flows, commons)
        return f"{self._scale.jobs} jobs with attempts and events"

    def _common(self, number: int) -> Common:
        flow, dag = self._flows[number], self._dags[number]
        owner, place = self._owners[flow.owner], self._places[flow.site]
        return Common(
            owner=owner, place=place, runners=self._runners[flow.site], dag_id=dag.pk,
            workspace_id=dag.workspace_id, needs=needs_of(owner, place.site.name),
        )  # fmt: skip

    @transaction.atomic
    def make_nodes(self) -> str:
        Graphs(self._now_s).write(self._flows, self._dags)
        return f"{sum(flow.nodes for flow in self._flows)} nodes"

    def enqueue(self) -> str:
        for batch in _batches(self._waiting, _ENQUEUED):
            enqueue(batch)
        recompute()
        return f"{len(self._waiting)} jobs wait in TaskQueues"

    def publish(self) -> str:
        publish_ads(loads_by_site(), now=self._now)
        keep_ads_alive(self._now)
        plan_requests(self._now)
        return "ads of all sites, and what is asked of each queue"

    def analyze(self) -> str:
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
        return "statistics for the planner"

    def group_failures(self) -> str:
        grouped = 0
        while count := group_announced(self._now):
            grouped += count
        remove_old_bins(now=self._now)
        return f"{grouped} failures in their groups"

    @transaction.atomic
    def fill_archives(self) -> str:
        fill_archives(self._scale, self._now)
        return f"archives since {moment(self._now_s) - timedelta(days=self._scale.days):%Y-%m-%d}"


def _batches(entries: Sequence[Entry], size: int) -> list[Sequence[Entry]]:
    return [entries[start : start + size] for start in range(0, len(entries), size)]
