"""Settings of node checks at a queue: validated before they are stored."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from wms.accounting.models import AccountingGroup
from wms.core.actors import Actor
from wms.core.errors import InvalidInput
from wms.core.models import Role, User
from wms.pilots.models import NodeCheck
from wms.pilots.program.checks import save_node_check
from wms.pilots.program.manifest import manifest_content, store_manifest
from wms.sites.models import Queue, Site
from wms.sites.services import save_queue

pytestmark = pytest.mark.django_db
SCRIPT = "#!/bin/sh\ntrue\n"
FAULTS = [
    ({"name": "unknown"}, "checks[0].name: there is no check unknown for florida/main"),
    ({"name": "disk", "least_mb": 5}, "checks[0] (disk).least_mb: is unknown; there are settings"),
    ({"name": "disk", "settings": []}, "checks[0] (disk).settings: must be an object"),
    ({"name": "disk", "settings": {"least_gb": 5}}, "checks[0] (disk).settings.least_gb: is unk"),
    ({"name": "disk", "settings": {"least_mb": "5"}}, "settings.least_mb: must be a number from 0"),
    ({"name": "clock", "settings": {"most_skew_s": -1}}, "most_skew_s: must be a number from 0"),
    ({"name": "scratch", "settings": {"size_mb": 1.5}}, "size_mb: must be a whole number from 1"),
    ({"name": "scratch", "settings": {"size_mb": True}}, "size_mb: must be a whole number from 1"),
    ({"name": "software", "settings": {"directories": "/sw"}}, "must be a list of absolute paths"),
    ({"name": "software", "settings": {"directories": ["sw"]}}, "a list of absolute paths"),
    ({"name": "network", "settings": {"addresses": ["host"]}}, "a list of addresses, each HOST:P"),
    ({"name": "disk", "time_limit_s": "9"}, "(disk).time_limit_s: must be a number above 0 and up"),
    ({"name": "disk", "period_s": 0}, "checks[0] (disk).period_s: must be a number above 0 and up"),
    ({"name": "own", "settings": {"text": "x" * 4096}}, "has more than 4096 bytes"),
]


@pytest.fixture
def adam() -> User:
    """An administrator."""
    return User.objects.create_user("adam", role=Role.ADMIN)


@pytest.fixture
def queue(make_queue: Callable[..., Queue]) -> Queue:
    return make_queue("florida")


def add(name: str, **fields: Any) -> NodeCheck:
    return NodeCheck.objects.create(name=name, script=SCRIPT, **fields)


def names(queue: Queue) -> list[str]:
    return [each["name"] for each in json.loads(manifest_content(store_manifest(queue)))["checks"]]


@pytest.mark.parametrize(("entry", "message"), FAULTS)
def test_a_check_that_cannot_be_understood_is_told_when_the_queue_is_configured(
    queue: Queue, olga: User, entry: dict[str, Any], message: str
) -> None:
    add("own")
    queue.checks = [entry]

    with pytest.raises(InvalidInput, match=re.escape(message)) as told:
        save_queue(queue, actor=Actor.person(olga))

    assert [finding.field for finding in told.value.findings] == ["checks"]
    assert Queue.objects.get().checks == []


@pytest.mark.parametrize(("entry", "message"), FAULTS)
def test_a_check_that_cannot_be_understood_sends_no_pilots(
    queue: Queue, entry: dict[str, Any], message: str
) -> None:
    add("own")
    queue.checks = [entry]

    with pytest.raises(InvalidInput, match=re.escape(message)):
        store_manifest(queue)


def test_what_is_understood_is_stored(queue: Queue, olga: User) -> None:
    add("own", site=queue.site)
    queue.checks = [
        {"name": "disk", "settings": {"least_mb": 5000.5}, "period_s": 0.5, "time_limit_s": 86_400},
        {"name": "software", "settings": {"directories": ["/sw", "/cvmfs/x"]}},
        {"name": "network", "settings": {"addresses": ["[::1]:443", "db.example.org:5432"]}},
        {"name": "cvmfs", "settings": {"repositories": ["sw.example.org"], "root": "/cvmfs"}},
        {"name": "own", "settings": {"anything": [None, {"goes": True}]}},
    ]

    save_queue(queue, actor=Actor.person(olga))

    assert names(queue) == [
        "disk", "memory", "clock", "cpus", "software", "network", "scratch", "apptainer", "cvmfs",
        "gpu", "own",
    ]  # fmt: skip


def test_an_added_check_with_the_name_of_a_built_in_one_keeps_its_own_settings(
    queue: Queue, olga: User
) -> None:
    check = add("gpu")
    queue.checks = [{"name": "gpu", "settings": {"least": 1}}]

    save_queue(queue, actor=Actor.person(olga))

    assert names(queue)[-1] == "gpu"
    check.delete()
    with pytest.raises(InvalidInput, match="least"):
        store_manifest(queue)


def test_a_check_of_another_site_is_none_of_the_queues(
    queue: Queue, make_queue: Callable[..., Queue], olga: User
) -> None:
    add("theirs", site=make_queue("texas").site)
    queue.checks = [{"name": "theirs"}]

    with pytest.raises(InvalidInput, match="theirs"):
        save_queue(queue, actor=Actor.person(olga))


def test_a_check_that_is_switched_off_leaves_a_queue_that_names_it_working(
    queue: Queue, olga: User, adam: User
) -> None:
    check = add("own")
    queue.checks = [{"name": "own", "time_limit_s": 5}]
    save_queue(queue, actor=Actor.person(olga))

    check.is_enabled = False
    save_node_check(check, actor=Actor.person(adam))

    assert "own" not in names(queue)
    save_queue(queue, actor=Actor.person(olga))


@pytest.mark.parametrize("field", ["site", "group"])
def test_a_check_that_a_queue_names_cannot_become_one_for_others(
    queue: Queue, make_queue: Callable[..., Queue], olga: User, adam: User, field: str
) -> None:
    check = add("own")
    queue.checks = [{"name": "own"}]
    save_queue(queue, actor=Actor.person(olga))
    check.site = make_queue("texas").site if field == "site" else None
    check.group = AccountingGroup.objects.create(name="higgs") if field == "group" else None

    with pytest.raises(InvalidInput, match=f"florida/main is not of this {field}") as told:
        save_node_check(check, actor=Actor.person(adam))

    assert [finding.field for finding in told.value.findings] == [field]
    check.site, check.group = (Site.objects.get(name="florida") if field == "site" else None), None
    save_node_check(check, actor=Actor.person(adam))
