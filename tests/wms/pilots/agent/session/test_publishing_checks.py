"""Checks that publish: real pilots, the jobs that ask for what they say, and their environment."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from django.utils import timezone

from tests.wms.pilots.agent.conftest import SECRET, RunningAgent, World, wait_until
from wms.core.models import User
from wms.explain.answers import answer_for_job
from wms.jobs.models import Attempt
from wms.pilots.models import NodeCheck, Pilot, PilotManifest
from wms.pilots.program.manifest import store_manifest
from wms.pilots.protocol.registration import secret_digest
from wms.sites.models import Queue, Site

GOOD = """#!/bin/sh
echo '{"is_ok": true, "attributes": {"Available": true, "Release": 2.5},
 "variables": {"SW_DIR": "/cvmfs/sw"}}' | tr -d '\\n'
"""


def add(script: str, **fields: Any) -> NodeCheck:
    declared = {
        "attributes": {"Available": "boolean", "Release": "real"},
        "variables": ["SW_DIR", "COLOUR"],
    }
    return NodeCheck.objects.create(**{"name": "sw", "script": script, **declared, **fields})


def start(world: World, queue: Queue) -> RunningAgent:
    """A pilot of this queue with the checks that are meant for it, but the built-in ones."""
    stored = PilotManifest.objects.get(pk=store_manifest(queue))
    manifest = json.loads(bytes(stored.content))
    manifest["checks"] = [each for each in manifest["checks"] if not each["builtin"]]
    scripts = [
        each.script.encode()
        for each in NodeCheck.objects.all()
        if hashlib.sha256(each.script.encode()).hexdigest()
        in {listed["sha256"] for listed in manifest["checks"]}
    ]
    pilot = Pilot.objects.create(queue=queue, batch="b", secret_sha256=secret_digest(SECRET))
    return world.start(manifest=manifest, scripts=scripts, pilot=pilot)


def skipped(agent: RunningAgent) -> str:
    return agent.pilot.checks.get(name="sw").skipped


def test_a_job_runs_where_a_check_publishes_what_it_asks_for_and_finds_its_variables(
    world: World,
) -> None:
    elsewhere = Queue.objects.create(
        site=Site.objects.create(name="plain"), name="short", element="host", fence="none",
        hold_after_failure_s=0,
    )  # fmt: skip
    add(GOOD, site=world.queue.site)
    job = world.submit(
        '#!/bin/sh\necho "$SW_DIR $COLOUR"\n', requirements="sw_Available && sw_Release >= 2.5"
    )

    without = start(world, elsewhere)
    assert without.wait() == 0, without.log
    assert not Attempt.objects.filter(job=job).exists()
    answer = answer_for_job(User.objects.get(username="alice"), job.pk, now=timezone.now())
    fits = {each.site: each.refusal for each in answer.queues.queues}
    assert fits["UW"] == ""
    assert "no check of this queue publishes sw_Available" in fits["plain"]

    with_it = start(world, world.queue)
    assert with_it.wait() == 0, with_it.log
    world.wait_for_state(job, "done")
    # The job's own variable counts before what a check publishes under the same name.
    assert world.log_of(job) == "/cvmfs/sw blue\n"
    with_it.pilot.refresh_from_db()
    assert with_it.pilot.published == {"sw": {"Available": True, "Release": 2.5}}
    assert with_it.pilot.variables == {"sw": {"SW_DIR": "/cvmfs/sw"}}
    assert skipped(with_it) == ""


def test_the_later_check_counts_and_nothing_hides_what_the_pilot_sets(world: World) -> None:
    variables = '{"is_ok": true, "variables": {"SW_DIR": "%s", "TMPDIR": "/x", "LD_PRELOAD": "y"}}'
    add(f"#!/bin/sh\necho '{variables % 'first'}'\n", name="a", position=1)
    add(f"#!/bin/sh\necho '{variables % 'second'}'\n", name="sw", position=2)
    job = world.submit('#!/bin/sh\necho "$SW_DIR ${LD_PRELOAD-none}"\n[ "$TMPDIR" != /x ]\n')

    agent = start(world, world.queue)

    assert agent.wait() == 0, agent.log
    world.wait_for_state(job, "done")
    assert world.log_of(job) == "second none\n"
    assert "LD_PRELOAD" in skipped(agent)
    assert "TMPDIR" in skipped(agent)


def test_one_that_publishes_a_reserved_name_or_too_much_is_told_and_the_job_runs(
    world: World,
) -> None:
    said = '{"is_ok": true, "attributes": {"Available": true, "Memory": 1, "Release": "x"}}'
    add(f"#!/bin/sh\necho '{said}'\n", position=1)
    large = '#!/bin/sh\nprintf \'{"is_ok": true, "variables": {"SW_DIR": "\'\n'
    large += "head -c 20000 /dev/zero | tr '\\0' x\nprintf '\"}}'\n"
    add(large, name="large", position=2)
    job = world.submit("#!/bin/sh\ntrue\n", requirements="sw_Available")

    agent = start(world, world.queue)

    assert agent.wait() == 0, agent.log
    world.wait_for_state(job, "done")
    agent.pilot.refresh_from_db()
    assert agent.pilot.published == {"sw": {"Available": True}, "large": {}}
    assert agent.pilot.variables == {}
    assert "Memory" in skipped(agent)
    assert "Release" in skipped(agent)
    assert "allowed are 8192" in agent.pilot.checks.get(name="large").skipped


def test_a_megabyte_as_the_last_line_is_a_failure_with_its_reason(world: World) -> None:
    add("#!/bin/sh\nhead -c 1000000 /dev/zero | tr '\\0' x\n")

    agent = start(world, world.queue)

    assert agent.wait() == 1
    result = agent.pilot.checks.get(name="sw")
    assert (result.is_ok, result.kind) == (False, "check")
    assert "65536 bytes" in result.reason


def test_a_repeated_check_that_publishes_something_else_is_told_at_once(world: World) -> None:
    here = world.directory
    add(
        f"#!/bin/sh\n[ -e {here}/gone ] && it=false || it=true\n"
        'echo "{\\"is_ok\\": true, \\"attributes\\": {\\"Available\\": $it}}"\n',
        period_s=1,
    )
    running = world.submit(f"#!/bin/sh\nwhile [ ! -e {here}/go ]; do sleep 0.05; done\n")
    agent = start(world, world.queue)
    world.wait_for_state(running, "running")

    (here / "gone").touch()
    changed = Pilot.objects.filter(pk=agent.pilot.pk, published__sw__Available=False)
    wait_until(changed.exists, "the portal knows")
    job = world.submit("#!/bin/sh\ntrue\n", requirements="sw_Available")
    (here / "go").touch()

    assert agent.wait() == 0, agent.log
    world.wait_for_state(running, "done")
    assert not Attempt.objects.filter(job=job).exists()
    assert agent.pilot.checks.filter(name="sw").count() == 2
