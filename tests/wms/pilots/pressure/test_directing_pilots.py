"""Pilots that the director sends: number, size, and owner."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from matching.task_queues.needs import Needs
from tests.wms.pilots.directing import reasons_of, sent
from wms.accounting.models import AccountingGroup
from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs.models import Attempt
from wms.jobs.operations import JobSpec, create_workspace, submit_jobs
from wms.pilots.models import Pilot
from wms.sites.models import Queue


def submit(owner: User, group: str = "", **needs: object) -> None:
    wanted = Needs.of(owner.username, owner_group=group, **needs)
    spec = JobSpec(name="run", executable="/bin/true", needs=wanted)
    workspace = create_workspace(owner, {})
    submit_jobs([spec], owner=owner, workspace=workspace, actor=Actor.person(owner))


def running(queue: Queue, used_cores: int = 0, **node: int) -> Pilot:
    """A pilot that has registered, with an open attempt that holds so many cores."""
    made = Pilot.objects.create(
        queue=queue,
        state="running",
        registered_at=timezone.now(),
        token_sha256="x",
        secret_sha256="x",
        node=node,
    )
    if used_cores:
        job = _any_job()
        Attempt.objects.create(
            job_id=job, number=1, pilot_id=made.pk, site_name=queue.site.name, cores=used_cores
        )
    return made


def _any_job() -> int:
    owner = User.objects.get_or_create(username="somebody")[0]
    spec = JobSpec("busy", "/bin/true", Needs.of("somebody", sites=["nowhere"]))
    workspace = create_workspace(owner, {})
    [pk] = submit_jobs([spec], owner=owner, workspace=workspace, actor=Actor.person(owner))
    return pk


def test_a_pilot_of_many_cores_is_sent_for_as_many_jobs(make_queue, add_jobs, elements) -> None:
    make_queue(cores=8, memory_mb=16_000, gpus=2)
    add_jobs(17)

    assert sent() == {"site-a/main": 3}
    assert sent() == {"site-a/main": 0}
    assert elements["site-a"].slots_asked == [(8, 16_000, 2)]


def test_memory_and_gpus_bound_what_a_pilot_is_sent_for(make_queue, add_jobs) -> None:
    make_queue(cores=8, memory_mb=16_000, gpus=2)
    add_jobs(4, memory_mb=8000)
    add_jobs(4, gpus=1)

    # Each holds two of both.
    assert sent() == {"site-a/main": 2}
    assert sent() == {"site-a/main": 0}


def test_free_cores_of_running_pilots_are_counted(make_queue, add_jobs) -> None:
    queue = make_queue(cores=8)
    running(queue, used_cores=5)
    add_jobs(3)

    assert sent() == {"site-a/main": 0}
    add_jobs(1)
    assert sent() == {"site-a/main": 1}


def test_a_large_job_is_not_kept_waiting_by_cores_that_are_free_here_and_there(
    make_queue, add_jobs
) -> None:
    queue = make_queue(cores=8)
    for _ in range(8):
        running(queue, used_cores=7)
    add_jobs(1, cores=8)

    assert sent() == {"site-a/main": 1}


def test_what_a_pilot_really_got_counts_and_not_what_its_queue_offers_today(
    make_queue, add_jobs
) -> None:
    queue = make_queue(cores=8)
    running(queue, used_cores=1, slot_cores=1, slot_memory_mb=2000, slot_gpus=0)
    add_jobs(1)

    assert sent() == {"site-a/main": 1}


def test_a_queue_that_tells_no_disk_is_known_by_its_pilots(make_queue, add_jobs) -> None:
    queue = make_queue(cores=8)
    add_jobs(1, disk_mb=5000)
    assert sent() == {"site-a/main": 1}
    Pilot.objects.all().delete()
    running(queue, used_cores=8, disk_mb=4999)

    assert sent() == {"site-a/main": 0}
    Pilot.objects.update(state="done", ended_at=timezone.now() - timedelta(hours=7))
    assert sent() == {"site-a/main": 1}


def test_a_pilot_with_too_little_time_left_is_not_counted_on(make_queue, add_jobs) -> None:
    queue = make_queue(cores=8, wall_time_s=86_400)
    running(queue, used_cores=1)
    Pilot.objects.update(registered_at=timezone.now() - timedelta(hours=23))
    add_jobs(7, cpu_time_s=500)
    assert sent() == {"site-a/main": 0}

    add_jobs(8, cpu_time_s=50_000)

    assert sent() == {"site-a/main": 1}


def test_a_pilot_is_counted_on_for_what_its_batch_system_and_its_power_leave(
    make_queue, add_jobs
) -> None:
    queue = make_queue(cores=8, wall_time_s=86_400)
    running(queue, used_cores=1)
    pilot = Pilot.objects.get()
    pilot.node["ends_at"] = int(timezone.now().timestamp()) + 4000
    pilot.published = {"benchmark": {"CpuPower": 1.5}}
    pilot.save(update_fields=["node", "published"])
    add_jobs(7, cpu_time_s=5000)
    assert sent() == {"site-a/main": 0}

    Pilot.objects.update(published={})

    assert sent() == {"site-a/main": 1}


def test_a_stalled_pilot_is_free_for_nothing(make_queue, add_jobs) -> None:
    running(make_queue())
    Pilot.objects.update(state="stalled")
    add_jobs(1)

    assert sent() == {"site-a/main": 1}


def test_private_pilots_are_sent_for_their_own_and_carry_the_identity(
    make_queue, alice: User, charlie: User
) -> None:
    physics = AccountingGroup.objects.create(name="physics")
    physics.members.add(alice, charlie)
    make_queue(owner="alice", owner_group="physics")
    submit(charlie, "physics")
    submit(alice)

    assert sent() == {"site-a/main": 0}
    submit(alice, "physics")
    assert sent() == {"site-a/main": 1}

    pilot = Pilot.objects.get()
    assert (pilot.owner, pilot.owner_group) == (alice, physics)


def test_private_pilots_of_a_group_that_shares_are_sent_for_all_its_members(
    make_queue, alice: User, charlie: User
) -> None:
    physics = AccountingGroup.objects.create(name="physics", has_job_sharing=True)
    physics.members.add(alice, charlie)
    make_queue(owner="alice", owner_group="physics")
    submit(charlie, "physics")
    submit(charlie)

    assert sent() == {"site-a/main": 1}


def test_no_private_pilots_are_sent_for_who_has_left_the_group_or_is_switched_off(
    make_queue, alice: User, charlie: User
) -> None:
    physics = AccountingGroup.objects.create(name="physics", has_job_sharing=True)
    physics.members.add(alice, charlie)
    for site in ("site-a", "site-b"):
        make_queue(site, owner="alice", owner_group="physics")
    make_queue("site-c", owner="charlie")
    make_queue("site-d", owner="charlie", owner_group="physics")
    submit(charlie, "physics")
    submit(charlie, "physics", sites=["site-a"])
    submit(charlie, sites=["site-c"])

    physics.members.remove(alice)
    User.objects.filter(pk=charlie.pk).update(is_active=False)

    assert set(sent().values()) == {0}

    reasons = {queue.site.name: reasons_of(queue) for queue in Queue.objects.all()}
    left = ["alice is not a member of physics any more"]
    off = ["the account of charlie is switched off"]
    assert reasons == {"site-a": left, "site-b": left, "site-c": off, "site-d": off}


def test_pilots_for_somebody_else_do_not_count_for_a_queue_that_has_changed_hands(
    make_queue, alice: User
) -> None:
    queue = make_queue()
    running(queue)
    Queue.objects.update(owner=alice)
    submit(alice)

    assert sent() == {"site-a/main": 1}


def test_submit_pool_and_kind_of_batch_system_are_looked_at(make_queue, add_jobs) -> None:
    make_queue("site-a", submit_pool="one")
    make_queue("site-b", submit_pool="two")
    add_jobs(2, submit_pools=["two"])
    add_jobs(3, middlewares=["slurm"])

    assert sent() == {"site-a/main": 0, "site-b/main": 2}


def test_no_pilot_is_sent_for_requirements_that_its_queue_cannot_meet(make_queue, add_jobs) -> None:
    make_queue("site-a")
    make_queue("site-b", memory_mb=4000)
    add_jobs(2, requirements="Memory >= 3000")

    assert sent() == {"site-a/main": 0, "site-b/main": 2}


def test_what_only_the_node_can_tell_is_found_out_by_sending_a_pilot(make_queue, add_jobs) -> None:
    make_queue()
    add_jobs(1, requirements='Machine == "wn1" && OpSys == "LINUX" && NodePython =!= "2.7"')

    assert sent() == {"site-a/main": 1}


def test_a_job_that_demands_a_gpu_gets_pilots_where_there_are_some(make_queue, add_jobs) -> None:
    make_queue("site-a")
    make_queue("site-b", gpus=1)
    add_jobs(2, gpus=1)

    assert sent() == {"site-a/main": 0, "site-b/main": 2}
