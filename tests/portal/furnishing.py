"""Makers of the things in `tests.portal.world`, so many of each as a page is to list.

Bulk operations, node checks, saved filters, notices, failures, suspected nodes, pressure, output
and logs, core-seconds, script runs, ended clusters, placements, waiting jobs, trials of DAGs, a
campaign, schedules, remarks.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import timedelta

from django.utils import timezone

from matching.task_queues.needs import Needs
from portal.personal.services import save_filter
from tests import factories
from wms.accounting.core_seconds import CoreSeconds, Use, add_uses
from wms.accounting.frontends import save_frontend
from wms.accounting.models import AccountingGroup, Frontend
from wms.accounting.service_accounts import save_service_account
from wms.accounting.services import save_group
from wms.bulk import services as bulk
from wms.core.actors import Actor
from wms.core.labels import MAX_LABELS, label_of_campaign
from wms.core.models import ServiceAccount, User
from wms.dags.lifecycle import DATA_TOPIC
from wms.dags.models import Dag, Node, ScriptRun, Trial
from wms.dags.submission.submit import DagSubmission
from wms.factories.models import FactoryEntry, RemoteFactory
from wms.factories.services import create_factory
from wms.failures import grouping
from wms.jobs.clusters.materialiser import Turn, advance
from wms.jobs.clusters.services import remove_clusters
from wms.jobs.clusters.submit import ClusterSubmission, submit_cluster
from wms.jobs.content.blobs import store_bytes
from wms.jobs.models import Cluster, Job, ResumableUpload
from wms.jobs.output.streams import append_to_stream
from wms.notices.models import Channel, Delivery, Notice
from wms.notices.services import add_channel, subscribe
from wms.pilots.credential_models import Credential
from wms.pilots.credentials.services import save_credential
from wms.pilots.factories.services import save_remote_frontend
from wms.pilots.factory_models import RemoteFrontend
from wms.pilots.lifecycle import apply as apply_to_pilots
from wms.pilots.models import NodeCheck, Pilot, PilotCheck
from wms.pilots.pressure.backoff import note_failure
from wms.pilots.pressure.director import plan_requests
from wms.pilots.pressure.pilot_limits import save_limit as save_limit_on_pilots
from wms.pilots.pressure_models import ElementContact, PilotLimit, PressureRecord
from wms.pilots.program.checks import save_node_check
from wms.pilots.protocol.logs import append_to_log
from wms.pilots.suspect_models import SuspectedNode
from wms.placement.catalogue.models import LogicalFile, Replica
from wms.placement.credential_models import PlacementCredential
from wms.placement.models import PlacementAllocation, PlacementRequest
from wms.placement.storages.models import Storage
from wms.placement.storages.services import StorageSpec, create_storage
from wms.placement.submission import submit_requests
from wms.remarks.services import note, write_log
from wms.schedules.models import Schedule, ScheduleRun
from wms.schedules.services import ScheduleTerms, create_schedule
from wms.sites.frontends.entries import save_entry
from wms.sites.frontends.models import FrontendEntry
from wms.sites.models import Site
from wms.sites.services import QueueSpec, SiteSpec, configure_site
from wms.taskqueues.models import TaskQueue
from wms.taskqueues.operations import Entry, enqueue

#: Name of the campaign.
CAMPAIGN = "mc27"


def trials(owner: User, count: int) -> None:
    """Trials that wait, and the latest, which has ended."""
    for number in range(count):
        Trial.objects.create(
            owner=owner, kind="check", request={}, archive=f"{owner}{number}of{count}",
            size_bytes=7,
        )  # fmt: skip
    Trial.objects.create(
        owner=owner, kind="dry_run", request={}, archive=f"{owner}ended{count}", size_bytes=7,
        state="done", ended_at=timezone.now(), exit_code=0, report='{"nodes": []}', text="well",
    )  # fmt: skip


def bulk_operations(owner: User) -> None:
    """A preview of what can be done with all jobs, an operation that goes on, and a stopped one."""
    actor = Actor.person(owner)
    made = [
        bulk.freeze(bulk.Selection("jobs", Job.objects.all()), action="hold", actor=actor)
        for _ in range(3)
    ]
    for operation in made[1:]:
        bulk.confirm(operation.pk, bulk.Confirmation(reason="look"), actor=actor)
    bulk.stop(made[2].pk, actor=actor)


def campaign(dags: Sequence[Dag], clusters: Sequence[Cluster], *labels: str) -> None:
    """Put DAGs and clusters into the campaign, and give them further labels, 20 at most."""
    given = [label_of_campaign(CAMPAIGN), *labels][:MAX_LABELS]
    Dag.objects.filter(pk__in=[dag.pk for dag in dags]).update(labels=given)
    Cluster.objects.filter(pk__in=[cluster.pk for cluster in clusters]).update(labels=given)


def schedules(owner: User, dag: Dag, count: int) -> None:
    """So many schedules, of which the first has as many times; they may overlap."""
    now = timezone.now()
    made = [
        create_schedule(
            DagSubmission(
                dag_name="weekly.dag",
                dag_text="JOB A job.sub\n",
                files={
                    "job.sub": io.BytesIO(factories.SUBMIT_FILE.encode()),
                    "run.sh": io.BytesIO(b"#!/bin/sh\n"),
                },
                labels=("night",),
            ),
            ScheduleTerms(
                name=f"weekly {number} of {count}", cron="0 6 * * mon", allows_overlap=True
            ),
            owner=owner,
            actor=Actor.person(owner),
        )
        for number in range(count)
    ]
    first = Schedule.objects.order_by("pk")[0] if made else None
    ScheduleRun.objects.bulk_create(
        ScheduleRun(
            schedule=first,
            planned_at=now - timedelta(hours=number + 24 * count),
            outcome="submitted",
            dag=dag,
        )
        for number in range(count)
    )


def failed_check(pilot: Pilot, number: int) -> None:
    """A check that was added for the pilot's site, and failed on its node."""
    name = f"check{number}"
    check = NodeCheck(name=name, site=pilot.queue.site, script="#!/bin/sh\n")
    save_node_check(check, actor=factories.SYSTEM)
    PilotCheck.objects.create(
        pilot=pilot, key=name, name=name, is_ok=False, reason="too old", seconds=1.0
    )


def remarks(author: User, dags: Sequence[Dag], count: int) -> None:
    """Notes with tickets, so many about each DAG and in the shift log."""
    for number in range(count):
        ticket = f"https://tickets.example.org/{number}"
        for dag in dags:
            note("dag", [dag.pk], actor=Actor.person(author), reason="look", ticket=ticket)
        write_log(actor=Actor.person(author), text="a quiet night", ticket=ticket)


def saved_filters(owner: User, count: int) -> None:
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


def notices(user: User, count: int) -> None:
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


def failures(site: Site, causes: int) -> None:
    """So many causes for which pilots failed, in groups."""
    for number in range(causes):
        pilot = factories.queued_pilot(site.queues.order_by("pk")[0])
        reason = f"broken {chr(97 + number % 26)}{'x' * number}"
        apply_to_pilots("abort", [pilot.pk], actor=factories.SYSTEM, reason=reason)
    grouping.run_cycle(timezone.now())


def suspected_nodes(site: Site, job: Job, count: int) -> None:
    """So many worker nodes of the site that are suspected since the job failed there."""
    now = timezone.now()
    SuspectedNode.objects.bulk_create(
        SuspectedNode(
            site=site, host=f"wn{number}-of-{count}", since=now, next_trial_at=now, failed=9,
            tried=9, others_failed=1, others_tried=200, failed_jobs=[job.pk],
            reason="no such file",
        )
        for number in range(count)
    )  # fmt: skip


def pressure(site: Site, records: int) -> None:
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


def frontends(site: Site, count: int) -> None:
    """Frontends, so many, with an entry at the first queue of the site, and one without any."""
    actor = factories.SYSTEM
    save_frontend(Frontend(name=f"bare{count}"), actor=actor)
    for number in range(count):
        frontend = Frontend(name=f"frontend{number}of{count}")
        save_frontend(frontend, actor=actor)
        group = AccountingGroup(name=f"of{number}of{count}", frontend=frontend)
        save_group(group, actor=actor)
        queue = site.queues.order_by("pk")[0]
        save_entry(FrontendEntry(frontend=frontend, queue=queue), actor=actor)


def credentials(count: int) -> None:
    """Credentials of the default frontend, so many, each at a site of its own."""
    for number in range(count):
        name = f"Pool{number}of{count}"
        queue = QueueSpec(
            name="pool",
            element="htcondor",
            settings={"collector": "pool.example.org", "token_directory": "/tokens"},
        )
        # No DAG of other tests is to go there.
        spec = SiteSpec(name=name, is_enabled=False)
        site = configure_site(spec, [queue], actor=factories.SYSTEM)
        credential = Credential(name=f"token{number}of{count}", site=site, kind="htcondor-token")
        credential.new_secret = "e30.e30.c2ln"
        save_credential(credential, actor=factories.SYSTEM)


def factories_and_remotes(site: Site, count: int) -> None:
    """Remote factories with an entry, so many, and remote frontends."""
    actor, now = factories.SYSTEM, timezone.now()
    for number in range(count):
        factory = RemoteFactory(name=f"factory{number}of{count}")
        create_factory(factory, actor=actor)
        FactoryEntry.objects.create(factory=factory, name="there/main", seen_at=now)
        frontend = Frontend(name=f"remote{number}of{count}")
        save_frontend(frontend, actor=actor)
        remote = RemoteFrontend(
            frontend=frontend, url="https://portal.example.org", factory_name="here"
        )
        save_remote_frontend(remote, actor=actor)
        queue = site.queues.order_by("pk")[0]
        save_entry(FrontendEntry(frontend=frontend, queue=queue), actor=actor)


def sent_pieces(pilot: Pilot, job: Job) -> None:
    """What a pilot has sent of a job's output, and of its own log."""
    now = timezone.now()
    append_to_stream(
        job.pk, job.attempt_number, pilot_id=pilot.pk, kind="stdout", offset=0, content=b"hello\n",
        now=now,
    )  # fmt: skip
    append_to_log(pilot.pk, offset=0, content=b"registered\n", now=now)


def accounts(site: Site, owner: User, *, day: int = 0) -> None:
    """What became of some core-seconds, so many days ago."""
    on = timezone.now().date() - timedelta(days=day)
    spent = CoreSeconds(useful_s=3000.0, failed_s=600.0)
    named = {"group_name": "physics", "labels": (label_of_campaign(CAMPAIGN),)}
    add_uses([Use(on, site.name, owner.get_username(), spent, attempts=2, **named)])


def service_account(name: str) -> ServiceAccount:
    """An account of a service, in the first group."""
    account = ServiceAccount(username=name)
    groups = AccountingGroup.objects.order_by("pk")[:1]
    save_service_account(account, groups=list(groups), actor=factories.SYSTEM)
    return account


def script_run(node: Node) -> ScriptRun:
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


def ended_cluster(owner: User, *, jobs: int = 1) -> Cluster:
    """A cluster whose time of outputs has begun: it was removed. So many of its jobs failed."""
    text, actor = f"executable = /bin/true\nqueue {2 * jobs}\n", Actor.person(owner)
    cluster = submit_cluster(ClusterSubmission(text), owner=owner, actor=actor).cluster
    remove_clusters([cluster.pk], actor=actor, reason="done with it")
    while advance(cluster.pk) is Turn.MORE:
        pass
    cluster.refresh_from_db()
    ended = Job.objects.filter(cluster_id=cluster.pk).order_by("process")
    failed = ended.values_list("process", flat=True)[:jobs]
    ended.filter(process__in=list(failed)).update(state="failed", state_cause="payload")
    cluster.killed_count, cluster.failed_count = jobs, jobs
    cluster.save(update_fields=["killed_count", "failed_count"])
    return cluster


def placement(dag: Dag) -> PlacementRequest:
    """A placement request of a DAG, which waits."""
    ad = '[ dap_type = "transfer"; src_url = "file:///a"; dest_url = "file:///b" ]'
    [pk] = submit_requests(
        ad,
        workspace=dag.workspace,
        directory="",
        owner=dag.owner,
        topic=DATA_TOPIC,
        topic_key=dag.pk,
        actor=factories.SYSTEM,
    )
    return PlacementRequest.objects.get(pk=pk)


def bare_storage() -> None:
    """A storage of which nothing is known to be there."""
    create_storage(StorageSpec("bare", ["s3://bare/"]), actor=factories.SYSTEM)


def storage(site: Site, owner: User) -> Storage:
    """One more storage near a site, of which something is allocated."""
    name = f"storage{Storage.objects.exclude(name='bare').count()}"
    spec = StorageSpec(name, [f"davs://{name}.example/data/"], [site.name], space_bytes=2**40)
    create_storage(spec, actor=factories.SYSTEM)
    made = Storage.objects.get(name=name)
    for number in range(Storage.objects.count()):
        PlacementAllocation.objects.create(
            owner=owner, name=f"a{number}-{name}", host=name, storage=made, size_bytes=2**30,
            expires_at=timezone.now() + timedelta(days=1),
        )  # fmt: skip
    for number in range(Storage.objects.count()):
        file, _ = LogicalFile.objects.get_or_create(
            name=f"/f{number}", defaults={"owner": owner, "size_bytes": 1, "sha256": "0" * 64}
        )
        Replica.objects.create(file=file, storage=made)
    return made


def placement_credential(owner: User) -> PlacementCredential:
    """What a user's transfers show to one more endpoint."""
    count = PlacementCredential.objects.count()
    return PlacementCredential.objects.create(
        owner=owner, scheme="https", host=f"s{count}.example", port=443, kind="token", sealed="-"
    )


def resumable_upload(owner: User) -> ResumableUpload:
    """An upload of a user that is under way."""
    return ResumableUpload.objects.create(
        owner=owner, sha256="0" * 64, size_bytes=9, received_bytes=4, counted_bytes=9,
        expires_at=timezone.now() + timedelta(days=1),
    )  # fmt: skip


def waiting_jobs(owner: User, site: Site, count: int, *, first_job: int = 10**9) -> TaskQueue:
    """A TaskQueue of jobs that no pilot takes: they need more memory than there is."""
    needs = Needs.of(owner.get_username(), memory_mb=10**6 + count, sites=[site.name])
    enqueue([Entry(first_job + number, needs, number % 11) for number in range(count)])
    return TaskQueue.objects.get(key=needs.key())


def tried_often(worker: Pilot) -> Job:
    """A job that was given back some times and is waiting again."""
    for _ in range(3):
        claimed = factories.claim(worker)
        assert claimed is not None
        claimed.give_back("the node was full")
    return claimed.job
