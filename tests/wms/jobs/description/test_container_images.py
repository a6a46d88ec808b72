"""Images of containers in submit descriptions: what may be named, and what follows for the job."""

from __future__ import annotations

import pytest

from matching.task_queues.needs import CONTAINER_TAG
from tests.wms.jobs.description.test_rendering import render
from wms.jobs.clusters.json_description import read_json
from wms.jobs.description.commands import value_warning
from wms.jobs.description.renderer_inputs import CannotRender
from wms.jobs.specs import JobSpec


def image_of(spec: JobSpec) -> str:
    return (spec.directives or {}).get("container_image", "")


@pytest.mark.parametrize(
    "image",
    ["/cvmfs/images.example.org/tools", "docker://alpine:3.20", "oras://x.org/a/b@sha256:1"],
)
def test_an_image_of_the_node_or_of_a_registry_brings_no_file(image: str) -> None:
    (spec,) = render(f"container_image = {image}\nqueue")

    assert image_of(spec) == image
    assert spec.input_files == ()
    assert spec.needs.tags == (CONTAINER_TAG,)


def test_an_image_of_the_workspace_comes_with_the_job() -> None:
    (spec,) = render("container_image = images/tools.sif\ntransfer_input_files = a\nqueue")

    assert image_of(spec) == "images/tools.sif"
    assert spec.input_files == ("a", "images/tools.sif")


def test_a_job_without_an_image_needs_no_containers() -> None:
    (spec,) = render("container_image =\nqueue")

    assert (image_of(spec), spec.needs.tags) == ("", ())


def test_the_tag_stands_beside_those_of_the_description() -> None:
    (spec,) = render('container_image = docker://a\n+Tags = "big"\nqueue')

    assert spec.needs.tags == (CONTAINER_TAG, "big")


def test_each_job_may_have_its_own_image() -> None:
    text = "container_image = $(image)\nqueue image in (a.sif, docker://b)"

    assert list(map(image_of, render(text))) == ["a.sif", "docker://b"]


def test_the_image_of_docker_counts_as_one_of_its_registry() -> None:
    (spec,) = render("universe = docker\ndocker_image = python:3.12-slim\nqueue")

    assert image_of(spec) == "docker://python:3.12-slim"
    assert value_warning("docker_image", {"docker_image": "python:3.12-slim"})


def test_json_has_a_member_for_the_image() -> None:
    assert "container_image = a.sif" in read_json({"container_image": "a.sif"}).lines


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        ("container_image = https://x.org/a.sif", "container_image"),
        ("container_image = library://a", "container_image"),
        ("container_image = file:/etc", "container_image"),
        ("container_image = docker://-a", "container_image"),
        ("container_image = docker://a b", "container_image"),
        (f"container_image = docker://{'a' * 600}", "container_image"),
        ("container_image = ../a.sif", "container_image"),
        ("container_image = /cvmfs/../etc", "container_image"),
        ("container_image = --bind", "container_image"),
        (f"container_image = /{'a' * 2000}", "container_image"),
        ("container_image = a\0b", "container_image"),
        ("container_image = /a\0b", "container_image"),
        ("docker_image = --privileged", "docker_image"),
        ("container_image = a.sif\ndocker_image = a", "docker_image"),
        ("universe = container", "universe"),
        ("universe = docker\ncontainer_image =", "universe"),
    ],
)
def test_another_image_is_a_fault_of_its_command(lines: str, name: str) -> None:
    with pytest.raises(CannotRender) as caught:
        render(f"transfer_input_files = a\n{lines}\nqueue")

    assert name in caught.value.names
    assert "transfer_input_files" not in caught.value.names
