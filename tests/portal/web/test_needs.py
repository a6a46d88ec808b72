"""Needs of jobs and offers of queues as text, and the pages that show them."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse

from matching.task_queues.needs import Needs
from portal.web.jobs.directives import directive_facts
from portal.web.jobs.needs import facts_of, offer_of, reserved_for, words_of
from tests import factories
from wms.accounting.models import AccountingGroup
from wms.core.models import User
from wms.jobs.models import Attempt, Job
from wms.pilots.models import Pilot
from wms.sites.models import Queue


@pytest.mark.parametrize(
    ("needs", "words"),
    [
        ({}, "1 core, 8 min 20 s of CPU"),
        ({"cores": 2, "memory_mb": 2000, "gpus": 2}, "2 cores, 2000 MB, 2 GPUs, 8 min 20 s of CPU"),
        ({"job_type": "User", "setup": "test"}, "1 core, 8 min 20 s of CPU, type User, setup test"),
        ({"sites": ["A", "B"]}, "1 core, 8 min 20 s of CPU, at A or B"),
        ({"banned_sites": list("ABCDE")}, "1 core, 8 min 20 s of CPU, not at A, B or 3 more"),
        ({"tags": ["a", "b"]}, "1 core, 8 min 20 s of CPU, tags a and b"),
    ],
)
def test_needs_are_told_in_a_line(needs: dict[str, object], words: str) -> None:
    assert words_of(Needs.of("alice", **needs)) == words  # type: ignore[arg-type]


#: As pages show 500 seconds.
_CPU_TIME = "up to 8 min 20 s (500 s)"


def test_every_need_is_told_one_by_one() -> None:
    needs = Needs.of(
        "alice", cores=1, max_cores=4, gpus=1, memory_mb=10, sites=["A"], banned_sites=["B"],
        queues=["A/q"], platforms=["linux-x86_64"], pilot_types=["private"], submit_pools=["p"],
        middlewares=["slurm"], tags=["ssd"], job_type="User", setup="s", requirements="true || x",
    )  # fmt: skip

    told = {fact.label: fact.text for fact in facts_of(needs)}

    assert told == {
        "Cores": "1 to 4", "Memory": "10 MB", "CPU time": _CPU_TIME, "Sites": "A",
        "Platforms": "linux-x86_64", "GPUs": "1", "Not at": "B", "Queues": "A/q", "Tags": "ssd",
        "Job type": "User", "Setup": "s", "Pilots": "private", "Submit pools": "p",
        "Pilots sent by": "slurm", "Requirements": needs.requirements,
    }  # fmt: skip


def test_usual_needs_are_told_even_when_there_are_none() -> None:
    told = {fact.label: fact.text for fact in facts_of(Needs.of("alice"))}

    assert told == {
        "Cores": "1", "Memory": "any", "CPU time": _CPU_TIME, "Sites": "any",
        "Platforms": "any",
    }  # fmt: skip


def test_a_queue_tells_what_it_offers_and_for_whom() -> None:
    open_to_all = Queue(cores=8, memory_mb=16_000, gpus=1, wall_time_s=86_400, tags=["ssd", "a100"])
    group = AccountingGroup(name="physics")
    private = Queue(owner=User(username="alice"), owner_group=group, required_tags=["a", "b"],
                    setup="test", submit_pool="big")  # fmt: skip

    assert offer_of(open_to_all).split(", ")[:4] == ["8 cores", "16000 MB", "1 GPU", "1 d"]
    assert "ssd and a100" in offer_of(open_to_all)
    assert reserved_for(open_to_all) == ""
    for fact in ("alice in physics", "tags a and b", "setup test", "submit pool big"):
        assert fact in reserved_for(private)
    group.has_job_sharing = True
    assert "all members in physics" in reserved_for(private)


def test_the_page_of_a_site_tells_for_whom_its_queues_are(
    alice: Client, people: SimpleNamespace
) -> None:
    site = factories.site()
    Queue.objects.filter(site=site).update(gpus=2, owner=people.bob)

    page = alice.get(reverse("web:site", args=[site.name])).content.decode()

    assert "4000 MB, 2 GPUs" in page
    assert "jobs of bob" in page


def test_the_page_of_a_job_tells_priority_type_and_what_it_was_given(
    alice: Client, people: SimpleNamespace
) -> None:
    job = factories.job(people.alice)
    Job.objects.filter(pk=job.pk).update(priority=7)
    needs = Needs.of("alice", max_cores=4, job_type="User").as_dict()
    factories.describe(Job.objects.filter(pk=job.pk), needs=needs)
    assert factories.claim(factories.pilot()) is not None
    Attempt.objects.filter(job=job).update(cores=4, memory_mb=2000, gpus=1)

    page = " ".join(alice.get(reverse("web:job", args=[job.pk])).content.decode().split())

    assert "<dt>Priority</dt><dd>7 " in page
    assert "<dt>Job type</dt><dd>User</dd>" in page
    assert "<dt>Cores</dt><dd>1 to 4</dd>" in page
    assert "4 cores, 2000 MB, 1 GPU" in page


def test_the_page_of_a_waiting_job_leads_to_its_task_queue(
    alice: Client, people: SimpleNamespace
) -> None:
    job = factories.job(people.alice)

    page = alice.get(reverse("web:job", args=[job.pk])).content.decode()

    assert "Its TaskQueue" in page
    assert 'href="/taskqueues/' in page


def test_the_page_of_a_pilot_tells_what_of_its_slot_is_free_and_what_jobs_were_given(
    alice: Client, people: SimpleNamespace
) -> None:
    queued, pilot = factories.queued_pilot(), factories.pilot()
    given = {"slot_cores": 4, "slot_memory_mb": 4000, "slot_gpus": 0}
    Pilot.objects.filter(pk=pilot.pk).update(node=pilot.node | given)
    Queue.objects.update(cores=8)
    factories.job(people.alice)
    factories.claim(pilot)
    Attempt.objects.update(cores=3)

    def page(of: Pilot) -> str:
        answer = alice.get(reverse("web:pilot", args=[of.pk]))
        return " ".join(answer.content.decode().split())

    offered, given_, held, free = re.findall(
        r'<td class="num">(?:<b>)?(\d+)', page(pilot).partition('<th scope="row">Cores</th>')[2]
    )[:4]
    assert (offered, given_, held, free) == ("8", "4", "3", "1")
    assert 'data-label="cores">3</td>' in page(pilot)
    assert page(queued).count('<span class="faint">not reported</span>') == 4


def test_the_page_of_a_private_pilot_tells_whose_it_is(
    alice: Client, people: SimpleNamespace
) -> None:
    pilot = factories.queued_pilot()
    type(pilot).objects.filter(pk=pilot.pk).update(owner=people.bob)

    page = alice.get(reverse("web:pilot", args=[pilot.pk])).content.decode()

    assert "jobs of bob" in page


def test_the_page_of_a_job_tells_its_directives(people: SimpleNamespace, client: Client) -> None:
    job = factories.job(people.alice)
    directives = {
        "stdin_name": "in.txt", "output_remaps": {"a": "b/c"}, "duration_limit_s": 7200,
        "is_held_at_wall_limit": True, "checkpoint_exit_code": 85, "checkpoint_files": ["state"],
        "notification": "always", "is_held": True, "kill_grace_s": 60,
        "container_image": "docker://alpine", "has_token": True,
    }  # fmt: skip
    factories.describe(Job.objects.all(), directives=directives)

    told = {fact.label: fact.text for fact in directive_facts(Job.objects.get())}
    client.force_login(people.alice)
    page = client.get(reverse("web:job", args=[job.pk])).content.decode()

    assert len(told) == len(directives)
    for label, text in told.items():
        assert f"<dt>{label}</dt><dd>{text}</dd>" in page


def test_a_job_without_directives_tells_none(people: SimpleNamespace) -> None:
    assert directive_facts(factories.job(people.alice)) == []
