"""What is explained of a job that waits is what the claim does, for random jobs and pilots.

A further need, or property of a queue, is one line in `NEEDS` or `QUEUES`.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from matching.task_queues.needs import BadNeeds, Needs
from matching.task_queues.resources import Resource
from tests.wms.jobs.clusters.samples import submit
from tests.wms.pilots.claiming import SYSTEM
from wms.accounting.models import AccountingGroup, ConcurrencyLimit
from wms.core.models import User
from wms.explain.answers import answer_for_job
from wms.jobs.binding.scopes import site_set_ids
from wms.jobs.limits import save_limit
from wms.jobs.models import Attempt, Job, RunningLimit, SiteScope
from wms.jobs.operations import JobSpec, create_workspace, submit_jobs
from wms.pilots.models import Pilot
from wms.pilots.protocol import registration
from wms.pilots.protocol.claims import claim_job
from wms.sites.models import Queue, Site
from wms.sites.selectors import fresh_time_s, queue_offer, with_identity
from wms.taskqueues.models import TaskQueuePolicy, WaitingJob
from wms.taskqueues.operations import claim

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

#: The claim compares with the clock of the database how long a job has waited.
SEGMENTS_S = (500, 86_340, 86_400)
some = st.sampled_from

#: Needs of the job; few values each, so that most fit.
NEEDS: dict[str, st.SearchStrategy[Any]] = {
    "owner_group": some(["", "physics", "shared"]),
    "setup": some(["", "tests"]),
    "cpu_time_s": some([500, 86_340, 86_400]),
    "cores": some([1, 2, 9]),
    "memory_mb": some([0, 2000, 2001]),
    "gpus": some([0, 1]),
    "disk_mb": some([0, 2000, 2001]),
    "limits": some([["db"], ["db:2"], ["tape.read"], ["db", "unheard"], ["db:2", "tape.write"]]),
    "sites": some([["site-a"], ["site-b"], ["site-a", "site-b"]]),
    "banned_sites": some([["site-a"], ["site-b"]]),
    "queues": some([["site-a/main"], ["site-a/other"]]),
    "platforms": some([["linux-x86_64"], ["linux-arm64"], ["linux-arm64", "linux-x86_64"]]),
    "pilot_types": some([["private"], ["generic"], ["generic", "private"]]),
    "submit_pools": some([["pool"], ["other"]]),
    "middlewares": some([["host"], ["slurm"]]),
    "tags": some([["ssd"], ["tape"], ["ssd", "tape"]]),
    "job_type": some(["User", "Test"]),
    "requirements": some(
        ["true", "false", "Cpus", "Unheard > 1", "Memory >= 2000", 'Site == "site-a"', "1 / 0 == 1",
         'member("ssd", Tags)', 'Machine == "n1"', 'PilotType == "private"', "RequestCpus <= Cpus",
         "Machine =!= undefined", 'Owner == "alice"', "NodeCores >= 1", 'OpSys == "LINUX"']
    ),
}  # fmt: skip
#: Properties of the queue, which its pilots have.
QUEUES: dict[str, st.SearchStrategy[Any]] = {
    "cores": some([1, 8]),
    "memory_mb": some([2000, 1000]),
    "gpus": some([0, 1]),
    "payload_limits": some([{}, {"disk_mb": 2000}, {"disk_mb": 0}]),
    "wall_time_s": some([86_400, 560]),
    "platform": some(["", "linux-x86_64"]),
    "setup": some(["", "tests"]),
    "submit_pool": some(["", "pool"]),
    "tags": some([[], ["ssd"], ["ssd", "tape"]]),
    "required_tags": some([[], ["ssd"]]),
    "is_private": st.booleans(),
    "owner": some(["alice", "charlie"]),
    "owner_group": some(["physics", "shared"]),
}


@dataclass(frozen=True, slots=True)
class World:
    """What stands around the job and the pilot.

    `maxima` are those of concurrency limits, `used` what a running job uses of them. `way` is how
    the job came: alone, in a cluster, or from a DAG whose jobs may run at the sites of `scope`.
    """

    limit: tuple[str, str, str, int | None, bool] | None = None
    running: int = 0
    avoided: tuple[str, ...] = ()
    waited_s: int = 0
    has_other_node: bool = True
    is_banned: bool = False
    is_active: bool = True
    leaves: tuple[str, ...] = ()
    maxima: tuple[tuple[str, float], ...] = ()
    used: tuple[tuple[str, float], ...] = ()
    way: str = "alone"
    scope: tuple[str, ...] = ()


worlds = st.builds(
    World,
    limit=st.none()
    | st.tuples(
        some(["", "User", "Test"]), some(["", "physics"]), some(["", "site-a"]),
        some([None, 0, 1, 2]), st.booleans(),
    ),
    running=some([0, 1]),
    avoided=some([(), ("n1",), ("n2",), ("n1", "n2")]),
    waited_s=some([0, 10_000_000]),
    has_other_node=st.booleans(),
    is_banned=some([False, False, True]),
    is_active=some([True, True, True, False]),
    leaves=some([(), (), ("physics",), ("shared",)]),
    maxima=some([(), (("db", 1),), (("db", 2),), (("db", 3), ("tape.*", 1)), (("tape.*", 0),)]),
    used=some([(), (("db", 1),), (("db", 2),), (("tape.read", 1),)]),
    way=some(["alone", "cluster", "DAG"]),
    scope=some([("site-a",), ("site-a", "site-b"), ("site-b",), ()]),
)  # fmt: skip


def few(strategies: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Values of at most three of the names."""
    names = st.lists(some(sorted(strategies)), max_size=3, unique=True)
    return names.flatmap(lambda found: st.fixed_dictionaries({n: strategies[n] for n in found}))


def needs_of(values: dict[str, Any]) -> Needs | None:
    try:
        return Needs.of("alice", segments_s=SEGMENTS_S, **values)
    except BadNeeds:
        return None


def made_queue(values: dict[str, Any], people: dict[str, User]) -> Queue:
    groups = {group.name: group for group in AccountingGroup.objects.all()}
    site = Site.objects.create(name="site-a")
    given = dict(values)
    given["owner"] = people.get(given.get("owner", ""))
    group = groups.get(given.pop("owner_group", ""))
    given["owner_group"] = group if given["owner"] else None
    return Queue.objects.create(site=site, name="main", element="host", **given)


def made_job(alice: User, needs: Needs, world: World) -> int:
    pk = job_of_cluster(alice, needs) if world.way == "cluster" else job(alice, needs, world)
    since = timezone.now() - timedelta(seconds=world.waited_s)
    hosts = list(world.avoided)
    WaitingJob.objects.filter(job_id=pk).update(enqueued_at=since, avoided_hosts=hosts)
    return pk


def job(alice: User, needs: Needs, world: World) -> int:
    """A job alone, or one of a DAG whose jobs are bound by their claims."""
    late = None
    if world.way == "DAG":
        [sites_id] = site_set_ids([frozenset(world.scope)]).values()
        late = {"scope": SiteScope.objects.create(pk=1, sites_id=sites_id).pk}
    spec = JobSpec(name="run", executable="/bin/true", needs=needs, late=late)
    workspace = create_workspace(alice, {})
    [pk] = submit_jobs([spec], owner=alice, workspace=workspace, actor=SYSTEM)
    return pk


def job_of_cluster(alice: User, needs: Needs) -> int:
    """The only job of a cluster that is submitted for these needs."""
    given = {name: value for name, value in needs.as_dict().items() if value}
    del given["owner"]
    options = {"group": given.pop("owner_group", "")}
    commands = {"concurrency_limits": ", ".join(given.pop("limits", []))}
    TaskQueuePolicy.objects.update_or_create(defaults={"cpu_segments_s": list(SEGMENTS_S)}, pk=1)
    description = {"executable": "/bin/true", "commands": commands, **given}
    cluster = submit(alice, description, options=options).cluster
    return Job.objects.get(cluster_id=cluster.pk).pk


def use_limits(alice: User, world: World) -> None:
    """Configure the concurrency limits, of which a running job uses some."""
    for name, maximum in world.maxima:
        ConcurrencyLimit.objects.create(name=name, maximum=maximum)
    if world.used:
        run_elsewhere(alice, Needs.of("alice", sites=["site-b"]), dict(world.used))


def run_elsewhere(alice: User, needs: Needs, used: dict[str, float] | None = None) -> None:
    """Another job of the same kind runs at the site already, or uses this of limits."""
    spec = JobSpec(name="busy", executable="/bin/true", needs=needs)
    [pk] = submit_jobs([spec], owner=alice, workspace=create_workspace(alice, {}), actor=SYSTEM)
    WaitingJob.objects.filter(job_id=pk).delete()
    Job.objects.filter(pk=pk).update(state="running", attempt_number=1)
    Attempt.objects.create(
        job_id=pk, number=1, pilot_id=0, site_name="site-b" if used else "site-a",
        job_type="busy" if used else needs.job_type, owner_group=needs.owner_group, limits=used,
    )  # fmt: skip


def made_limit(world: World, queue: Queue) -> None:
    if world.limit is None:
        return
    job_type, group, site, maximum, has_interval = world.limit
    if maximum is None and not has_interval:
        return
    limit = RunningLimit(
        site=queue.site if site else None, job_type=job_type, owner_group=group, maximum=maximum,
        min_interval_s=60 if has_interval else None,
        last_match_at=timezone.now() - timedelta(seconds=30) if has_interval else None,
    )  # fmt: skip
    save_limit(limit, actor=SYSTEM)
    # What operators configure leaves it out.
    RunningLimit.objects.filter(pk=limit.pk).update(last_match_at=limit.last_match_at)


def sent_pilot(queue: Queue, alice: User, needs: Needs, host: str = "n1") -> Pilot:
    """A pilot of the queue that has just called in; a drawn owner is that of the job."""
    owner, group = queue.owner, queue.owner_group
    if queue.has_owners:
        owner, group = alice, AccountingGroup.objects.filter(name=needs.owner_group).first()
        if group is not None and group.has_job_sharing:
            owner = group.members.filter(is_active=True).first()
    made = Pilot.objects.create(
        queue=queue, batch="b", state="running", owner=owner, owner_group=group, secret_sha256="x",
        token_sha256=registration.secret_digest("t" * 64), node={"hostname": host, "cores": 8},
    )  # fmt: skip
    return registration.authenticate_pilot(made.uuid, "t" * 64, now=timezone.now())


def fresh(pilot: Pilot, needs: Needs) -> Resource:
    """What it has free; where its queue leaves the platform open, it came to one that fits."""
    offer = queue_offer(pilot.queue)
    platform = offer.platform or (needs.platforms or ("linux-x86_64",))[0]
    mine = replace(offer, cpu_time_s=fresh_time_s(pilot.queue), platform=platform)
    return with_identity(mine, pilot.owner, pilot.owner_group)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(needs=few(NEEDS).map(needs_of).filter(bool), queue=few(QUEUES), world=worlds)
@example(needs=Needs.of("alice", submit_pools=["pool"]), queue={}, world=World())
@example(needs=Needs.of("alice", requirements="Cpus"), queue={}, world=World())
@example(needs=Needs.of("alice"), queue={"owner": "alice"}, world=World(is_active=False))
@example(needs=Needs.of("alice"), queue={"is_private": True}, world=World(is_active=False))
@example(needs=Needs.of("alice"), queue={}, world=World(avoided=("n1",), waited_s=10_000_000))
@example(
    needs=Needs.of("alice", owner_group="shared"),
    queue={"is_private": True},
    world=World(leaves=("shared",)),
)
@example(
    needs=Needs.of("alice", disk_mb=2001),
    queue={"payload_limits": {"disk_mb": 2000}},
    world=World(),
)
@example(
    needs=Needs.of("alice", limits=["db:2"]),
    queue={},
    world=World(maxima=(("db", 3),), used=(("db", 1),), way="cluster"),
)
@example(
    needs=Needs.of("alice", limits=["db:2"]),
    queue={},
    world=World(maxima=(("db", 3),), used=(("db", 2),), way="cluster"),
)
@example(
    needs=Needs.of("alice", limits=["tape.read"]),
    queue={},
    world=World(maxima=(("tape.*", 1),), used=(("tape.read", 1),)),
)
@example(needs=Needs.of("alice"), queue={}, world=World(way="DAG", scope=("site-b",)))
@example(needs=Needs.of("alice", sites=["site-a"]), queue={}, world=World(way="DAG"))
@example(needs=Needs.of("alice", banned_sites=["site-b"]), queue={},
         world=World(way="DAG", scope=("site-a", "site-b")))  # fmt: skip
def test_a_job_is_explained_as_it_is_claimed(
    needs: Needs, queue: dict[str, Any], world: World, alice: User, charlie: User
) -> None:
    with transaction.atomic():
        people = {"alice": alice, "charlie": charlie}
        for name, shares in (("physics", False), ("shared", True)):
            group = AccountingGroup.objects.create(name=name, has_job_sharing=shares)
            group.members.set(people.values())
        made = made_queue(queue, people)
        for _ in range(world.running):
            run_elsewhere(alice, needs)
        use_limits(alice, world)
        job_id = made_job(alice, needs, world)
        made_limit(world, made)
        if world.is_banned:
            Site.objects.update(state="banned", state_reason="x")
        User.objects.filter(pk=alice.pk).update(is_active=world.is_active)
        for name in world.leaves:
            AccountingGroup.objects.get(name=name).members.remove(alice)
        made.refresh_from_db()
        pilot = sent_pilot(made, alice, needs)
        if world.has_other_node:
            sent_pilot(made, alice, needs, host="n3")

        answer = answer_for_job(charlie, job_id, now=timezone.now())
        given = claim_job(
            pilot, fresh(pilot, needs), claim_key=secrets.token_hex(8), now=timezone.now()
        )

        assert answer.queues is not None
        [fit] = answer.queues.queues
        may_take = (not fit.refusal or fit.is_unsent) and not fit.is_limited
        is_left = "n1" in answer.avoided_hosts and world.has_other_node
        assert (given.work is not None) == (may_take and not is_left), (fit, given.reason)
        if given.work is None:
            assert fit.refusal or fit.closed or is_left
        transaction.set_rollback(True)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(needs=few(NEEDS).map(needs_of).filter(bool), queue=few(QUEUES))
def test_the_draw_takes_what_the_explanation_lets_it_take(
    needs: Needs, queue: dict[str, Any], alice: User, charlie: User
) -> None:
    with transaction.atomic():
        for name, shares in (("physics", False), ("shared", True)):
            AccountingGroup.objects.create(name=name, has_job_sharing=shares).members.set(
                [alice, charlie]
            )
        made = made_queue(queue, {"alice": alice, "charlie": charlie})
        job_id = made_job(alice, needs, World())
        pilot = sent_pilot(made, alice, needs)

        answer = answer_for_job(alice, job_id, now=timezone.now())
        claimed = claim(fresh(pilot, needs), facts=pilot.node)

        assert answer.queues is not None
        [fit] = answer.queues.queues
        assert (claimed is not None) == (not fit.refusal or fit.is_unsent), fit
        transaction.set_rollback(True)
