"""DAGs moved at random: what counts as bound equals a recount from the events of DAGs and jobs."""

from __future__ import annotations

import io
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import Q, QuerySet
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from matching.task_queues.resources import Resource
from tests.wms.dags.driving import ANYTHING, NOW, PILOT, end
from wms.core.actors import Actor
from wms.core.models import InboxEntry, User
from wms.dags.engine import cycle as engine
from wms.dags.lifecycle import TOPICS
from wms.dags.models import Dag, DagEvent, MatchRecord, Node, NodeEvent
from wms.dags.negotiation import cycle as negotiation
from wms.dags.negotiation import requests as demand
from wms.dags.negotiation.cycle import read_offers
from wms.dags.services.dags import halt_dags, hold_dags, release_dags, rematch_dags, remove_dags
from wms.dags.states import DAG_TERMINAL, NODE_TERMINAL
from wms.dags.submission.submit import DagSubmission, submit_dag
from wms.jobs.models import Attempt, Job, LoggedJobEvent
from wms.jobs.operations import bind_to_pilot
from wms.jobs.states import TERMINAL
from wms.sites.models import Site
from wms.taskqueues.operations import claim

WHY = {"actor": Actor.system("test"), "reason": "test"}
PLACES = 2
FILES = {
    "one.sub": "executable = /bin/true\nqueue\n",
    "two.sub": "executable = /bin/true\nqueue 2\n",
    "inner.dag": "JOB X one.sub\nJOB Y one.sub\nJOB V two.sub\n",
    "outer.dag": "JOB X one.sub\nSUBDAG EXTERNAL S inner.dag\n",
}
SHAPES = (
    "JOB A one.sub\nJOB B one.sub\nRETRY A 1\n",
    "JOB A two.sub\nJOB B one.sub\nPARENT A CHILD B\n",
    "JOB A one.sub\nSUBDAG EXTERNAL S inner.dag\n",
    "SUBDAG EXTERNAL S outer.dag\nJOB A one.sub\n",
)
a_choice = st.integers(0, 3)
a_site = st.sampled_from(["site-a", "site-b"])


class Bound(RuleBasedStateMachine):
    """DAGs of two people at two sites, one of which counts DAGs, and the other one jobs."""

    @initialize(shapes=st.tuples(st.sampled_from(SHAPES), st.sampled_from(SHAPES)))
    def begin(self, shapes: tuple[str, str]) -> None:
        self.dags: list[Dag] = []
        for number, shape in enumerate(shapes):
            self.submit(shape, number)
        self.negotiate(forgives=True)
        self.offers = read_offers(NOW)

    @rule(shape=st.sampled_from(SHAPES), who=st.integers(0, 1))
    def submit(self, shape: str, who: int) -> None:
        owner = User.objects.get(username=("alice", "charlie")[who])
        submission = DagSubmission(
            "case.dag",
            shape,
            {name: io.BytesIO(text.encode()) for name, text in FILES.items()},
            description_name="case.sub",
            description_text=f"concurrency_limits = db:{who + 1}\nqueue\n",
        )
        self.dags.append(submit_dag(submission, owner=owner, actor=Actor.person(owner)))

    @rule(forgives=st.booleans())
    def negotiate(self, forgives: bool) -> None:
        if forgives:
            MatchRecord.objects.filter(dag__in=self.dags).update(avoided_until=None)
        negotiation.run_cycle(NOW)
        _settle()

    @rule(site=a_site)
    def claim(self, site: str) -> None:
        """The host bears the site's name, as events of jobs tell no other place."""
        claimed = claim(Resource(site=site, **ANYTHING))
        if claimed is not None:
            bind_to_pilot(claimed, pilot_id=1, site_name=site, host=site, free_cores=1, actor=PILOT)

    @rule(choice=a_choice, code=st.integers(0, 1))
    def end_a_job(self, choice: int, code: int) -> None:
        running = list(Attempt.objects.filter(outcome="").order_by("pk"))
        if running:
            end(running[choice % len(running)], code)
            _settle()

    @rule(choice=a_choice)
    def hold(self, choice: int) -> None:
        self._move(hold_dags, choice)

    @rule(choice=a_choice)
    def halt(self, choice: int) -> None:
        self._move(halt_dags, choice)

    @rule(choice=a_choice)
    def release(self, choice: int) -> None:
        self._move(release_dags, choice)

    @rule(choice=a_choice)
    def remove(self, choice: int) -> None:
        self._move(remove_dags, choice)

    @rule(choice=a_choice, lets_finish=st.sampled_from((True, True, False)))
    def rematch(self, choice: int, lets_finish: bool) -> None:
        for site in ("site-a", "site-b"):
            self.claim(site)
        self._move(rematch_dags, choice, lets_finish=lets_finish)

    def _move(self, service: Callable[..., object], choice: int, **how: object) -> None:
        service([self.dags[choice % len(self.dags)].pk], **WHY, **how)
        _settle()

    @precondition(lambda self: hasattr(self, "offers"))
    @invariant()
    def counts_equal_a_recount(self) -> None:
        recounts = _Log(self.dags).recounts()
        dags, jobs, holders, limits = Counter(), Counter(), Counter(), Counter()
        for each in recounts:
            for site in each.sites:
                dags[site] += 1
                jobs[site] += each.jobs[site]
                holders[each.owner] += 1 if site == "site-a" else each.jobs[site] / 2
            if each.sites:
                limits["db"] += each.limit
        sites = dict(Site.objects.values_list("pk", "name"))
        loads = {sites[pk]: load for pk, load in demand.loads_by_site().items()}
        assert {name: load.dags for name, load in loads.items()} == dags
        assert {name: load.unfinished_nodes for name, load in loads.items()} == dict(jobs)
        strip = {sites[pk]: work.load for pk, work in demand.work_by_site().items()}
        assert strip == loads
        usage = demand.usage(self.offers)
        held = {name: share.held for name, share in usage.submitters.items() if share.held}
        assert sum(usage.held_by_group.values()) == sum(holders.values())
        assert all(held[name] == holders[name] for name in held)
        assert demand.limits_in_use() == dict(limits)
        assert dags["site-a"] <= PLACES

    def teardown(self) -> None:
        ids = [dag.pk for dag in getattr(self, "dags", [])]
        remove_dags(ids, **WHY)
        _settle()
        assert (demand.loads_by_site(), demand.limits_in_use()) == ({}, {})


class _Log:
    """The events of DAGs, of all DAGs inside of them, and of their nodes and jobs, in order."""

    def __init__(self, outermost: list[Dag]) -> None:
        ids = [dag.pk for dag in outermost]
        self.dags = list(Dag.objects.filter(Q(pk__in=ids) | Q(root__in=ids)).order_by("pk"))
        self.of_dags = _by_key(DagEvent.objects.filter(dag__in=self.dags), "dag_id")
        self.of_nodes = _by_key(NodeEvent.objects.filter(dag__in=self.dags), "node_id")
        self.nodes: dict[int, list[int]] = defaultdict(list)
        for pk, dag_id in Node.objects.filter(dag__in=self.dags).values_list("pk", "dag_id"):
            self.nodes[dag_id].append(pk)
        self.jobs: dict[int, list[Job]] = defaultdict(list)
        jobs = Job.objects.filter(topic="dag-jobs", topic_key__in=[dag.pk for dag in self.dags])
        for job in jobs.only("cluster_id", "topic_key"):
            self.jobs[job.topic_key].append(job)
        self.of_jobs = _by_key(LoggedJobEvent.objects.filter(job__in=jobs), "job_id")

    def recounts(self) -> list[_Recount]:
        return [_Recount(self, dag) for dag in self.dags if dag.root_id is None]


def _by_key(events: QuerySet[Any], key: str) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = defaultdict(list)
    for event in events.order_by("pk"):
        found[getattr(event, key)].append(event)
    return found


def _state(events: list[Any]) -> str:
    return next((event.to_state for event in reversed(events) if event.to_state), "")


class _Recount:
    """Places of one DAG, and how many jobs count there, from the events of everything in it."""

    def __init__(self, log: _Log, dag: Dag) -> None:
        self.log = log
        self.owner, self.limit = f"{dag.owner_id}/", dag.concurrency_limits["db"]
        self.tree = [each for each in log.dags if dag.pk in (each.pk, each.root_id)]
        place = self._place(dag)
        left = Counter(site for site in self._sites_of_jobs() if site != place)
        self.jobs: Counter[str] = Counter(left)
        self.sites = set(left)
        if place:
            self.sites.add(place)
            self.jobs[place] = self._weight(dag) - sum(left.values())

    def _place(self, dag: Dag) -> str:
        """The site that the last match gave, unless it was taken back or the DAG has ended."""
        place = ""
        for event in self.log.of_dags[dag.pk]:
            if event.event == "match":
                place = event.facts["site"]
            elif event.event == "rematch" or event.to_state in DAG_TERMINAL:
                place = ""
        return place

    def _sites_of_jobs(self) -> list[str]:
        """The site of each list of jobs that has not ended and has been with a pilot."""
        sites: dict[int, str] = {}
        alive: set[int] = set()
        for job in [job for dag in self.tree for job in self.log.jobs[dag.pk]]:
            cluster, events = job.cluster_id or job.pk, self.log.of_jobs[job.pk]
            matches = [event.facts["host"] for event in events if event.event == "match"]
            if matches:
                sites[cluster] = matches[-1]
            if _state(events) not in TERMINAL:
                alive.add(cluster)
        return [sites[cluster] for cluster in alive if cluster in sites]

    def _weight(self, dag: Dag) -> int:
        """Nodes of a DAG that have not ended, each with a DAG inside by the nodes of that."""
        inner = {
            each.parent_node_id: each
            for each in self.tree
            if _state(self.log.of_dags[each.pk]) not in DAG_TERMINAL
        }
        nodes = [
            pk
            for pk in self.log.nodes[dag.pk]
            if _state(self.log.of_nodes[pk]) not in NODE_TERMINAL
        ]
        return max(1, sum(self._weight(inner[pk]) if pk in inner else 1 for pk in nodes))


def _settle() -> None:
    for _ in range(12):
        engine.run_cycle(NOW)
        if not InboxEntry.objects.filter(topic__in=TOPICS).exists():
            return
    raise AssertionError("the engine does not come to rest")


@pytest.mark.slow
def test_what_is_bound_equals_a_recount_from_the_events_whatever_is_done_to_dags(
    make_site, alice: User, charlie: User
) -> None:
    make_site("site-a", max_matches=PLACES)
    make_site("site-b", max_matches=100, matches_unit="jobs", group_size=2)
    run_state_machine_as_test(
        Bound,
        settings=settings(
            max_examples=8,
            stateful_step_count=12,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
