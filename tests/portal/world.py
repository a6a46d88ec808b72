"""World of the tests that walk through all addresses: one of each object behind an address.

`small_world` makes it, `grown` adds so many of everything that a page lists, and
`World.address` fills the parameters of a route in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

from django.db.models import Model
from django.urls import reverse

from portal.personal.models import SavedFilter
from tests import factories
from tests.archive_files import kept_archive
from tests.portal.furnishing import (
    CAMPAIGN,
    accounts,
    bare_storage,
    bulk_operations,
    campaign,
    credentials,
    ended_cluster,
    factories_and_remotes,
    failed_check,
    failures,
    frontends,
    notices,
    placement,
    placement_credential,
    pressure,
    remarks,
    resumable_upload,
    saved_filters,
    schedules,
    script_run,
    sent_pieces,
    service_account,
    storage,
    suspected_nodes,
    trials,
    tried_often,
    waiting_jobs,
)
from tests.portal.routes import Route
from wms.accounting.models import AccountingGroup, ConcurrencyLimit, Frontend, Quota, Submitter
from wms.accounting.services import save_quota
from wms.archives.models import ArchivedDag
from wms.bulk.models import BulkOperation
from wms.core.audit import record_action
from wms.core.identities import link_identity
from wms.core.identity_models import Identity
from wms.core.models import ApiToken, AuditEntry, ServiceAccount
from wms.dags.models import Dag, NegotiationCycle, Node, ScriptRun, SharedLimit, Trial
from wms.dags.services.shared_limits import save_shared_limit
from wms.factories.models import RemoteFactory
from wms.failures.models import FailureGroup, FailureRule
from wms.jobs.limits import save_limit
from wms.jobs.models import Cluster, Job, ResumableUpload, RunningLimit
from wms.notices.models import Channel, Subscription
from wms.pilots.credential_models import Credential
from wms.pilots.factory_models import RemoteFrontend
from wms.pilots.models import NodeCheck, Pilot
from wms.pilots.pressure_models import PilotLimit
from wms.pilots.program.bundle import agent_bundle
from wms.pilots.program.manifest import store_manifest
from wms.pilots.suspect_models import SuspectedNode
from wms.placement.catalogue.models import LogicalFile
from wms.placement.credential_models import PlacementCredential
from wms.placement.models import PlacementAllocation, PlacementRequest
from wms.placement.storages.models import Storage
from wms.remarks.models import Remark
from wms.schedules.models import Schedule
from wms.sites.downtimes.models import Downtime
from wms.sites.frontends.models import FrontendEntry
from wms.sites.models import Queue, Site
from wms.taskqueues.models import TaskQueue

ISSUER = "https://iam.example.org/"


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
    cluster: Cluster

    def address(self, route: Route) -> str:
        """An address of the route that leads to something."""
        return reverse(
            route.name, kwargs={name: self.path_value(route, name) for name in route.parameters}
        )

    def path_value(self, route: Route, parameter: str) -> Any:
        """What stands for a parameter in an address that leads to something."""
        special = {
            ("web:attempt-file", "path"): "stdout",
            ("web:dag-picture", "path"): "figure.svg",
            ("web:pilot", "pilot_id"): self.pilot.pk,
            ("web:steer-site", "event"): "ban",
            ("web:steer-error", "event"): "mute",
            ("web:steer-schedule", "event"): "pause",
            ("web:steer-job", "event"): "kill",
            ("web:drain-pilot", "pilot_id"): self.pilot.pk,
            ("web:remove-pilot", "pilot_id"): self.pilot.pk,
            ("web:pilot-log-file", "pilot_id"): self.pilot.pk,
            ("web:steer-nodes", "event"): "rerun",
            ("web:problem", "code"): "quota",
            ("web:notes", "kind"): "dag",
            ("web:dag-export", "kind"): "status",
            ("api:dag-export", "kind"): "status",
            ("api:job-output", "path"): self.job.stdout_name,
            ("api:shared-limit", "limit_id"): self.shared_limit.pk,
            ("api:group", "group"): "physics",
            ("api:concurrency-limit", "limit"): "physics",
            ("api:frontend", "frontend"): "bare1",
            ("api:storage", "storage"): "bare",
            ("api:frontend-standing", "frontend"): "frontend0of1",
            ("web:frontend", "frontend"): "frontend0of1",
            ("pilot_api:sent-file", "path"): "stdout",
            ("pilot_api:link", "path"): "stdout",
            ("admin:app_list", "app_label"): "core",
            ("api:archive-member", "path"): "nodes/000001.jsonl",
        }
        usual = {
            "dag_id": self.dag.pk,
            "job_id": self.job.pk,
            "job": self.job.pk,
            "key": self.dag.pk,
            "cluster_id": self.cluster.pk,
            "pilot_id": self.pilot.pk,
            "uuid": self.pilot.uuid,
            "name": self.site.name,
            "queue": self.queue.name,
            "campaign": CAMPAIGN,
            "factory": "factory0of1",
            "storage": "storage0",
            "frontend": "remote0of1",
            "node_id": self.node.pk,
            "index": 0,
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
            "list_name": "jobs",
            "panel": "jobs",
            "form": "json",
            "content_type_id": 1,
        }
        known = special.get((route.name, parameter), usual.get(parameter))
        return self._looked_up(route.name, parameter) if known is None else known

    def _looked_up(self, route: str, parameter: str) -> Any:
        """What takes a query to know, in each of thousands of addresses."""
        rows = {
            "quota_id": Quota, "credential_id": Credential, "frontend_entry_id": FrontendEntry,
            "cycle_id": NegotiationCycle, "suspect_id": SuspectedNode,
            "group_id": FailureGroup, "rule_id": FailureRule, "filter_id": SavedFilter,
            "schedule_id": Schedule,
            "token_id": ApiToken, "subscription_id": Subscription, "channel_id": Channel,
            "placement_credential_id": PlacementCredential, "file_id": LogicalFile,
            "upload_id": ResumableUpload, "account_id": ServiceAccount, "identity_id": Identity,
            "allocation_id": PlacementAllocation, "submitter_id": Submitter,
            "remark_id": Remark, "archive_id": ArchivedDag,
        }  # fmt: skip
        if parameter in rows:
            return _first(rows[parameter])
        look_up: dict[str, Callable[[], Any]] = {
            "entry_id": lambda: AuditEntry.objects.filter(object_kind="dag").latest("pk").pk,
            "trial_id": lambda: _trial(route),
            "operation_id": lambda: _operation(route),
            "object_id": lambda: self._admin_object(route),
            "sha256": lambda: _content(route, store_manifest(self.queue)),
        }
        return look_up[parameter]() if parameter in look_up else None

    def _admin_object(self, name: str) -> int | None:
        objects = {
            "accounting_frontend": lambda: _first(Frontend),
            "sites_frontendentry": lambda: _first(FrontendEntry),
            "pilots_credential": lambda: _first(Credential),
            "factories_remotefactory": lambda: _first(RemoteFactory),
            "pilots_remotefrontend": lambda: _first(RemoteFrontend),
            "accounting_accountinggroup": lambda: _first(AccountingGroup),
            "accounting_submitter": lambda: _first(Submitter),
            "accounting_quota": lambda: _first(Quota),
            "accounting_concurrencylimit": lambda: _first(ConcurrencyLimit),
            "dags_matchmakingpolicy": lambda: 1,
            "taskqueues_taskqueuepolicy": lambda: 1,
            "taskqueues_taskqueue": lambda: self.task_queue.pk,
            "jobs_runninglimit": lambda: self.limit.pk,
            "dags_sharedlimit": lambda: self.shared_limit.pk,
            "placement_storage": lambda: _first(Storage),
            "sites_site": lambda: self.site.pk,
            "sites_queue": lambda: self.queue.pk,
            "sites_downtime": lambda: self.downtime.pk,
            "pilots_nodecheck": lambda: _first(NodeCheck),
            "pilots_pilotlimit": lambda: _first(PilotLimit),
            "core_user": lambda: self.people.alice.pk,
            "core_identity": lambda: _first(Identity),
            "core_serviceaccount": lambda: _first(ServiceAccount),
            "core_apitoken": lambda: ApiToken.objects.values_list("pk", flat=True).last(),
            "core_auditentry": lambda: AuditEntry.objects.values_list("pk", flat=True).last(),
        }
        return next((find() for key, find in objects.items() if f":{key}_" in name), None)


def _content(route: str, manifest: str) -> str:
    """A manifest that was stored, or a file of it."""
    return agent_bundle().sha256 if route == "pilot_api:file" else manifest


def _trial(route: str) -> int:
    """A trial to be stopped, or one that has ended."""
    state = "waiting" if route.endswith(("trial-stop", "stop-trial")) else "done"
    return Trial.objects.filter(state=state).latest("pk").pk


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
    sent_pieces(pilot, job)
    accounts(site, people.alice)
    factories.token_for(people.alice)
    factories.token_for(people.olga)
    factories.accounting(people.alice)
    link_identity(people.alice, ISSUER, "7b2e", actor=factories.SYSTEM)
    link_identity(people.ada, ISSUER, "4c1d", actor=factories.SYSTEM)
    service_account("robot")
    task_queue = waiting_jobs(people.alice, site, 1)
    save_quota(Quota(max_waiting_jobs=10**9), actor=factories.SYSTEM)
    limit = RunningLimit(site=site, job_type="User", maximum=9, min_interval_s=1)
    save_limit(limit, actor=factories.SYSTEM)
    shared = SharedLimit(owner=people.alice, site=site, max_jobs=99)
    save_shared_limit(shared, actor=factories.SYSTEM)
    failed_check(pilot, 0)
    failures(site, 1)
    suspected_nodes(site, job, 1)
    remarks(people.sam, [dag], 1)
    kept_archive(people.olga)
    saved_filters(people.alice, 1)
    notices(people.alice, 1)
    notices(people.ada, 1)
    bulk_operations(people.alice)
    trials(people.alice, 1)
    frontends(site, 1)
    credentials(1)
    factories_and_remotes(site, 1)
    pressure(site, 1)
    cluster = ended_cluster(people.alice)
    campaign([dag], [cluster])
    schedules(people.alice, dag, 1)
    placement_credential(people.alice)
    resumable_upload(people.alice)
    bare_storage()
    storage(site, people.alice)
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
        script=script_run(dag.nodes.get()),
        shared_limit=shared,
        placement=placement(dag),
        cluster=cluster,
    )


def grown(world: World, count: int) -> World:
    """The world with so many of everything that a page lists; its objects are the rich ones."""
    owner = world.people.alice
    # Before the DAGs: a list begins with jobs that have nodes, as in the small world.
    clusters = [ended_cluster(owner, jobs=jobs) for jobs in (count, *[1] * count)]
    big = factories.running_dag(owner, name="big.dag", node_count=count, files=_FILES)
    node = big.nodes.order_by("ordinal")[0]
    worker = factories.pilot(world.queue)
    job = tried_often(worker)
    while factories.run_job(worker) is not None:
        pass
    factories.site(world.site.name, queues=[f"queue{number}" for number in range(count)])
    for number in range(count):
        factories.dag(owner, name=f"more{number}.dag", node_count=1)
        factories.advertisement(factories.site(f"Site{number}"))
        factories.downtime(world.site)
        factories.accounting(factories.person(f"person{number}"), f"group{number}")
        factories.token_for(world.people.olga)
        service_account(f"robot{number}")
        link_identity(owner, ISSUER, f"7b2e-{number}", actor=factories.SYSTEM)
        link_identity(world.people.ada, ISSUER, f"4c1d-{number}", actor=factories.SYSTEM)
        factories.queued_pilot(world.queue)
        accounts(Site.objects.get(name=f"Site{number}"), owner, day=number % 7)
        waiting_jobs(owner, Site.objects.get(name=f"Site{number}"), 1, first_job=3 * 10**9 + number)
        save_limit(RunningLimit(job_type=f"type{number}", maximum=1), actor=factories.SYSTEM)
        save_shared_limit(
            SharedLimit(category=f"c{number}", max_jobs=number), actor=factories.SYSTEM
        )
        script_run(node)
        failed_check(worker, number + 1)
        placement(big)
        placement_credential(owner)
        resumable_upload(owner)
        storage(world.site, owner)
        record_action("look", target=f"thing {number}", actor=factories.SYSTEM)
    failures(world.site, count)
    suspected_nodes(world.site, job, count)
    saved_filters(owner, count)
    remarks(world.people.sam, [big], count)
    notices(world.people.ada, count)
    bulk_operations(owner)
    trials(owner, count)
    frontends(world.site, count)
    credentials(count)
    factories_and_remotes(world.site, count)
    pressure(world.site, count)
    campaign([big], clusters, *(f"label{number}" for number in range(count)))
    schedules(owner, big, count)
    factories.turn()
    job.refresh_from_db()
    sent_pieces(worker, job)
    task_queue = waiting_jobs(owner, world.site, count, first_job=2 * 10**9)
    # As that of the small world: what a page asks for depends on the state.
    Node.objects.filter(pk=node.pk).update(state="submitted")
    return replace(
        world,
        dag=big,
        job=job,
        pilot=worker,
        task_queue=task_queue,
        node=node,
        script=script_run(node),
        cluster=clusters[0],
    )
