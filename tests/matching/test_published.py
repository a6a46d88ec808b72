"""Requirements on what checks of nodes publish: which queues may have it, and which never."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from matching.task_queues.needs import Needs
from matching.task_queues.published import PublishedHere
from matching.task_queues.requirements import offer_refusal, requirements_value, taking_refusal
from matching.task_queues.resources import Resource, pilot_ad

DECLARED = frozenset({"cvmfs_available", "gpu_cudaversion", "gpu_model", "apptainer_version"})
QUEUE = Resource(site="T2_X", cpu_time_s=50_000, cores=8, queue="T2_X/long", memory_mb=16_000)
OLD_GPU = {"cvmfs": {"Available": True}, "gpu": {"CudaVersion": 11.8, "Model": "V100"}}
NEW_GPU = {"cvmfs": {"Available": False}, "gpu": {"CudaVersion": 12.4, "Model": "A100"}}


def needs(requirements: str) -> Needs:
    return Needs.of("alice", requirements=requirements)


def offer(*seen: dict[str, Any], declared: frozenset[str] = DECLARED) -> Resource:
    return replace(QUEUE, publishes=PublishedHere(declared, seen))


@pytest.mark.parametrize(
    ("requirements", "value"),
    [
        ("cvmfs_Available", True),
        ("CVMFS_AVAILABLE", True),
        ("TARGET.cvmfs_Available == true", True),
        ("gpu_CudaVersion >= 12", False),
        ('gpu_Model == "V100" && gpu_CudaVersion > 11.5', True),
        ('versionGE(apptainer_Version, "1.2")', True),
    ],
)
def test_requirements_see_what_checks_published_under_their_names(
    requirements: str, value: bool
) -> None:
    ad = pilot_ad(QUEUE, {}, {**OLD_GPU, "apptainer": {"Version": "1.10.1"}})

    assert requirements_value(needs(requirements), ad) is value


def test_a_check_can_hide_no_attribute_of_the_pilot() -> None:
    ad = pilot_ad(QUEUE, {"hostname": "n1"}, {"Node": {"Hostname": "n2"}, "x": {"Cpus": 99}})

    assert requirements_value(needs('NodeHostname == "n1" && Cpus == 8'), ad) is True


@pytest.mark.parametrize("refusal", [offer_refusal, taking_refusal])
def test_a_queue_where_nothing_was_seen_yet_may_have_what_its_checks_declare(refusal: Any) -> None:
    assert refusal(offer(), needs("cvmfs_Available")) == ""
    assert refusal(offer(), needs("cvmfs_Available && Cpus >= 8")) == ""
    assert refusal(offer(), needs("cvmfs_Available =?= true")) == ""
    told = refusal(offer(), needs("cvmfs_Available && licence_Free > 2"))
    assert told == "no check of this queue publishes licence_Free: licence_Free > 2"


@pytest.mark.parametrize("refusal", [offer_refusal, taking_refusal])
def test_one_node_that_had_all_of_it_is_enough_and_parts_of_several_are_not(refusal: Any) -> None:
    here = offer(OLD_GPU, NEW_GPU)

    assert refusal(here, needs("cvmfs_Available && gpu_CudaVersion >= 11")) == ""
    assert refusal(here, needs("gpu_CudaVersion >= 12")) == ""
    assert refusal(here, needs("cvmfs_Available && gpu_CudaVersion >= 12")) != ""
    assert refusal(here, needs("cvmfs_Available || Cpus > 100")) == ""


@pytest.mark.parametrize("refusal", [offer_refusal, taking_refusal])
def test_what_a_check_did_not_publish_though_it_ran_is_not_there(refusal: Any) -> None:
    here = offer({"gpu": {}})

    assert "gpu_CudaVersion" in refusal(here, needs("gpu_CudaVersion >= 12"))
    # That check did not run in the pilots that were seen: it may be a new one.
    assert refusal(here, needs("cvmfs_Available")) == ""


@pytest.mark.parametrize("refusal", [offer_refusal, taking_refusal])
def test_a_comparison_of_the_wrong_type_is_never_true(refusal: Any) -> None:
    assert refusal(offer(OLD_GPU), needs("gpu_Model > 12")) != ""


def test_where_nobody_looked_it_up_nothing_is_refused() -> None:
    assert offer_refusal(QUEUE, needs("whatever_Name > 3")) == ""
    assert taking_refusal(QUEUE, needs("whatever_Name > 3")) == ""


def test_what_only_a_node_can_tell_keeps_its_meaning_beside_what_is_published() -> None:
    here = offer(OLD_GPU)

    assert offer_refusal(here, needs('cvmfs_Available && Machine == "node7"')) == ""
    assert offer_refusal(here, needs('gpu_CudaVersion > 12 && Machine == "node7"')) != ""
