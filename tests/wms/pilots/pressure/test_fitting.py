"""Matching of all TaskQueues at once: the same answer as one by one, and no job is lost."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.task_queues.needs import Needs
from matching.task_queues.published import PublishedHere
from matching.task_queues.requirements import offer_refusal
from matching.task_queues.resources import JobKind, Resource
from wms.pilots.pressure import fitting
from wms.pilots.pressure.fitting import QueueMatcher, grouped_jobs, largest_first, no_fit_reasons
from wms.taskqueues.selectors import Demand

WORDS = {
    "owner_group": st.sampled_from(["", "physics"]),
    "setup": st.sampled_from(["", "production"]),
    "job_type": st.sampled_from(["", "User"]),
}
LISTS = {
    "sites": st.sampled_from([(), ("a",), ("b",), ("a", "b")]),
    "banned_sites": st.sampled_from([(), (), ("a",)]),
    "queues": st.sampled_from([(), ("a/main",)]),
    "platforms": st.sampled_from([(), ("linux-x86_64",)]),
    "tags": st.sampled_from([(), ("ssd",)]),
    "pilot_types": st.sampled_from([(), ("private",), ("generic",)]),
    "submit_pools": st.sampled_from([(), ("main",)]),
    "middlewares": st.sampled_from([(), ("slurm",)]),
}
REQUIREMENTS = st.sampled_from(
    [
        "",
        "Memory > 1000",
        "TARGET.Memory < 10",
        'MY.Owner == "alice"',
        'ACCOUNTINGGROUP == "physics" && Cpus > 1',
        'JobType == "User"',
        'Machine == "wn1"',
        'Site == "a"',
        'eval("Mem" + "ory") > 1000',
        "RequestCpus < Cpus",
        'Tags =!= UNDEFINED && member("ssd", Tags)',
        "cvmfs_Available",
        "cvmfs_Available =?= true && gpu_Count > 1",
        'gpu_Count > 1 || Machine == "wn1"',
        "unheard_Of > 1",
    ]
)
NEEDS = st.builds(
    Needs,
    owner=st.sampled_from(["alice", "bob"]),
    cores=st.integers(1, 2),
    max_cores=st.integers(2, 3),
    memory_mb=st.sampled_from([0, 2000]),
    cpu_time_s=st.sampled_from([500, 5000]),
    gpus=st.integers(0, 1),
    requirements=REQUIREMENTS,
    **WORDS,
    **LISTS,
)
PRIVATE = st.sampled_from(
    [
        {},
        {"pilot_type": "private", "owner": "alice", "owner_groups": ("",)},
        {"pilot_type": "private", "owner_groups": ("physics",)},
        {"owner_groups": ("physics",)},
        {"foreign_groups": ("physics",)},
    ]
)
NAMES = frozenset({"cvmfs_available", "gpu_count"})
OFFERS = st.builds(
    lambda private, **values: replace(Resource(**values), **private),
    private=PRIVATE,
    site=st.sampled_from(["a", "b"]),
    queue=st.sampled_from(["a/main", "b/main"]),
    cpu_time_s=st.sampled_from([1000, 10_000]),
    cores=st.integers(1, 3),
    memory_mb=st.sampled_from([500, 4000]),
    gpus=st.integers(0, 1),
    platform=st.sampled_from(["", "linux-x86_64", "linux-aarch64"]),
    setup=st.sampled_from(["", "production"]),
    submit_pool=st.sampled_from(["", "main"]),
    middleware=st.sampled_from(["host", "slurm"]),
    tags=st.sampled_from([(), ("ssd",)]),
    required_tags=st.sampled_from([(), ("ssd",)]),
    publishes=st.sampled_from(
        [
            None,
            PublishedHere(),
            PublishedHere(NAMES),
            PublishedHere(NAMES, ({"cvmfs": {"Available": True}, "gpu": {"Count": 0}},)),
            PublishedHere(NAMES, ({"cvmfs": {}}, {"gpu": {"Count": 2}})),
        ]
    ),
    start=st.sampled_from(
        [
            (),
            ("RequestCpus <= Cpus / 2",),
            ('MY.Site == "a" && TARGET.JobType == "User"', 'Owner == "alice" || Gpus > 0'),
            ('Platform == "linux-x86_64"',),
        ]
    ),
    excluded=st.sampled_from([(), (JobKind("User", "physics"),), (JobKind("", "physics"),)]),
)


@pytest.mark.slow
@given(st.lists(NEEDS, max_size=5), st.lists(OFFERS, max_size=4))
def test_all_at_once_fit_where_each_alone_does(several, offers) -> None:
    named = {str(number): offer for number, offer in enumerate(offers)}
    asked = QueueMatcher(named)

    for needs in several:
        found = asked.queues(asked.mask(needs))

        assert list(found) == [name for name in named if not offer_refusal(named[name], needs)]


def test_every_need_and_every_part_of_an_offer_belongs_to_an_aspect() -> None:
    needs = {name for aspect in fitting._ASPECTS for name in aspect.needs}
    offers = {name for aspect in fitting._ASPECTS for name in aspect.offer}

    # What a job can make use of beyond its needs decides nothing; requirements are asked apart,
    # which alone read the power: the time has it already.
    assert {field.name for field in fields(Needs)} - needs == {"max_cores", "requirements"}
    others = {"publishes", "start", "cpu_power"}
    assert {field.name for field in fields(Resource)} - offers == others


@given(st.lists(NEEDS, max_size=5), st.lists(OFFERS, max_size=4))
def test_no_job_is_lost_when_those_alike_are_grouped(several, offers) -> None:
    named = {str(number): offer for number, offer in enumerate(offers)}
    waiting = [Demand(number, needs, number + 1) for number, needs in enumerate(several)]

    found = grouped_jobs(waiting, QueueMatcher(named), priorities={}, old=frozenset({0}))

    total = sum(demand.waiting_jobs for demand in waiting)
    assert sum(group.jobs for group in found.groups) + found.unfit == total


def test_why_no_job_fits_is_told_by_the_largest_task_queues_first() -> None:
    offer = Resource("a", cpu_time_s=1000, platform="linux-aarch64")
    waiting = [
        Demand(1, Needs.of("alice", cores=4), 3),
        Demand(2, Needs.of("alice", platforms=["linux-x86_64"]), 40),
    ]

    of_platform, of_cores = no_fit_reasons(offer, largest_first(waiting))
    assert "linux-x86_64" in of_platform
    assert "4 cores" in of_cores
