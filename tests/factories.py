"""Factories of test objects: people, sites, DAGs, jobs, pilots, claims, made by the real services.

Others move them on: `turn` runs negotiator and engine once, `run_job` and `finish` run jobs to
their ends. Every function commits what it makes, or leaves that to the test's transaction, and
returns rows.
"""

from __future__ import annotations

import io
import itertools
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from types import SimpleNamespace
from typing import Any

from django.contrib.auth.hashers import make_password
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from matching.task_queues.needs import Needs
from matching.task_queues.resources import Resource
from wms.accounting.models import AccountingGroup, ConcurrencyLimit
from wms.accounting.services import charge, save_group, save_limit
from wms.core.accounts import ensure_account
from wms.core.actors import Actor
from wms.core.audit import record_actions
from wms.core.models import Role, User
from wms.core.policy import enters_administration
from wms.core.tokens import create_token
from wms.dags.engine import cycle as engine
from wms.dags.models import Dag
from wms.dags.negotiation import cycle as negotiation
from wms.dags.submission.submit import DagSubmission, submit_dag
from wms.jobs.attempts import ending, progress
from wms.jobs.attempts import guard as pilot_reports
from wms.jobs.content import blobs
from wms.jobs.models import Job
from wms.jobs.models.descriptions import DEFAULTS
from wms.jobs.operations import create_workspace, submit_jobs
from wms.jobs.specs import JobSpec, SharedValues
from wms.jobs.writing.stored_descriptions import ids_by_key
from wms.pilots.models import Pilot
from wms.pilots.protocol import registration as pilots
from wms.pilots.protocol.claims import claim_job
from wms.sites.advertising import advertise
from wms.sites.downtimes.models import Downtime
from wms.sites.downtimes.services import add_downtime
from wms.sites.models import Advertisement, Queue, Site
from wms.sites.selectors import offered_resource
from wms.sites.services import QueueSpec, SiteSpec, configure_site

SYSTEM = Actor.system("test")
PASSWORD = "correct horse battery staple"
SECRET = "s" * 43
_numbers = itertools.count(1)

#: The standard people and their roles. Tina administers the first site of `world`, Tom another.
ROLES = {
    "vera": Role.VIEWER,
    "alice": Role.USER,
    "bob": Role.USER,
    "charlie": Role.USER,
    "tina": Role.SITE_ADMIN,
    "tom": Role.SITE_ADMIN,
    "sam": Role.SHIFTER,
    "olga": Role.OPERATOR,
    "ada": Role.ADMIN,
}

SUBMIT_FILE = """\
executable = run.sh
arguments = $(JOB) $(number)
transfer_output_files = out.$(JOB).txt
output = $(JOB).out
error = $(JOB).err
queue
"""


def person(username: str, role: Role | None = None) -> User:
    """A person of this name; the standard people have their own roles, others are users."""
    return ensure_account(
        username, password=PASSWORD, role=role or ROLES.get(username, Role.USER), actor=SYSTEM
    )


def people() -> SimpleNamespace:
    """All standard people: `people().alice` and so on.

    Most tests begin with them. They are stored by one statement, as `person` would store each; this
    takes a tenth of the time.
    """
    known = {user.username: user for user in User.objects.filter(username__in=ROLES)}
    made = [User(username=name, role=role) for name, role in ROLES.items() if name not in known]
    for user in made:
        user.password, user.is_staff = _password_hash(), enters_administration(user)
    User.objects.bulk_create(made)
    targets = [f"user {user.username}" for user in made]
    record_actions("create account", targets=targets, actor=SYSTEM)
    known |= {user.username: user for user in made}
    return SimpleNamespace(**{name: known[name] for name in ROLES})


@cache
def _password_hash() -> str:
    return make_password(PASSWORD)


def token_for(user: User) -> str:
    """The text of a new token."""
    return create_token(user, name="test", actor=SYSTEM)


def site(
    name: str = "UW",
    *,
    queues: Sequence[str] = ("short",),
    max_matches: int = 100,
    attributes: str = "",
) -> Site:
    """A site with host queues, which takes every DAG."""
    return configure_site(
        SiteSpec(
            name=name,
            max_matches=max_matches,
            environment="SiteWorkingArea=/tmp",
            attributes=attributes,
        ),
        [QueueSpec(name=queue, element="host", memory_mb=4000) for queue in queues],
        actor=SYSTEM,
    )


def accounting(user: User, name: str = "physics") -> AccountingGroup:
    """A group of which the user is a member, charged for some use, and a limit, of this name."""
    group = AccountingGroup(name=name, quota=0.01)
    save_group(group, actor=SYSTEM, members=[user])
    save_limit(ConcurrencyLimit(name=name, maximum=10), actor=SYSTEM)
    charge({(user.pk, group.pk): 2.0}, half_life_s=86_400, now=timezone.now())
    return group


def advertisement(at: Site, *, sequence: int = 1) -> Advertisement:
    """What a site says of itself, for a week."""
    text = f'Name = "{at.name}"\nUpdateSequenceNumber = {sequence}\nClassAdLifetime = 604800'
    return advertise(text, actor=SYSTEM, now=timezone.now()).advertisement


def downtime(at: Site) -> Downtime:
    """A downtime of an hour, in a year."""
    start = timezone.now() + timedelta(days=365)
    return add_downtime(
        at.name,
        start=start,
        end=start + timedelta(hours=1),
        reason="new disks",
        actor=SYSTEM,
        now=timezone.now(),
    )


def dag_text(node_count: int, *, is_chain: bool = False) -> str:
    """A DAG file: nodes A1, A2, ... side by side, or each the parent of the next."""
    names = [f"A{number}" for number in range(1, node_count + 1)]
    lines = [f"JOB {name} job.sub\nVARS {name} number={name[1:]}" for name in names]
    if is_chain:
        lines += [f"PARENT {parent} CHILD {child}" for parent, child in itertools.pairwise(names)]
    return "\n".join(lines) + "\n"


def dag(
    owner: User,
    *,
    name: str = "analysis.dag",
    node_count: int = 2,
    is_chain: bool = False,
    commands: str = "",
    files: Mapping[str, bytes] | None = None,
    idempotency_key: str | None = None,
) -> Dag:
    """A submitted DAG, idle; `commands` stand behind its nodes and arcs."""
    content = {"job.sub": SUBMIT_FILE.encode(), "run.sh": b"#!/bin/sh\n", **(files or {})}
    submission = DagSubmission(
        dag_name=name,
        dag_text=dag_text(node_count, is_chain=is_chain) + commands,
        files={path: io.BytesIO(data) for path, data in content.items()},
        idempotency_key=idempotency_key,
    )
    return submit_dag(submission, owner=owner, actor=Actor.person(owner))


def running_dag(owner: User, *, at: Site | None = None, **how: object) -> Dag:
    """A DAG that was matched, with jobs for the nodes that are ready."""
    if at is None and not Site.objects.exists():
        site()
    made = dag(owner, **how)  # type: ignore[arg-type]
    turn()
    made.refresh_from_db()
    assert made.state == "running", made.unmatched_reason or made.state_reason
    return made


def deciding_dag(owner: User) -> Dag:
    """A running DAG of which A1 is done, so that B runs and C is skipped; the gate g waits, and M
    needs any of the three.
    """
    made = running_dag(
        owner,
        name="deciding.dag",
        node_count=1,
        commands="JOB B job.sub\nJOB C job.sub\nGATE g DEADLINE 2d\nJOB M job.sub\n"
        "PARENT A1 CHILD B WHEN (ExitCode == 0)\nPARENT A1 CHILD C WHEN (ExitCode > 0)\n"
        "PARENT B C g CHILD M\nJOIN M ANY\n",
    )
    run_job(pilot(made.site.queues.get()))
    turn()
    made.refresh_from_db()
    return made


def turn() -> None:
    """One turn of negotiator and engine, at the time of now."""
    negotiation.run_cycle(timezone.now())
    engine.run_cycle(timezone.now())


def job(owner: User, *, name: str = "single", files: Mapping[str, bytes] | None = None) -> Job:
    """A single job without a DAG, waiting."""
    stored = {path: blobs.store_bytes(data) for path, data in (files or {}).items()}
    spec = JobSpec(name=name, executable="/bin/true", needs=Needs.of(owner.username))
    workspace = create_workspace(owner, stored)
    [pk] = submit_jobs([spec], owner=owner, workspace=workspace, actor=Actor.person(owner))
    return Job.objects.get(pk=pk)


def job_row(**values: Any) -> Job:
    """A row of a job that nobody has submitted, not stored, with a description that is."""
    columns = {name: value for name, value in values.items() if name not in DEFAULTS}
    described = {name: value for name, value in values.items() if name in DEFAULTS}
    shared = SharedValues.of({"executable": "/bin/true", **described})
    with transaction.atomic():
        description = ids_by_key([shared])[shared.key]
    has_periodic = bool(described.get("periodic"))
    return Job(description_id=description, has_periodic=has_periodic, **columns)


def stored_job(**values: Any) -> Job:
    """A job that nobody has submitted."""
    made = job_row(**values)
    made.save()
    return made


def describe(jobs: QuerySet[Job], **values: Any) -> None:
    """Give jobs other values of their descriptions, each for itself."""
    for each in jobs.select_related("description"):
        each.give(**values)
        each.has_periodic = bool(each.periodic)
        each.save(update_fields=["own", "has_periodic"])


def queued_pilot(queue: Queue | None = None) -> Pilot:
    """A pilot that was submitted and has not called in."""
    if queue is None:
        queue = Queue.objects.first() or site().queues.get()
    return Pilot.objects.create(
        queue=queue,
        batch=f"batch-{next(_numbers)}",
        native_id=str(next(_numbers)),
        secret_sha256=pilots.secret_digest(SECRET),
    )


def pilot(queue: Queue | None = None, *, host: str = "node1") -> Pilot:
    """A pilot that has registered, from this worker node."""
    made = queued_pilot(queue)
    node = {"hostname": host, "platform": "linux", "cores": 1, "memory_mb": 4000}
    pilots.register_pilot(made.uuid, secret=SECRET, token="t" * 64, node=node, now=timezone.now())
    return Pilot.objects.select_related("queue__site").get(pk=made.pk)


@dataclass(frozen=True, slots=True)
class Claimed:
    """A job in the hands of a pilot."""

    job: Job
    number: int
    pilot: Pilot

    def start(self) -> Claimed:
        """The payload was started."""
        progress.start_attempt(
            self.job.pk,
            self.number,
            pilot_id=self.pilot.pk,
            actor=pilots.pilot_actor(self.pilot),
        )
        return self

    def send(self, kind: str, path: str, content: bytes) -> None:
        """The pilot sends a file."""
        attempt = pilot_reports.live_attempt(self.job.pk, self.number, pilot_id=self.pilot.pk)
        blob = blobs.store_bytes(content)
        progress.add_attempt_file(attempt, kind=kind, path=path, blob=blob)

    def give_back(self, reason: str) -> None:
        """The pilot cannot run the job; it waits for another."""
        ending.return_job(
            self.job.pk,
            self.number,
            pilot_id=self.pilot.pk,
            reason=reason,
            actor=pilots.pilot_actor(self.pilot),
        )

    def end(self, exit_code: int = 0) -> None:
        """The payload has ended; a success has sent its output files."""
        if exit_code == 0:
            for path in self.job.output_files:
                self.send("output", path, f"made by {self.job.name}\n".encode())
        ending.end_attempt(
            self.job.pk,
            self.number,
            pilot_id=self.pilot.pk,
            end=ending.PayloadEnd(exit_code=exit_code, wall_s=1.5, cpu_s=1.0, max_rss_mb=20.0),
            actor=pilots.pilot_actor(self.pilot),
            now=timezone.now(),
        )


def claim(by: Pilot, resource: Resource | None = None) -> Claimed | None:
    """The next job for the pilot, or None."""
    offered = resource or offered_resource(by.queue)
    key = secrets.token_hex(16)
    # A pilot's pause after a claim in vain would be a pause of the test.
    Pilot.objects.filter(pk=by.pk).update(fruitless_at=None)
    work = claim_job(by, offered, claim_key=key, now=timezone.now()).work
    return None if work is None else Claimed(work.job, work.attempt.number, by)


def run_job(by: Pilot, *, exit_code: int = 0, stdout: bytes = b"hello\n") -> Job | None:
    """Claim a job and run it to its end; None when there was none."""
    claimed = claim(by)
    if claimed is None:
        return None
    claimed.start()
    claimed.send("stdout", "stdout", stdout)
    claimed.send("stderr", "stderr", b"")
    claimed.end(exit_code)
    return Job.objects.get(pk=claimed.job.pk)


def finish(made: Dag) -> Dag:
    """Run all jobs of a running DAG until it has ended."""
    worker = pilot(Queue.objects.filter(site=made.site).first())
    while run_job(worker) is not None:
        turn()
    made.refresh_from_db()
    return made
