"""World of two frontends: the small world is B's, with a marker in all that names it; and A's.

`walled_world` makes it. People of A are a viewer, a user and the administrator of another site.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from tests import factories
from tests.audit_trail import unguarded
from tests.portal.furnishing import CAMPAIGN, ended_cluster, placement, waiting_jobs
from tests.portal.world import World, small_world
from wms.accounting.models import (
    AccountingGroup,
    ConcurrencyLimit,
    DailyUse,
    Frontend,
    LabelUse,
    Submitter,
)
from wms.core.audit import record_action
from wms.core.labels import label_of_campaign
from wms.core.models import AuditEntry, Role, User
from wms.dags.models import Dag, NegotiationCycle, Node, ScriptRun
from wms.failures.models import FailureGroup
from wms.jobs.models import Attempt, Cluster, Job, Workspace
from wms.notices.models import Notice, Subscription
from wms.pilots.credential_models import Credential
from wms.pilots.models import Pilot
from wms.pilots.pressure.director import plan_requests
from wms.pilots.pressure_models import ElementContact, PressureRecord, PressureRequest
from wms.pilots.suspect_models import SuspectedNode
from wms.placement.catalogue.models import LogicalFile
from wms.placement.models import PlacementRequest
from wms.remarks.models import Remark
from wms.schedules.models import Schedule
from wms.sites.frontends.models import FrontendEntry
from wms.taskqueues.models import TaskQueue

#: Stands in all names, addresses and reasons of B's.
MARK = "bmark"


@dataclass(frozen=True, slots=True)
class Walled:
    """B's world with its owner; A's people by role, its DAG, job, cluster and pilot."""

    b: World
    owner: User
    people: dict[str, User]
    dag: Dag
    job: Job
    cluster: Cluster
    pilot: Pilot


def walled_world() -> Walled:
    """One of everything of B's, some of A's, and nothing of the default frontend's."""
    world = small_world()
    owner = world.people.alice
    group = _given_to_b(world, owner)
    own = _of_a(world)
    _marked(world, owner, group)
    for row in (owner, world.dag, world.job, world.pilot, world.node):
        row.refresh_from_db()
    return own


def _group(name: str, frontend: str, *members: User) -> AccountingGroup:
    made = AccountingGroup.objects.create(
        name=name, frontend=Frontend.objects.create(name=frontend)
    )
    made.members.set(members)
    return made


def _own(rows: dict, group: AccountingGroup) -> None:
    """Put objects of these owners, DAGs, clusters, and pilots into the name of a group."""
    Dag.objects.filter(pk__in=rows["dags"]).update(accounting_group=group)
    Cluster.objects.filter(pk__in=rows["clusters"]).update(accounting_group=group)
    Workspace.objects.filter(owner=rows["owner"]).update(owner_group=group.name)
    LogicalFile.objects.filter(owner=rows["owner"]).update(owner_group=group.name)
    TaskQueue.objects.filter(owner=rows["owner"]).update(owner_group=group.name)
    Pilot.objects.filter(pk__in=rows["pilots"]).update(frontend=group.frontend)
    Schedule.objects.filter(owner=rows["owner"]).update(accounting_group=group)


def _ids(model: type, **chosen: object) -> list[int]:
    return list(model.objects.filter(**chosen).values_list("pk", flat=True))


def _given_to_b(world: World, owner: User) -> AccountingGroup:
    frontend = Frontend.objects.create(name=f"{MARK}frontend")
    # Of which the owner is a member, and in whose name submitted.
    AccountingGroup.objects.filter(name="physics").update(name=f"{MARK}group", frontend=frontend)
    group = AccountingGroup.objects.select_related("frontend").get(frontend=frontend)
    everything = {
        "owner": owner, "dags": _ids(Dag), "clusters": _ids(Cluster), "pilots": _ids(Pilot),
    }  # fmt: skip
    _own(everything, group)
    Submitter.objects.filter(user=owner, group=None).delete()
    FrontendEntry.objects.create(frontend=frontend, queue=world.queue)
    return group


def _of_a(world: World) -> Walled:
    people = {
        "viewer": factories.person("vic", Role.VIEWER),
        "user": factories.person("amy", Role.USER),
        "site administrator": factories.person("tia", Role.SITE_ADMIN),
    }
    elsewhere = factories.site("Elsewhere")
    elsewhere.administrators.add(people["site administrator"])
    amy = people["user"]
    group = _group("agroup", "afrontend", *people.values())
    dag = factories.running_dag(amy, name="amys.dag", node_count=1)
    pilot = factories.pilot(elsewhere.queues.get())
    cluster = ended_cluster(amy)
    waiting_jobs(amy, elsewhere, 1, first_job=3 * 10**9)
    placement(dag)
    mine = {"owner": amy, "dags": [dag.pk], "clusters": [cluster.pk], "pilots": [pilot.pk]}
    _own(mine, group)
    FrontendEntry.objects.create(frontend=group.frontend, queue=elsewhere.queues.get())
    job = Job.objects.filter(owner=amy, topic_key=dag.pk)[0]
    return Walled(world, world.people.alice, people, dag, job, cluster, pilot)


def _marked(world: World, owner: User, group: AccountingGroup) -> None:
    """Write the marker wherever B's rows have words of their own, and where they are told of."""
    told = f"{MARK}reason"
    User.objects.filter(pk=owner.pk).update(username=f"{MARK}owner")
    named = {"owner_name": f"{MARK}owner", "group_name": group.name}
    DailyUse.objects.filter(owner_name="alice").update(**named)
    LabelUse.objects.filter(owner_name="alice").update(label=f"{MARK}label", **named)
    theirs = {"accounting_group": group}
    Dag.objects.filter(**theirs).update(
        name=f"{MARK}.dag", state_reason=told, concurrency_limits={f"{MARK}limit": 1}
    )
    ConcurrencyLimit.objects.create(name="*", maximum=9)
    labels = [label_of_campaign(CAMPAIGN), f"{MARK}label"]
    Dag.objects.filter(**theirs).update(labels=labels)
    Cluster.objects.filter(**theirs).update(name=f"{MARK}cluster", labels=labels)
    Schedule.objects.filter(**theirs).update(name=f"{MARK}schedule", state_reason=told)
    Node.objects.filter(dag=world.dag).update(name=f"{MARK}node", state_reason=told)
    Job.objects.filter(owner=owner).update(name=f"{MARK}job", state_reason=told)
    Attempt.objects.filter(job__owner=owner).update(reason=told, host=f"{MARK}host")
    ScriptRun.objects.filter(dag=world.dag).update(executable=f"{MARK}.sh")
    PlacementRequest.objects.filter(owner=owner).update(source_url=f"file:///{MARK}")
    Pilot.objects.filter(frontend=group.frontend).update(
        state_reason=told, node={"hostname": f"{MARK}host"}, native_id=f"{MARK}1"
    )
    FailureGroup.objects.update(text=told, sample=told)
    Remark.objects.update(text=told, subject_name=f"{MARK}.dag", ticket=f"https://{MARK}.org/1")
    SuspectedNode.objects.update(failed_jobs=[world.job.pk], reason=told)
    _told_of(world, group, told)


def _told_of(world: World, group: AccountingGroup, told: str) -> None:
    now = timezone.now()
    plan_requests(now)
    PressureRequest.objects.filter(frontend=group.frontend).update(
        reasons=[told], turn_reasons=[told], served_at=now
    )
    PressureRecord.objects.create(
        queue=world.queue, frontend=group.frontend, at=now, wanted=1, granted=1, ceiling=1,
        waiting_jobs=1, submitted=0, removed=0, reasons=[told],
    )  # fmt: skip
    credential = Credential.objects.create(
        name=f"{MARK}login", frontend=group.frontend, queue=world.queue, kind="ssh-key",
        account="b", directory="/b", sealed="x", valid_until=now + timedelta(hours=1),
        expires_at=now + timedelta(hours=1),
    )  # fmt: skip
    ElementContact.objects.create(
        queue=world.queue, kind="submit", credential=credential, failures=2, reason=told,
        failing_since=now, next_at=now + timedelta(hours=1),
    )  # fmt: skip
    NegotiationCycle.objects.update(
        left_over=[{"reason": told, "count": 1, "dags": [world.dag.pk]}]
    )
    amy = User.objects.get(username="amy")
    # She was of B, and is so no more.
    Notice.objects.create(
        user=amy, kind="failed", subject_kind="dag", subject_id=str(world.dag.pk),
        happened_at=now, title=told, key="test:left",
    )  # fmt: skip
    Subscription.objects.create(user=amy, rule="dag", dag=world.dag)
    walled = ("job", "cluster", "pilot", "placement", "failure")
    with unguarded():
        AuditEntry.objects.filter(object_kind__in=walled).exclude(actor="amy").update(reason=told)
    record_action("look", target=f"DAG {world.dag.pk}", actor=factories.SYSTEM, reason=told)
