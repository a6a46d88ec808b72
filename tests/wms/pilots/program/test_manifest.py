"""Manifests for the pilots of a queue."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.wms.pilots.claiming import NOW
from wms.accounting.models import AccountingGroup
from wms.core.actors import Actor
from wms.core.errors import NotPermitted
from wms.core.models import User
from wms.pilots.models import NodeCheck, Pilot, PilotFile, PilotManifest
from wms.pilots.program.bundle import agent_bundle
from wms.pilots.program.checks import CheckResult, record_checks, save_node_check, sweep_checks
from wms.pilots.program.manifest import file_content, manifest_content, store_manifest
from wms.sites.models import Queue

pytestmark = pytest.mark.django_db
SCRIPT = "#!/bin/sh\ntrue\n"
DEFAULTS = ["disk", "memory", "clock", "cpus", "scratch", "apptainer", "gpu"]


def manifest_of(queue: Queue) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads(manifest_content(store_manifest(queue)))
    return manifest


def names(queue: Queue) -> list[str]:
    return [each["name"] for each in manifest_of(queue)["checks"]]


def add(name: str, **fields: Any) -> NodeCheck:
    return NodeCheck.objects.create(name=name, script=SCRIPT, **fields)


def test_the_same_queue_has_the_same_manifest(make_queue: Callable[..., Queue]) -> None:
    queue = make_queue()

    assert store_manifest(queue) == store_manifest(queue)
    assert PilotManifest.objects.count() == 1
    assert PilotFile.objects.count() == 1


def test_a_manifest_lists_the_program_and_what_there_is_to_check(
    make_queue: Callable[..., Queue],
) -> None:
    manifest = manifest_of(make_queue())

    assert manifest["agent"]["sha256"] == agent_bundle().sha256
    assert [each["name"] for each in manifest["checks"]] == DEFAULTS


def test_a_queue_says_what_its_nodes_must_have(make_queue: Callable[..., Queue]) -> None:
    queue = make_queue(
        platform="linux-x86_64",
        checks=[
            {"name": "disk", "settings": {"least_mb": 5000}, "period_s": 60},
            {"name": "software", "settings": {"directories": ["/sw"]}, "time_limit_s": 9},
        ],
    )

    checks = {each["name"]: each for each in manifest_of(queue)["checks"]}

    assert list(checks) == [
        "disk", "memory", "clock", "cpus", "platform", "software", "scratch", "apptainer", "gpu",
    ]  # fmt: skip
    assert checks["disk"]["settings"] == {"least_mb": 5000}
    assert checks["disk"]["period_s"] == 60
    assert checks["platform"]["settings"] == {"platforms": ["linux-x86_64"]}
    assert checks["software"]["time_limit_s"] == 9


def test_added_checks_follow_in_their_order_where_they_are_meant(
    make_queue: Callable[..., Queue], alice: User
) -> None:
    here, there = make_queue("here"), make_queue("there")
    group = AccountingGroup.objects.create(name="higgs")
    add("last", position=200)
    add("first", position=5)
    add("local", site=here.site)
    add("private", group=group)
    add("off", is_enabled=False)

    assert names(here) == [*DEFAULTS, "first", "local", "last"]
    assert names(there) == [*DEFAULTS, "first", "last"]
    here.owner, here.owner_group = alice, group
    assert names(here) == [*DEFAULTS, "first", "local", "private", "last"]


def test_a_script_keeps_its_bytes_under_its_hash_when_it_is_changed(
    make_queue: Callable[..., Queue],
) -> None:
    queue = make_queue()
    check = add("own")
    [old] = [each for each in manifest_of(queue)["checks"] if not each["builtin"]]
    NodeCheck.objects.filter(pk=check.pk).update(script="#!/bin/sh\nfalse\n")
    [new] = [each for each in manifest_of(queue)["checks"] if not each["builtin"]]

    assert file_content(old["sha256"]) == SCRIPT.encode()
    assert file_content(new["sha256"]) == b"#!/bin/sh\nfalse\n"


def test_results_of_long_ago_are_removed(make_queue: Callable[..., Queue]) -> None:
    pilot = Pilot.objects.create(queue=make_queue(), batch="b", secret_sha256="x")
    for days in (0, 29, 31):
        result = CheckResult(str(days), "disk", True, "", "", {}, 0.1)
        record_checks(pilot, [result], now=NOW - timedelta(days=days))

    assert sweep_checks(now=NOW) == 1
    assert set(pilot.checks.values_list("key", flat=True)) == {"0", "29"}


def test_only_an_administrator_says_what_runs_in_every_pilot(olga: User) -> None:
    check = NodeCheck(name="own", script=SCRIPT)

    with pytest.raises(NotPermitted):
        save_node_check(check, actor=Actor.person(olga))
