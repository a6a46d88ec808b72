"""Publications of checks, at the portal: judged, kept, matched by claims, known to the director."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from matching.task_queues.needs import Needs
from tests import factories
from tests.wms.pilots.claiming import NOW, ask, job_of, running_pilot
from tests.wms.pilots.directing import reasons_of, sent
from wms.core.actors import Actor
from wms.core.errors import InvalidInput
from wms.core.models import User
from wms.explain.needs import explain_needs
from wms.pilots.models import NodeCheck, Pilot
from wms.pilots.program.checks import CheckResult, record_checks, save_node_check
from wms.pilots.program.manifest import manifest_content, store_manifest
from wms.pilots.program.published import SEEN_FOR, Said, published_here, sweep_seen
from wms.pilots.protocol.registration import authenticate_pilot
from wms.pilots.published_models import SeenPublication
from wms.sites.models import Queue

pytestmark = pytest.mark.django_db

SCRIPT = "#!/bin/sh\necho '{\"is_ok\": true}'\n"
WANTED = "sw_Available && sw_Release >= 2.5"


@pytest.fixture
def adam(db: None) -> User:
    return factories.person("adam", role="admin")


def add(name: str = "sw", **fields: Any) -> NodeCheck:
    given = {"attributes": {"Available": "boolean", "Release": "real"}, "variables": ["SW_DIR"]}
    return NodeCheck.objects.create(name=name, script=SCRIPT, **{**given, **fields})


def tell(
    pilot: Pilot, attributes: Any = None, variables: Any = None, *, name: str = "sw", **said: Any
) -> None:
    key = f"{name}:{pilot.checks.count()}"
    what = Said(attributes, variables, said.pop("skipped", ""))
    result = CheckResult(key, name, said.pop("is_ok", True), "", "", {}, 0.1, what)
    record_checks(pilot, [result], now=said.pop("now", NOW))
    pilot.refresh_from_db()


def known(pilot: Pilot) -> Pilot:
    """The pilot as its next request finds it."""
    return authenticate_pilot(pilot.uuid, "t" * 64, now=NOW)


def skipped(pilot: Pilot) -> str:
    return pilot.checks.latest("pk").skipped


def test_what_a_check_declares_is_kept_with_the_pilot(make_queue: Callable[..., Queue]) -> None:
    add()
    pilot = running_pilot(make_queue())

    tell(pilot, {"Available": True, "Release": 3}, {"SW_DIR": "/sw"})

    assert pilot.published == {"sw": {"Available": True, "Release": 3}}
    assert pilot.variables == {"sw": {"SW_DIR": "/sw"}}
    assert skipped(pilot) == ""


@pytest.mark.parametrize(
    ("attributes", "variables", "name"),
    [
        ({"Cpus": 99}, None, "Cpus"),
        ({"Available": "yes"}, None, "Available"),
        ({"Release": True}, None, "Release"),
        (None, {"LD_PRELOAD": "/tmp/x.so"}, "LD_PRELOAD"),
        (None, {"SW_OTHER": "x"}, "SW_OTHER"),
        ([1], None, "attributes"),
        ({"Available": True, "Release": 1, "Text": "x" * 2**20}, None, "bytes"),
    ],
)
def test_a_node_cannot_claim_what_the_check_does_not_declare(
    make_queue: Callable[..., Queue], attributes: Any, variables: Any, name: str
) -> None:
    add()
    pilot = running_pilot(make_queue())

    tell(pilot, attributes, variables)

    assert pilot.published == {"sw": {}}
    assert pilot.variables == {}
    assert name in skipped(pilot)
    assert pilot.checks.get().is_ok


def test_a_check_of_another_site_publishes_nothing_here(make_queue: Callable[..., Queue]) -> None:
    add(site=make_queue("there").site)
    pilot = running_pilot(make_queue("here"))

    tell(pilot, {"Available": True})

    assert pilot.published == {}
    assert "Available" in skipped(pilot)


def test_what_a_failed_check_says_is_not_published(make_queue: Callable[..., Queue]) -> None:
    add()
    pilot = running_pilot(make_queue())

    tell(pilot, {"Available": True}, is_ok=False)

    assert pilot.published == {}


def test_a_repeated_check_replaces_what_it_said_and_leaves_the_others(
    make_queue: Callable[..., Queue],
) -> None:
    add()
    pilot = running_pilot(make_queue())
    tell(pilot, {"Available": True, "Release": 3}, {"SW_DIR": "/sw"})
    tell(pilot, {"Count": 2}, name="gpu")

    tell(pilot, {"Available": False})

    assert pilot.published == {"sw": {"Available": False}, "gpu": {"Count": 2}}
    assert pilot.variables == {}


def test_what_the_pilot_left_out_itself_is_told(make_queue: Callable[..., Queue]) -> None:
    add()
    pilot = running_pilot(make_queue())

    tell(pilot, {"Available": True}, skipped="Other is not an attribute that the check declares")

    assert "Other" in skipped(pilot)


def test_claims_match_on_published_attributes(make_queue: Callable[..., Queue], add_jobs) -> None:
    add()
    queue = make_queue()
    with_it, without, old = (running_pilot(queue) for _ in range(3))
    tell(with_it, {"Available": True, "Release": 2.5})
    tell(without, {"Available": False, "Release": 2.5})
    tell(old, {"Available": True, "Release": 2})
    [job] = add_jobs(1, requirements=WANTED)

    assert job_of(ask(known(without))) is None
    assert job_of(ask(known(old))) is None
    assert job_of(ask(running_pilot(queue))) is None
    assert job_of(ask(known(with_it))) == job


def test_a_lost_attribute_is_lost_for_the_next_claim(
    make_queue: Callable[..., Queue], add_jobs
) -> None:
    add()
    pilot = running_pilot(make_queue(cores=4))
    tell(pilot, {"Available": True, "Release": 3})
    [first] = add_jobs(1, requirements=WANTED)
    assert job_of(ask(known(pilot))) == first

    add_jobs(1, requirements=WANTED)
    tell(pilot, {"Available": False})

    assert job_of(ask(known(pilot))) is None


def test_pilots_are_sent_only_where_a_check_publishes_what_jobs_ask_for(
    make_queue: Callable[..., Queue], add_jobs
) -> None:
    here, there = make_queue("here"), make_queue("there")
    add(site=here.site)
    add_jobs(2, requirements=WANTED)

    counts = sent(NOW)

    assert counts["here/main"] > 0
    assert counts["there/main"] == 0
    assert any(
        "no check of this queue publishes sw_Available" in each for each in reasons_of(there)
    )


def test_no_more_pilots_are_sent_where_those_of_late_had_nothing_of_it_for_an_hour(
    make_queue: Callable[..., Queue], add_jobs
) -> None:
    queue = make_queue()
    add()
    pilot = running_pilot(queue)
    tell(pilot, {"Available": True, "Release": 2})
    Pilot.objects.update(state="done", ended_at=NOW)
    add_jobs(2, requirements=WANTED)

    assert sent(NOW)["site-a/main"] == 0
    assert sent(NOW + SEEN_FOR + timedelta(seconds=1))["site-a/main"] > 0


def test_one_node_of_late_that_had_it_is_enough(make_queue: Callable[..., Queue], add_jobs) -> None:
    queue = make_queue()
    add()
    tell(running_pilot(queue), {"Available": True, "Release": 2})
    tell(running_pilot(queue), {"Available": True, "Release": 3})
    Pilot.objects.update(state="done", ended_at=NOW)
    add_jobs(2, requirements=WANTED)

    assert sent(NOW)["site-a/main"] > 0


def test_a_changed_check_is_given_the_benefit_of_the_doubt(
    make_queue: Callable[..., Queue], adam: User
) -> None:
    queue, check = make_queue(), add()
    tell(running_pilot(queue), {"Available": False})
    assert published_here([queue], now=NOW)[queue.pk].seen

    check.script = "#!/bin/sh\necho other\n"
    save_node_check(check, actor=Actor.person(adam))

    assert published_here([queue], now=NOW)[queue.pk].seen == ()


def test_equal_sets_are_one_row_and_too_many_different_ones_tell_nothing(
    make_queue: Callable[..., Queue],
) -> None:
    queue = make_queue()
    add()
    for _ in range(3):
        tell(running_pilot(queue), {"Release": 1})
    assert len(published_here([queue], now=NOW)[queue.pk].seen) == 1

    pilot = running_pilot(queue)
    for release in range(2, 25):
        tell(pilot, {"Release": release})

    assert published_here([queue], now=NOW)[queue.pk].seen == ()
    assert SeenPublication.objects.count() == 21
    assert sweep_seen(now=NOW + SEEN_FOR + timedelta(seconds=1)) == 21


def test_a_queue_stays_open_while_there_are_too_many_sets_and_few_are_kept(
    make_queue: Callable[..., Queue],
) -> None:
    queue = make_queue()
    add()
    pilot = running_pilot(queue)
    for minute in range(30):
        tell(pilot, {"Release": minute}, now=NOW + timedelta(minutes=minute))

    def seen(minute: int) -> int:
        return len(published_here([queue], now=NOW + timedelta(minutes=minute))[queue.pk].seen)

    assert SeenPublication.objects.count() == 21
    # An hour after the first, and for as long as more than twenty are of the last hour.
    assert (seen(30), seen(61), seen(69)) == (0, 0, 0)
    assert (seen(70), seen(89), seen(90)) == (20, 1, 0)


def test_a_queue_declares_what_its_own_checks_publish(make_queue: Callable[..., Queue]) -> None:
    here, there = make_queue("here"), make_queue("there")
    add(site=here.site)
    add("off", is_enabled=False)
    there.checks = [{"name": "cvmfs", "settings": {"repositories": ["sw.example.org"]}}]

    found = published_here([here, there], now=NOW)

    mine, theirs = found[here.pk].declared, found[there.pk].declared
    assert {"gpu_count", "apptainer_version"} <= mine & theirs
    assert mine - theirs == {"sw_available", "sw_release"}
    assert theirs - mine == {"cvmfs_available", "cvmfs_repositories"}


def test_a_job_that_asks_for_what_nobody_publishes_is_told_so(
    make_queue: Callable[..., Queue], add_jobs
) -> None:
    make_queue()

    found = explain_needs(Needs.of("alice", requirements="cvmfs_Available"), now=NOW)

    assert "no check of this queue publishes cvmfs_Available" in found.summary
    assert found.queues[0].refusal


def test_the_manifest_tells_the_pilot_what_a_check_may_publish(
    make_queue: Callable[..., Queue],
) -> None:
    add()
    add("plain", attributes={}, variables=[])

    manifest = json.loads(manifest_content(store_manifest(make_queue())))

    publishes = {each["name"]: each.get("publishes") for each in manifest["checks"]}
    assert publishes["sw"] == {
        "attributes": {"Available": "boolean", "Release": "real"},
        "variables": ["SW_DIR"],
    }
    assert publishes["plain"] is None
    assert publishes["disk"] is None
    assert publishes["gpu"]["attributes"]["Count"] == "integer"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"attributes": {"has_underscore": "boolean"}}, "attributes"),
        ({"attributes": {"1st": "boolean"}}, "attributes"),
        ({"attributes": {"Free": "float"}}, "attributes"),
        ({"attributes": {"Free": ["real"]}}, "attributes"),
        ({"attributes": {"Free": "real", "FREE": "real"}}, "attributes"),
        ({"attributes": {f"A{number}": "real" for number in range(21)}}, "attributes"),
        ({"attributes": ["Free"]}, "attributes"),
        ({"variables": ["LD_LIBRARY_PATH"]}, "variables"),
        ({"variables": ["PILOTAGE_X"]}, "variables"),
        ({"variables": ["NO GOOD"]}, "variables"),
        ({"variables": {"SW": 1}}, "variables"),
        ({"name": "my-check"}, "name"),
        ({"name": "nodes"}, "name"),
        ({"name": "SW"}, "name"),
        ({"name": "Gpu"}, "name"),
    ],
)
def test_a_bad_declaration_is_refused_with_its_field(
    adam: User, fields: dict[str, Any], field: str
) -> None:
    add()
    given = {"name": "own", "attributes": {"Free": "real"}, "script": SCRIPT, **fields}

    with pytest.raises(InvalidInput) as told:
        save_node_check(NodeCheck(**given), actor=Actor.person(adam))

    assert {finding.field for finding in told.value.findings} == {field}
    assert NodeCheck.objects.count() == 1


def test_a_check_that_publishes_no_attribute_may_have_any_name(adam: User) -> None:
    check = NodeCheck(name="my-check", script=SCRIPT, variables=["MY_DIR"])

    save_node_check(check, actor=Actor.person(adam))

    assert NodeCheck.objects.get().variables == ["MY_DIR"]


def test_a_check_from_before_the_built_in_one_of_its_name_goes_in_front_of_it(
    make_queue: Callable[..., Queue], adam: User
) -> None:
    queue = make_queue()
    check = add("gpu", attributes={"Brand": "string"}, variables=[])
    pilot = running_pilot(queue)

    manifest = json.loads(manifest_content(store_manifest(queue)))
    tell(pilot, {"Brand": "other", "Count": 1}, name="gpu")

    assert [each["builtin"] for each in manifest["checks"] if each["name"] == "gpu"] == [False]
    assert pilot.published == {"gpu": {"Brand": "other"}}
    assert "gpu_count" not in published_here([queue], now=NOW)[queue.pk].declared
    check.is_enabled = False
    save_node_check(check, actor=Actor.person(adam))
    manifest = json.loads(manifest_content(store_manifest(queue)))
    assert [each["builtin"] for each in manifest["checks"] if each["name"] == "gpu"] == [True]
