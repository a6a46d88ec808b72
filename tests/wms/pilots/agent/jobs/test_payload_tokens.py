"""Bearer tokens of payloads on a node: given, renewed, and gone."""

from __future__ import annotations

import json
import os
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.wms.pilots.agent.conftest import World
from tests.wms.pilots.agent.fence.fencing import payload_accounts  # noqa: F401
from wms.core.errors import NotAuthenticated
from wms.jobs import payload_tokens
from wms.jobs.models import Attempt, JobEvent
from wms.pilots.models import Pilot
from wms.sites.models import Queue

pytestmark = pytest.mark.process

#: Waits for another token, and reads its own job with both.
_SCRIPT = """#!/usr/bin/python3
import json, os, stat, sys, time, urllib.error, urllib.request
file = os.environ["BEARER_TOKEN_FILE"]
def status(token, path):
    url = f"{os.environ['PILOTAGE_PORTAL']}/api/v1/{path}"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    try:
        return urllib.request.urlopen(request).status
    except urllib.error.HTTPError as error:
        return error.code
mode = os.stat(file)
first = token = open(file).read()
told = [stat.S_IMODE(mode.st_mode), mode.st_uid == os.geteuid()]
own = f"jobs/{os.environ['PILOTAGE_JOB']}/"
told += [status(first, own), status(first, "jobs/")]
until = time.monotonic() + 60
while token == first and time.monotonic() < until:
    time.sleep(0.1)
    token = open(file).read()
told += [token != first, status(token, own)]
told += [any(token in value for value in (*os.environ.values(), *sys.argv))]
open("told", "w").write(json.dumps([told, token]))
"""


@pytest.mark.parametrize("fence", ["none", "bwrap", "sudo"])
def test_a_payload_finds_its_owners_token_which_is_renewed_and_ends_with_it(
    world: World, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, fence: str
) -> None:
    if fence == "sudo":
        if os.geteuid() != 0:
            pytest.skip("only root makes accounts")
        request.getfixturevalue("payload_accounts")
    elif fence == "bwrap":
        request.getfixturevalue("fence_programs")
    monkeypatch.setattr(payload_tokens, "LIFETIME", timedelta(seconds=6))
    Queue.objects.update(fence=fence)
    job = world.submit(_SCRIPT, outputs=("told",), directives={"has_token": True})
    without = world.submit('#!/bin/sh\ntest -z "$BEARER_TOKEN_FILE"\n')

    agent = world.start()
    for each in (job, without):
        world.wait_for_state(each, "done")
    agent.wait()

    told, token = json.loads(world.output(job, "told"))
    assert told == [0o600, True, 200, 403, True, 200, False]
    assert token.startswith("plj_")
    with pytest.raises(NotAuthenticated):
        payload_tokens.authenticate_payload(token, now=timezone.now() - timedelta(seconds=60))
    assert "plj_" not in agent.log
    rows = [*Pilot.objects.values(), *Attempt.objects.values(), *JobEvent.objects.values()]
    assert not any("plj_" in str(row) for row in rows)
