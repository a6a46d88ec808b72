"""Every address of the portal, with objects behind it: for tests that walk through all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from django.db.models import Model
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from matching.needs import Needs
from portal.personal.models import SavedFilter
from portal.personal.services import save_filter
from tests import factories
from wms.accounting.core_seconds import CoreSeconds, Use, add_uses
from wms.accounting.models import AccountingGroup, ConcurrencyLimit, Submitter
from wms.bulk import services as bulk
from wms.bulk.models import BulkOperation
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.models import ApiToken, AuditEntry, User
from wms.dags.lifecycle import DATA_TOPIC
from wms.dags.models import Dag, NegotiationCycle, Node, ScriptRun, SharedLimit
from wms.dags.shared_limits import save_shared_limit
from wms.failures import grouping
from wms.failures.models import FailureGroup, FailureRule
from wms.jobs.blobs import store_bytes
from wms.jobs.limits import save_limit
from wms.jobs.models import Job, RunningLimit
from wms.jobs.streams import append_to_stream
from wms.notices.models import Channel, Delivery, Notice, Subscription
from wms.notices.services import add_channel, subscribe
from wms.pilots.bundle import agent_bundle
from wms.pilots.checks import save_node_check
from wms.pilots.contacts import note_failure
from wms.pilots.director import plan_requests
from wms.pilots.lifecycle import apply as apply_to_pilots
from wms.pilots.limits import save_limit as save_limit_on_pilots
from wms.pilots.logs import append_to_log
from wms.pilots.manifest import store_manifest
from wms.pilots.models import NodeCheck, Pilot, PilotCheck
from wms.pilots.pressure_models import ElementContact, PilotLimit, PressureRecord
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
            ("web:steer-error", "event"): "mute",
            ("web:steer-job", "event"): "kill",
            ("web:drain-pilot", "pilot_id"): self.pilot.pk,
            ("web:pilot-log-file", "pilot_id"): self.pilot.pk,
            ("web:steer-nodes", "event"): "rerun",
            ("web:dag-export", "kind"): "status",
            ("api:dag-export", "kind"): "status",
            ("api:shared-limit", "limit_id"): self.shared_limit.pk,
            ("pilot_api:sent-file", "path"): "stdout",
            ("pilot_api:manifest", "sha256"): store_manifest(self.queue),
            ("pilot_api:file", "sha256"): agent_bundle().sha256,
            ("admin:app_list", "app_label"): "core",
        }
        usual = {
            "dag_id": self.dag.pk,
            "job_id": self.job.pk,
            "job": self.job.pk,
            "pilot_id": self.pilot.pk,
            "uuid": self.pilot.uuid,
            "name": self.site.name,
            "queue": self.queue.name,
            "node_id": self.node.pk,
            "index": 0,
            "run_id": self.script.pk,
            "request_id": self.placement.pk,
            "downtime_id": self.downtime.pk,
            "entry_id": AuditEntry.objects.filter(object_kind="dag").latest("pk").pk,
            "task_queue_id": self.task_queue.pk,
            "limit_id": self.limit.pk,
            "path": "run.sh",
            "number": self.job.attempt_number,
            "attempt": self.job.attempt_number,
            "kind": "stdout",
            "event": "hold",
            "list_name": "jobs",
            "panel": "jobs",
            "form": "json",
            "object_id": self._admin_object(route.name),
            "content_type_id": 1,
        }
        rows = {
            "cycle_id": NegotiationCycle,
            "group_id": FailureGroup, "rule_id": FailureRule, "filter_id": SavedFilter,
            "token_id": ApiToken, "subscription_id": Subscription, "channel_id": Channel,
        }  # fmt: skip
        if parameter == "operation_id":
            return _operation(route.name)
        if parameter in rows and parameter not in usual:
            return _first(rows[parameter])
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
            "pilots_nodecheck": lambda: _first(NodeCheck),
            "pilots_pilotlimit": lambda: _first(PilotLimit),
            "core_user": lambda: self.people.alice.pk,
            "core_apitoken": lambda: ApiToken.objects.values_list("pk", flat=True).last(),
            "core_auditentry": lambda: AuditEntry.objects.values_list("pk", flat=True).last(),
        }
        return next((find() for key, find in objects.items() if f":{key}_" in name), None)


def _operation(route: str) -> int:
    """A preview to be confirmed, an operation to be stopped, or one that was."""
    states = {
        "web:confirm-bulk": "preview",
        "web:stop-bulk": "confirmed",
        "api:bulk-stop": "confirmed",
    }
    return BulkOperation.objects.filter(state=states.get(route, "stopped")).latest("pk").pk


def _first(model: type[Model]) -> int:
    return model._default_manager.order_by("pk").values_list("pk", flat=True)[0]


def _bulk_operations(owner: User) -> None:
    """A preview of what can be done with all jobs, an operation that goes on, and a stopped one."""
    actor = Actor.person(owner)
    made = [
        bulk.freeze(bulk.Selection("jobs", Job.objects.all()), action="hold", actor=actor)
        for _ in range(3)
    ]
    for operation in made[1:]:
        bulk.confirm(operation.pk, bulk.Confirmation(reason="look"), actor=actor)
    bulk.stop(made[2].pk, actor=actor)


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
    _sent_pieces(pilot, job)
    _accounts(site, people.alice)
    factories.token_for(people.alice)
    factories.token_for(people.olga)
    factories.accounting(people.alice)
    task_queue = _waiting_jobs(people.alice, site, 1)
    limit = RunningLimit(site=site, job_type="User", maximum=9, min_interval_s=1)
    save_limit(limit, actor=factories.SYSTEM)
    shared = SharedLimit(owner=people.alice, site=site, max_jobs=99)
    save_shared_limit(shared, actor=factories.SYSTEM)
    _failed_check(pilot, 0)
    _failures(site, 1)
    _saved_filters(people.alice, 1)
    _notices(people.alice, 1)
    _notices(people.ada, 1)
    _bulk_operations(people.alice)
    _pressure(site, 1)
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


def _failed_check(pilot: Pilot, number: int) -> None:
    """A check that was added for the pilot's site, and failed on its node."""
    name = f"check{number}"
    check = NodeCheck(name=name, site=pilot.queue.site, script="#!/bin/sh\n")
    save_node_check(check, actor=factories.SYSTEM)
    PilotCheck.objects.create(
        pilot=pilot, key=name, name=name, is_ok=False, reason="too old", seconds=1.0
    )


def _saved_filters(owner: User, count: int) -> None:
    """So many filters that the owner shares, of each list that has states."""
    for name in ("dags", "jobs", "pilots", "placements"):
        for number in range(count):
            save_filter(
                name,
                name=f"filter {number}",
                parameters={"reason": [f"trouble {number}"]},
                is_shared=True,
                actor=Actor.person(owner),
            )


def _notices(user: User, count: int) -> None:
    """So many notices of the user, sites of interest, and messages by a channel."""
    actor, now = Actor.person(user), timezone.now()
    channel = Channel.objects.filter(user=user).first() or (
        add_channel("webhook", url="https://hooks.example.org/", actor=actor).row
    )
    for site in Site.objects.order_by("pk")[:count]:
        subscribe("site", site=site.name, actor=actor)
    for number in range(count):
        serial = Notice.objects.count()
        Notice.objects.create(
            user=user, kind="banned", subject_kind="site", subject_id="UW", happened_at=now,
            title=f"Site UW is banned, time {number}", key=f"test:{serial}",
        )  # fmt: skip
        Delivery.objects.create(channel=channel, is_test=True, next_at=now, created_at=now)


def _failures(site: Site, causes: int) -> None:
    """So many causes for which pilots failed, in groups."""
    for number in range(causes):
        pilot = factories.queued_pilot(site.queues.order_by("pk")[0])
        reason = f"broken {chr(97 + number % 26)}{'x' * number}"
        apply_to_pilots("abort", [pilot.pk], actor=factories.SYSTEM, reason=reason)
    grouping.run_cycle(timezone.now())


def _pressure(site: Site, records: int) -> None:
    """What the director asked of all queues, and records of the site's; a limit for it."""
    now = timezone.now()
    plan_requests(now)
    PressureRecord.objects.bulk_create(
        [
            PressureRecord(
                queue=queue, at=now - timedelta(minutes=minutes), wanted=9, granted=3, ceiling=20,
                waiting_jobs=9, submitted=3, removed=0, reasons=["ramp-up: wanted divided by 3"],
            )
            for queue in site.queues.all()
            for minutes in range(records)
        ],
        ignore_conflicts=True,
    )  # fmt: skip
    for queue in site.queues.all():
        note_failure(queue, ElementContact.Kind.POLL, "time-out", now=now, jitter=0)
    if records == 1:
        save_limit_on_pilots(
            PilotLimit(scope="site", site=site, max_pilots=99), actor=factories.SYSTEM
        )
        return
    for number in range(records):
        found = Site.objects.get(name=f"Site{number}")
        limit = PilotLimit(scope="site", site=found, max_pilots=number)
        save_limit_on_pilots(limit, actor=factories.SYSTEM)


def _sent_pieces(pilot: Pilot, job: Job) -> None:
    """What a pilot has sent of a job's output, and of its own log."""
    now = timezone.now()
    append_to_stream(
        job.pk, job.attempt_number, pilot_id=pilot.pk, kind="stdout", offset=0, content=b"hello\n",
        now=now,
    )  # fmt: skip
    append_to_log(pilot.pk, offset=0, content=b"registered\n", now=now)


def _accounts(site: Site, owner: User, *, day: int = 0) -> None:
    """What became of some core-seconds, so many days ago."""
    on = timezone.now().date() - timedelta(days=day)
    spent = CoreSeconds(useful_s=3000.0, failed_s=600.0)
    add_uses([Use(on, site.name, owner.get_username(), spent, attempts=2)])


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
        _accounts(Site.objects.get(name=f"Site{number}"), owner, day=number % 7)
        _waiting_jobs(
            owner, Site.objects.get(name=f"Site{number}"), 1, first_job=3 * 10**9 + number
        )
        save_limit(RunningLimit(job_type=f"type{number}", maximum=1), actor=factories.SYSTEM)
        save_shared_limit(
            SharedLimit(category=f"c{number}", max_jobs=number), actor=factories.SYSTEM
        )
        _script_run(node)
        _failed_check(worker, number + 1)
        _placement(big)
        record_action("look", target=f"thing {number}", actor=factories.SYSTEM)
    _failures(world.site, count)
    _saved_filters(owner, count)
    _notices(world.people.ada, count)
    _bulk_operations(owner)
    _pressure(world.site, count)
    factories.turn()
    job.refresh_from_db()
    _sent_pieces(worker, job)
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
