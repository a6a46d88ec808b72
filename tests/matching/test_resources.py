from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from matching.task_queues.needs import Needs
from matching.task_queues.requirements import requirements_value
from matching.task_queues.resources import JobKind, Resource, pilot_ad

HERE = Resource(
    "x",
    cpu_time_s=500,
    cores=2,
    memory_mb=2000,
    queue="x/q",
    platform="linux-x86_64",
    tags=("t",),
)


@pytest.mark.parametrize(
    ("needs", "reason"),
    [
        ({"cpu_time_s": 501}, "needs 5000 s of CPU time, offered are 500"),
        ({"cores": 3}, "needs 3 cores, offered are 2"),
        ({"memory_mb": 3000}, "needs 3000 MB of memory, offered are 2000"),
        ({"gpus": 1}, "needs 1 GPUs, offered are 0"),
        ({"setup": "test"}, "belongs to the setup test, here is (none)"),
        ({"sites": ["y", "z"]}, "may run at y, z only"),
        ({"banned_sites": ["x"]}, "may not run at x"),
        ({"queues": ["x/long"]}, "may run in the queues x/long only"),
        ({"platforms": ["arm"]}, "needs platform arm, here is linux-x86_64"),
        ({"tags": ["gpu"]}, "needs the tags gpu"),
        ({"pilot_types": ["private"]}, "is for private pilots"),
    ],
)
def test_a_refusal_names_what_is_missing(needs: dict[str, Any], reason: str) -> None:
    assert HERE.refusal(Needs.of("a", **needs)) == reason


@pytest.mark.parametrize(
    "needs",
    [
        {"cores": 2, "max_cores": 8, "memory_mb": 2000, "cpu_time_s": 500},
        {"sites": ["x"], "banned_sites": ["y"], "queues": ["x/q", "y/q"], "tags": ["t"]},
        {"platforms": ["arm", "linux-x86_64"], "pilot_types": ["generic"]},
    ],
)
def test_needs_that_are_met_are_not_refused(needs: dict[str, Any]) -> None:
    assert HERE.refusal(Needs.of("a", **needs)) == ""


def test_a_resource_may_take_only_jobs_that_carry_its_tags() -> None:
    here = replace(HERE, required_tags=("t",))

    assert "tags t" in here.refusal(Needs.of("a"))
    assert here.refusal(Needs.of("a", tags=["t"])) == ""


def test_a_private_pilot_takes_the_jobs_of_its_identity_only() -> None:
    here = replace(HERE, pilot_type="private", owner="alice", owner_groups=("physics",))

    assert here.refusal(Needs.of("alice", owner_group="physics")) == ""
    assert "of alice" in here.refusal(Needs.of("bob", owner_group="physics"))
    assert "groups physics" in here.refusal(Needs.of("alice"))


def test_where_a_group_shares_its_jobs_a_private_pilot_takes_those_of_all_its_members() -> None:
    here = replace(HERE, pilot_type="private", owner_groups=("physics",))

    assert here.refusal(Needs.of("bob", owner_group="physics")) == ""
    assert here.refusal(Needs.of("bob", owner_group="other")) != ""


@pytest.mark.parametrize(
    ("kind", "is_refused"),
    [
        (JobKind("User", ""), True),
        (JobKind("", "physics"), True),
        (JobKind("User", "physics"), True),
        (JobKind("", ""), True),
        (JobKind("User", "other"), False),
        (JobKind("Merge", ""), False),
    ],
)
def test_a_kind_that_has_reached_its_limit_is_refused(kind: JobKind, is_refused: bool) -> None:
    here = replace(HERE, excluded=(kind,))

    refusal = here.refusal(Needs.of("a", owner_group="physics", job_type="User"))

    assert bool(refusal) == is_refused
    assert str(kind) in refusal or not is_refused


def test_pools_and_middleware_count_only_where_pilots_are_sent() -> None:
    needs = Needs.of("a", submit_pools=["opportunistic"], middlewares=["slurm"])
    there = replace(HERE, submit_pool="opportunistic", middleware="slurm")

    assert HERE.refusal(needs) == ""
    assert "opportunistic" in HERE.sending_refusal(needs)
    assert "slurm" in replace(there, middleware="ssh").sending_refusal(needs)
    assert there.sending_refusal(needs) == ""


@pytest.mark.parametrize(
    ("requirements", "value"),
    [
        ("", True),
        ("Cpus >= 2 && Memory > MY.RequestMemory", True),
        ('OpSys == "LINUX" && TARGET.Arch == "X86_64"', True),
        ('Machine == "node7.example" && NodePython == "3.9"', True),
        ('member("t", Tags) && Site == "x" && Queue == "x/q"', True),
        ("CpuTimeLeft > 1000", False),
        ('Owner == "bob"', False),
    ],
)
def test_requirements_see_the_pilots_ad_and_what_the_jobs_need(
    requirements: str, value: bool
) -> None:
    ad = pilot_ad(HERE, {"hostname": "node7.example", "python": "3.9"})

    assert requirements_value(Needs.of("a", requirements=requirements), ad) is value


def test_requirements_over_what_a_pilot_does_not_tell_are_not_true() -> None:
    needs = Needs.of("a", requirements="NodeColour == 1")

    assert requirements_value(needs, pilot_ad(HERE, {})) is not True
    assert requirements_value(needs, pilot_ad(HERE, {})) is not False
