"""Every address of the portal, with objects behind it: for tests that walk through all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

from django.db.models import Model
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from matching.needs import Needs
from tests import factories
from wms.accounting.models import AccountingGroup, ConcurrencyLimit, Submitter
from wms.core.audit import record_action
from wms.core.models import ApiToken, AuditEntry, User
from wms.dags.lifecycle import DATA_TOPIC
from wms.dags.models import Dag, Node, ScriptRun, SharedLimit
from wms.dags.shared_limits import save_shared_limit
from wms.jobs.blobs import store_bytes
from wms.jobs.limits import save_limit
from wms.jobs.models import Job, RunningLimit
from wms.pilots.models import Pilot
from wms.placement.models import PlacementRequest
from wms.placement.services import submit_request
from wms.sites.models import Downtime, Queue, Site
from wms.taskqueues.models import TaskQueue
from wms.taskqueues.services import Entry, enqueue


@dataclass(frozen=True, slots=True)
class Route:
    """One address pattern: its full name, and the names of its parameters."""

    name: str
    parameters: frozenset[str]


def routes() -> list[Route]:
    """All of them. Two patterns without a name are told apart by their text."""
    return list(_walk(get_resolver().url_patterns, ""))


def _walk(patterns: list[URLPattern | URLResolver], prefix: str) -> Iterator[Route]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            space = f"{prefix}{pattern.namespace}:" if pattern.namespace else prefix
            yield from _walk(pattern.url_patterns, space)
        else:
            name = pattern.name or f"<{pattern.pattern}>"
            yield Route(
                prefix + name, frozenset(pattern.pattern.converters or ()) | _groups(pattern)
            )


def _groups(pattern: URLPattern) -> frozenset[str]:
    regex = pattern.pattern.regex
    return frozenset(regex.groupindex)


@dataclass(frozen=True, slots=True)
class World:
    """One of each, made by the services; Alice owns what can be owned."""

    people: SimpleNamespace
    dag: Dag
    job: Job
    pilot: Pilot
    site: Site
    queue: Queue
    downtime: Downtime
    task_queue: TaskQueue
    limit: RunningLimit
    node: Node
    script: ScriptRun
    shared_limit: SharedLimit
    placement: PlacementRequest

    def address(self, route: Route) -> str:
        """An address of the route that leads to something."""
        return reverse(
            route.name, kwargs={name: self._value(route, name) for name in route.parameters}
        )

    def _value(self, route: Route, parameter: str) -> Any:
        special = {
            ("web:attempt-file", "path"): "stdout",
            ("web:dag-picture", "path"): "figure.svg",
            ("web:pilot", "pilot_id"): self.pilot.pk,
            ("web:steer-site", "event"): "ban",
            ("web:steer-nodes", "event"): "rerun",
            ("web:dag-export", "kind"): "status",
            ("api:dag-export", "kind"): "status",
            ("api:shared-limit", "limit_id"): self.shared_limit.pk,
            ("pilot_api:sent-file", "path"): "stdout",
            ("admin:app_list", "app_label"): "core",
        }
        usual = {
            "dag_id": self.dag.pk,
            "job_id": self.job.pk,
            "job": self.job.pk,
            "pilot_id": self.pilot.pk,
            "uuid": self.pilot.uuid,
            "name": self.site.name,
            "node_id": self.node.pk,
            "run_id": self.script.pk,
            "request_id": self.placement.pk,
            "downtime_id": self.downtime.pk,
            "task_queue_id": self.task_queue.pk,
            "limit_id": self.limit.pk,
            "path": "run.sh",
            "number": self.job.attempt_number,
            "attempt": self.job.attempt_number,
            "kind": "stdout",
            "event": "hold",
            "panel": "jobs",
            "archive": "1min",
            "form": "json",
            "object_id": self._admin_object(route.name),
            "content_type_id": 1,
        }
        return special.get((route.name, parameter), usual.get(parameter))

    def _admin_object(self, name: str) -> int | None:
        objects = {
            "accounting_accountinggroup": lambda: _first(AccountingGroup),
            "accounting_submitter": lambda: _first(Submitter),
            "accounting_concurrencylimit": lambda: _first(ConcurrencyLimit),
            "dags_matchmakingpolicy": lambda: 1,
            "taskqueues_taskqueuepolicy": lambda: 1,
            "taskqueues_taskqueue": lambda: self.task_queue.pk,
            "jobs_runninglimit": lambda: self.limit.pk,
            "dags_sharedlimit": lambda: self.shared_limit.pk,
            "sites_site": lambda: self.site.pk,
            "sites_queue": lambda: self.queue.pk,
            "sites_downtime": lambda: self.downtime.pk,
            "core_user": lambda: self.people.alice.pk,
            "core_apitoken": lambda: ApiToken.objects.values_list("pk", flat=True).last(),
            "core_auditentry": lambda: AuditEntry.objects.values_list("pk", flat=True).last(),
        }
        return next((find() for key, find in objects.items() if f":{key}_" in name), None)


def _first(model: type[Model]) -> int:
    return model._default_manager.order_by("pk").values_list("pk", flat=True)[0]


_FILES = {"figure.svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>"}


def small_world() -> World:
    """One DAG with one node, whose job was run by one pilot at one site."""
    people = factories.people()
    site = factories.site()
    factories.advertisement(site)
    downtime = factories.downtime(site)
    dag = factories.running_dag(people.alice, node_count=1, files=_FILES)
    pilot = factories.pilot(site.queues.get())
    job = factories.run_job(pilot)
    assert job is not None
    factories.token_for(people.olga)
    factories.accounting(people.alice)
    task_queue = _waiting_jobs(people.alice, site, 1)
    limit = RunningLimit(site=site, job_type="User", maximum=9, min_interval_s=1)
    save_limit(limit, actor=factories.SYSTEM)
    shared = SharedLimit(owner=people.alice, site=site, max_jobs=99)
    save_shared_limit(shared, actor=factories.SYSTEM)
    return World(
        people=people,
        dag=dag,
        job=job,
        pilot=pilot,
        site=site,
        queue=site.queues.get(),
        downtime=downtime,
        task_queue=task_queue,
        limit=limit,
        node=dag.nodes.get(),
        script=_script_run(dag.nodes.get()),
        shared_limit=shared,
        placement=_placement(dag),
    )


def _script_run(node: Node) -> ScriptRun:
    """A run of a script that has ended."""
    return ScriptRun.objects.create(
        dag=node.dag,
        node=node,
        kind="pre",
        retry_number=0,
        executable="prepare.sh",
        state="ended",
        exit_code=0,
        started_at=timezone.now(),
        ended_at=timezone.now(),
        output=store_bytes(b"prepared\n"),
    )


def _placement(dag: Dag) -> PlacementRequest:
    """A placement request of a DAG, which waits."""
    ad = '[ dap_type = "transfer"; src_url = "file:///a"; dest_url = "file:///b" ]'
    pk = submit_request(
        ad,
        workspace=dag.workspace,
        directory="",
        owner=dag.owner,
        topic=DATA_TOPIC,
        topic_key=dag.pk,
        actor=factories.SYSTEM,
    )
    return PlacementRequest.objects.get(pk=pk)


def _waiting_jobs(owner: User, site: Site, count: int, *, first_job: int = 10**9) -> TaskQueue:
    """A TaskQueue of jobs that no pilot takes: they need more memory than there is."""
    needs = Needs.of(owner.get_username(), memory_mb=10**6 + count, sites=[site.name])
    enqueue([Entry(first_job + number, needs, number % 11) for number in range(count)])
    return TaskQueue.objects.get(key=needs.key())


def grown(world: World, count: int) -> World:
    """The world with so many of everything that a page lists; its objects are the rich ones."""
    owner = world.people.alice
    big = factories.running_dag(owner, name="big.dag", node_count=count, files=_FILES)
    node = big.nodes.order_by("ordinal")[0]
    worker = factories.pilot(world.queue)
    job = _tried_often(worker)
    while factories.run_job(worker) is not None:
        pass
    factories.site(world.site.name, queues=[f"queue{number}" for number in range(count)])
    for number in range(count):
        factories.dag(owner, name=f"more{number}.dag", node_count=1)
        factories.advertisement(factories.site(f"Site{number}"))
        factories.downtime(world.site)
        factories.accounting(factories.person(f"person{number}"), f"group{number}")
        factories.token_for(world.people.olga)
        factories.queued_pilot(world.queue)
        _waiting_jobs(
            owner, Site.objects.get(name=f"Site{number}"), 1, first_job=3 * 10**9 + number
        )
        save_limit(RunningLimit(job_type=f"type{number}", maximum=1), actor=factories.SYSTEM)
        save_shared_limit(
            SharedLimit(category=f"c{number}", max_jobs=number), actor=factories.SYSTEM
        )
        _script_run(node)
        _placement(big)
        record_action("look", target=f"thing {number}", actor=factories.SYSTEM)
    factories.turn()
    job.refresh_from_db()
    task_queue = _waiting_jobs(owner, world.site, count, first_job=2 * 10**9)
    # As that of the small world: what a page asks for depends on the state.
    Node.objects.filter(pk=node.pk).update(state="submitted")
    return replace(
        world,
        dag=big,
        job=job,
        pilot=worker,
        task_queue=task_queue,
        node=node,
        script=_script_run(node),
    )


def _tried_often(worker: Pilot) -> Job:
    """A job that was given back some times and is waiting again."""
    for _ in range(3):
        claimed = factories.claim(worker)
        assert claimed is not None
        claimed.give_back("the node was full")
    return claimed.job
