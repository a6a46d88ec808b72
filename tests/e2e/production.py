"""Example production in progress, for browser tests and screenshots.

`build` makes sites, DAGs, jobs and pilots in most states, one of each thing that has a page;
`bulk_operations` adds previews of bulk operations and one that was carried out.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

from django.conf import settings
from django.test import override_settings
from django.utils import timezone

from matching.task_queues.needs import Needs
from portal.celery import app as celery_app
from tests import factories
from wms.accounting.frontends import save_frontend
from wms.accounting.models import AccountingGroup, Frontend
from wms.accounting.services import save_group
from wms.bulk.execution import run_batch
from wms.bulk.models import BulkOperation
from wms.bulk.services import Confirmation, Selection, confirm, freeze
from wms.core.actors import Actor
from wms.core.loops import LOOPS
from wms.core.models import ControlLoop, User
from wms.dags.models import Dag, Node, SharedLimit
from wms.dags.scripts import run_leases as scripts
from wms.dags.services.dags import hold_dags
from wms.dags.services.shared_limits import save_shared_limit
from wms.dags.submission.submit import DagSubmission, submit_dag
from wms.factories.models import FactoryEntry, RemoteFactory
from wms.failures import grouping
from wms.jobs.limits import save_limit
from wms.jobs.models import Job, RunningLimit
from wms.jobs.operations import JobSpec, create_workspace, submit_jobs
from wms.pilots import lifecycle
from wms.pilots.credential_models import Credential
from wms.pilots.models import Pilot, PilotCheck
from wms.pilots.monitoring import monitor
from wms.pilots.pressure_models import PressureRequest
from wms.pilots.suspect_models import SuspectedNode
from wms.placement.models import PlacementRequest
from wms.placement.operations import end_attempt, start_attempt
from wms.sites.downtimes.services import add_downtimes
from wms.sites.frontends.entries import save_entry
from wms.sites.frontends.models import FrontendEntry
from wms.sites.models import Queue, Site
from wms.sites.services import QueueSpec, SiteSpec, configure_site
from wms.taskqueues import priorities as priorities_of_all
from wms.taskqueues.models import TaskQueue, WaitingJob

EXAMPLE = Path(settings.BASE_DIR, "examples", "montecarlo")
PICTURE = (
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 20">'
    b'<rect width="40" height="20" fill="#fff"/><path d="M2 18 14 15 20 3 26 15 38 18" '
    b'fill="none" stroke="#1f4fb5"/></svg>'
)
_LOG = b"".join(b"event %6d: m = 91.%02d GeV\n" % (n * 1000, n % 90) for n in range(60))


@dataclass(frozen=True, slots=True)
class Production:
    """The people, and one of each thing that has a page."""

    people: SimpleNamespace
    running: Dag
    held: Dag
    failed: Dag
    idle: Dag
    site: Site
    job: Job
    pilot: Pilot
    task_queue: TaskQueue
    rich: Dag
    inner: Dag
    placement: PlacementRequest

    def node(self, name: str) -> Node:
        """A node of the rich DAG."""
        return self.rich.nodes.get(name=name)


def build() -> Production:
    """Sites, DAGs in different states, jobs and pilots in most states."""
    people = factories.people()
    sites = [_site(name) for name in ("T2-North", "T2-South", "T2-West")]
    failed = factories.running_dag(people.bob, name="ttbar-isr.dag", node_count=5, is_chain=True)
    factories.run_job(factories.pilot(_queue(failed)), exit_code=1)
    factories.turn()
    running = _example(people.alice, "zmumu-2026")
    held = factories.dag(people.charlie, name="wenu-calibration.dag", node_count=8)
    busy = factories.dag(people.bob, name="ttbar-nominal.dag", node_count=12)
    factories.turn()
    pilots = [factories.pilot(queue) for site in sites for queue in site.queues.all()]
    _lose_a_pilot(pilots[0])
    for pilot in pilots * 3:
        _run(pilot)
    for pilot in pilots[1:]:
        claimed = factories.claim(pilot)
        if claimed is not None:
            claimed.start().send("stdout", "stdout", _LOG)
    reason = "The calibration file is from the wrong run: wait for the new one"
    hold_dags([held.pk], actor=Actor.person(people.sam), reason=reason)
    idle = factories.dag(people.alice, name="higgs-4l.dag", node_count=3)
    factories.turn()
    factories.queued_pilot(_queue(Dag.objects.get(pk=busy.pk)))
    factories.downtime(sites[0])
    _downtimes_to_come([site.name for site in sites[1:]])
    factories.advertisement(sites[0])
    now = timezone.now()
    _suspect(sites[0], now)
    Dag.objects.filter(pk=idle.pk).update(state_since=now - timedelta(hours=2))
    _loops(now)
    grouping.run_cycle(timezone.now())
    job = Job.objects.filter(attempt_number=2).first() or Job.objects.all()[0]
    # Its pilot would draw the single jobs.
    rich = _rich(people.alice)
    task_queue = _waiting(people, sites[0])
    _share(sites[0].queues.get(name="short"), now)
    return Production(
        people=people,
        running=running,
        held=held,
        failed=failed,
        idle=idle,
        site=sites[0],
        job=job,
        pilot=pilots[1],
        task_queue=task_queue,
        rich=rich,
        inner=Dag.objects.get(parent_node__dag=rich),
        placement=PlacementRequest.objects.get(),
    )


def bulk_operations(people: SimpleNamespace) -> dict[str, BulkOperation]:
    """Previews of Olga's, and an operation of Alice's in which not all went well."""
    olga, alice = Actor.person(people.olga), Actor.person(people.alice)
    dags, jobs = Selection("dags", Dag.objects.all()), Selection("jobs", Job.objects.all())
    shown = replace(dags, filters={"name": ["e", "o"]}, shown=dags.rows.count() + 2)
    made = {
        "preview": freeze(shown, action="rematch", actor=olga),
        "destructive": freeze(dags, action="remove", actor=olga),
        "done": freeze(jobs, action="prioritise", actor=alice, arguments={"priority": 4}),
    }
    reason = "The conference is next week: these first"
    confirm(made["done"].pk, Confirmation(reason=reason), actor=alice)
    while run_batch(made["done"].pk):
        pass
    return made


_RICH = """\
JOB prepare job.sub
JOB scan1 scan.sub
JOB scan2 scan.sub
JOB scan3 scan.sub
SUBDAG EXTERNAL calibrate calibrate.dag
DATA fetch {
dap_type = "transfer"
src_url = "file:///runs/2026/zmumu-00417.root"
dest_url = "file:zmumu-00417.root"
}
JOB merge job.sub
FINAL report job.sub
PARENT prepare CHILD scan1 scan2 scan3 calibrate fetch
PARENT scan1 scan2 scan3 calibrate fetch CHILD merge
SCRIPT PRE prepare check_inputs.sh $JOB $RETRY
SCRIPT DEFER 4 60 POST merge judge.sh $JOB $RETURN
CATEGORY scan1 heavy
CATEGORY scan2 heavy
CATEGORY scan3 heavy
MAXJOBS heavy 1
RETRY scan1 3 UNLESS-EXIT 7 AVOID-SITES WITH request_memory*=2
ABORT-DAG-ON merge 42 RETURN 3
PRIORITY scan1 10
VARS merge title="Z to mu mu, 2026"
SAVE_POINT_FILE merge
"""


def _rich(owner: User) -> Dag:
    """A DAG with nodes of many kinds and in many states, at a site of its own."""
    site = _site("T2-East", requirements='CurMatches < MaxMatches && TARGET.Project =?= "tails"')
    files = {
        "job.sub": factories.SUBMIT_FILE,
        "scan.sub": f"request_memory = 1000\n{factories.SUBMIT_FILE}",
        "run.sh": "#!/bin/sh\n",
        "check_inputs.sh": "#!/bin/sh\n",
        "judge.sh": "#!/bin/sh\n",
        "calibrate.dag": "JOB fit job.sub\nJOB plot job.sub\nPARENT fit CHILD plot\n",
    }
    submission = DagSubmission(
        dag_name="tails.dag",
        dag_text=_RICH,
        files={path: io.BytesIO(text.encode()) for path, text in files.items()},
        description_text='+Project = "tails"\n',
        description_name="tails.sub",
        options={"max_jobs": 20},
    )
    placement = settings.PILOTAGE["PLACEMENT"] | {"ROOTS": ["/runs"]}
    with override_settings(PILOTAGE=settings.PILOTAGE | {"PLACEMENT": placement}):
        dag = submit_dag(submission, owner=owner, actor=Actor.person(owner))
        factories.turn()
    taken = scripts.take_run(timezone.now())
    assert taken is not None
    scripts.start_run(taken.run_id, taken.lease, now=timezone.now())
    told = b"looking for the inputs of prepare\nfound 412 of 412 files, 38.2 GB\n"
    scripts.end_run(taken.run_id, taken.lease, exit_code=0, output=told, now=timezone.now())
    factories.turn()
    _run(factories.pilot(site.queues.get(name="short")))
    factories.turn()
    request = PlacementRequest.objects.get()
    start_attempt(request.pk, timezone.now())
    message = "data.example.org did not answer within 60 s"
    end_attempt(request.pk, exit_code=28, message=message, now=timezone.now())
    shared = SharedLimit(owner=owner, max_jobs=200, note="the catalogue takes no more")
    save_shared_limit(shared, actor=factories.SYSTEM)
    dag.refresh_from_db()
    return dag


def _waiting(people: SimpleNamespace, site: Site) -> TaskQueue:
    """Single jobs of a group in several TaskQueues, and limits; one of them asks for much."""
    group = factories.accounting(people.alice)
    group.share = 2500
    save_group(group, actor=factories.SYSTEM, members=[people.alice, people.bob])
    for owner, cores, priorities in ((people.alice, 1, (1, 5, 10)), (people.bob, 4, (1,))):
        needs = Needs.of(
            owner.get_username(), owner_group=group.name, cores=cores, max_cores=8,
            cpu_time_s=40_000, memory_mb=2000, job_type="User",
        )  # fmt: skip
        for priority in priorities:
            _single_jobs(owner, needs, priority, count=2 + priority)
    special = Needs.of(
        "alice", owner_group=group.name, gpus=2, memory_mb=64_000, tags=["ssd", "gpu"],
        sites=[site.name, "T2-Nowhere"], banned_sites=["T3-Old"], platforms=["linux-x86_64"],
        job_type="Training", requirements='Arch == "X86_64" && Memory > 32000',
    )  # fmt: skip
    _single_jobs(people.alice, special, 3, count=14)
    Queue.objects.filter(site=site, name="long").update(owner=people.bob, owner_group=group, gpus=1)
    for limit in (
        RunningLimit(site=site, job_type="User", maximum=50, note="the disk server"),
        RunningLimit(owner_group=group.name, maximum=4, min_interval_s=90),
    ):
        save_limit(limit, actor=factories.SYSTEM)
    WaitingJob.objects.filter(task_queue__job_type="User").update(
        enqueued_at=timezone.now() - timedelta(hours=7, minutes=12)
    )
    priorities_of_all.recompute()
    return TaskQueue.objects.get(key=special.key())


def _share(queue: Queue, now: datetime) -> None:
    """A frontend that has pilots in the queue beside the default one, and what was asked for."""
    frontend = Frontend(name="icecube", description="IceCube; ask production@example.org")
    save_frontend(frontend, actor=factories.SYSTEM)
    save_group(AccountingGroup(name="icecube", frontend=frontend), actor=factories.SYSTEM)
    save_entry(FrontendEntry(queue=queue, frontend=frontend, share=2.0), actor=factories.SYSTEM)
    asked = {"updated_at": now, "lease_until": now + timedelta(minutes=15), "queue": queue}
    PressureRequest.objects.create(
        **asked, waiting_jobs=12, wanted=12, granted=3, ceiling=5,
        reasons=["its share of the queue limit 10: 5 pilots are there"],
    )  # fmt: skip
    PressureRequest.objects.create(
        **asked, frontend=frontend, waiting_jobs=420, wanted=420, granted=5, ceiling=7,
        reasons=["its share of the queue limit 10: 5 pilots are there"], submitted=2,
    )  # fmt: skip
    _trouble_of(frontend, queue, now)


def _trouble_of(frontend: Frontend, queue: Queue, now: datetime) -> None:
    """Frontend as its manager sees it: credentials that end, a failed pilot, a factory."""
    for name, left, place in (
        ("grid-key", timedelta(days=2), {"queue": queue}),
        ("old-key", timedelta(minutes=-9), {"site": queue.site}),
    ):
        Credential.objects.create(
            name=name, frontend=frontend, kind="ssh-key", account="icecube",
            directory="/home/icecube", sealed="x", expires_at=now + left,
            replaced_at=now - timedelta(days=90), **place,
        )  # fmt: skip
    pilot = factories.queued_pilot(queue)
    Pilot.objects.filter(pk=pilot.pk).update(
        frontend=frontend, batch_node="wn17.example.org", batch_exit_code=3
    )
    PilotCheck.objects.create(
        pilot=pilot, key="scratch", name="scratch", is_ok=False, seconds=1.0,
        reason="/scratch has 120 MB, 2000 are needed",
    )  # fmt: skip
    reason = "ended without a word; the batch system says: failed, exit code 3"
    lifecycle.apply("abort", [pilot.pk], actor=factories.SYSTEM, reason=reason, ended_at=now)
    factory = RemoteFactory.objects.create(
        name="north", seen_at=now, token_at=now - timedelta(days=9), token_sha256="x",
        description="north.example.org; ask grid@north.example.org",
    )  # fmt: skip
    refusal = "no queue here has this entry"
    for name, facts in (("north/main", {"running": 12, "max_pilots": 40}), ("north/gpu", {})):
        FactoryEntry.objects.create(
            factory=factory, name=name, facts=facts, seen_at=now, refusal=refusal
        )


def _single_jobs(owner: User, needs: Needs, priority: int, *, count: int) -> None:
    specs = [
        JobSpec(name=f"scan-{number}", executable="/bin/true", needs=needs, priority=priority)
        for number in range(count)
    ]
    workspace = create_workspace(owner, {})
    submit_jobs(specs, owner=owner, workspace=workspace, actor=Actor.person(owner))


def _site(name: str, *, requirements: str = "CurMatches < MaxMatches") -> Site:
    """A site that takes one DAG at a time and has what the example production asks for."""
    environment = f"SiteName={name}\nSiteWorkingArea=/work/{name}\nSiteExportDir=/export/{name}"
    queues = [
        QueueSpec(name="short", element="host", memory_mb=4000),
        QueueSpec(name="long", element="host", memory_mb=8000, wall_time_s=172_800),
    ]
    site = SiteSpec(name=name, max_matches=1, environment=environment, requirements=requirements)
    return configure_site(site, queues, actor=factories.SYSTEM)


def _queue(dag: Dag) -> Queue | None:
    return Queue.objects.filter(site=dag.site).first()


def _lose_a_pilot(pilot: Pilot) -> None:
    """The pilot takes a job and falls silent, so that the job is run again elsewhere."""
    for limit_s in (40, 80):
        claimed = factories.claim(pilot)
        if claimed is not None:
            claimed.start()
        now = timezone.now()
        Pilot.objects.filter(pk=pilot.pk).update(heartbeat_at=now - timedelta(seconds=limit_s))
        monitor.stall_silent(now)
    monitor.give_up_stalled(now)


def _example(owner: User, name: str) -> Dag:
    """The example production of fifty nodes."""
    files = {path.name: path.read_bytes() for path in EXAMPLE.iterdir() if path.is_file()}
    text = files.pop("montecarlo.dag").decode()
    submission = DagSubmission(
        dag_name=f"{name}.dag",
        dag_text=text,
        files={path: io.BytesIO(content) for path, content in files.items()},
    )
    return submit_dag(submission, owner=owner, actor=Actor.person(owner))


def _run(pilot: Pilot) -> None:
    claimed = factories.claim(pilot)
    if claimed is None:
        return
    claimed.start()
    claimed.send("stdout", "stdout", _LOG)
    claimed.send("stderr", "stderr", b"")
    claimed.send("output", "preview.svg", PICTURE)
    claimed.end()
    factories.turn()


def _suspect(site: Site, now: datetime) -> None:
    """Two worker nodes of the site that fail what others do well."""
    failed = list(Job.objects.filter(state="failed").values_list("pk", flat=True))
    for number, reason in ((42, "exit code 1"), (7, "exit code 127")):
        SuspectedNode.objects.create(
            site=site, host=f"wn{number:03}.north.example", since=now - timedelta(minutes=number),
            next_trial_at=now + timedelta(minutes=3), failed=98 - number, tried=98,
            others_failed=2, others_tried=260, failed_jobs=failed,
            reason=f"the payload ended with {reason}",
        )  # fmt: skip


def _downtimes_to_come(names: list[str]) -> None:
    now = timezone.now()
    for days, hours, at, reason in (
        (2, 6, names[:1], "The router in front of the disk servers is exchanged"),
        (5, 30, names, "Kernel update of all worker nodes"),
    ):
        start = now + timedelta(days=days)
        add_downtimes(
            at, start=start, end=start + timedelta(hours=hours), reason=reason,
            lead_time_s=14_400, actor=factories.SYSTEM, now=now,
        )  # fmt: skip


def _loops(now: datetime) -> None:
    celery_app.loader.import_default_modules()
    for loop in LOOPS.values():
        ControlLoop.objects.create(
            name=loop.name, period_s=3600, started_at=now - timedelta(seconds=2), duration_s=0.04
        )
    ControlLoop.objects.filter(name="director").update(
        error="Unreachable: the batch system of T2-South/long gave no answer within 10 s",
        failed_at=now,
    )
