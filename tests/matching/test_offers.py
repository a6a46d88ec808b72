"""What a queue's pilots could never take, and requirements as long as the node is not known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from matching.task_queues.needs import Needs
from matching.task_queues.requirements import offer_refusal, requirements_value
from matching.task_queues.resources import Resource, pilot_ad

QUEUE = Resource(
    site="T2_X",
    queue="T2_X/long",
    cpu_time_s=86_400,
    cores=8,
    memory_mb=16_000,
    platform="linux-x86_64",
    tags=("cvmfs",),
    submit_pool="wms",
    middleware="slurm",
)


def needs(requirements: str = "", **others: Any) -> Needs:
    return Needs.of("alice", requirements=requirements, **others)


@pytest.mark.parametrize(
    "requirements",
    [
        "Cpus >= 8 && Memory > 15999 && Gpus == 0",
        'OpSys == "LINUX" && Arch == "X86_64"',
        'Site == "T2_X" && Queue == "T2_X/long" && Platform == "linux-x86_64"',
        'member("cvmfs", Tags)',
        "TARGET.Cpus >= MY.RequestCpus",
        "CpuTimeLeft > CpuTime",
    ],
)
def test_requirements_are_evaluated_towards_what_a_pilot_offers(requirements: str) -> None:
    assert requirements_value(needs(requirements), pilot_ad(QUEUE, {})) is True
    assert offer_refusal(QUEUE, needs(requirements)) == ""


def test_a_queue_that_leaves_its_platform_open_refuses_none() -> None:
    wanted = needs(platforms=["linux-aarch64"])

    assert "needs platform linux-aarch64" in offer_refusal(QUEUE, wanted)
    assert offer_refusal(replace(QUEUE, platform=""), wanted) == ""
    assert replace(QUEUE, platform="").refusal(wanted) != ""


def test_requirements_that_are_false_wherever_the_pilot_comes_to_be_refuse_a_queue() -> None:
    refusal = offer_refusal(QUEUE, needs('Site == "T2_Y"'))

    assert refusal.endswith('Site == "T2_Y"')


@pytest.mark.parametrize("requirements", ['Machine == "node7"', "NodeMemoryMb > 1", "Unheard > 1"])
def test_requirements_on_the_node_are_open_until_the_node_is_known(requirements: str) -> None:
    facts = {"hostname": "node7", "memory_mb": 64_000, "unheard": 2}

    assert offer_refusal(QUEUE, needs(requirements)) == ""
    assert requirements_value(needs(requirements), pilot_ad(QUEUE, {})) is not True
    is_true = requirements_value(needs(requirements), pilot_ad(QUEUE, facts)) is True
    assert is_true == ("Unheard" not in requirements)


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"submit_pools": ["other"]}, "is for the submit pools other"),
        ({"middlewares": ["htcondor"]}, "is for pilots sent by htcondor"),
        ({"gpus": 1}, "needs 1 GPUs, offered are 0"),
        ({"submit_pools": ["wms"], "middlewares": ["slurm"]}, ""),
    ],
)
def test_a_queue_refuses_what_its_pilots_could_never_take(
    wanted: dict[str, Any], told: str
) -> None:
    assert offer_refusal(QUEUE, needs(**wanted)) == told
