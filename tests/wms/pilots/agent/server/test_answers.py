"""Answers that are not what the agent expects."""

from __future__ import annotations

import pytest

from tests.wms.pilots.agent.conftest import World
from tests.wms.pilots.agent.faulty_proxy import CUT_ANSWER, PASS


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"<html>Welcome</html>", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b'{"job": {"job": 1}}', "KeyError('attempt')"),
        (b'{"job": [1]}', "AttributeError"),
        (b'{"job": {"job": 1, "attempt": 1e999}}', "OverflowError"),
        (b'{"nothing": 0}', "KeyError('job')"),
        (b" " * (64 * 1024 * 1024 + 1), "more than 67108864 bytes"),
    ],
    ids=["page", "list", "half", "other", "endless", "empty", "large"],
)
def test_a_pilot_that_cannot_understand_what_it_is_given_ends_and_gives_it_back(
    world: World, answer: bytes, why: str
) -> None:
    job = world.submit("#!/bin/sh\ntrue\n")
    world.server.fault = lambda method, path: answer if path.endswith("/claim") else PASS

    agent = world.start()

    assert agent.wait() == 1
    agent.pilot.refresh_from_db()
    assert agent.pilot.state == "failed"
    assert why in agent.pilot.state_reason
    assert world.wait_for_state(job, "waiting").attempt_number == 1


@pytest.mark.parametrize("fault", [b"<html>Please wait</html>", CUT_ANSWER])
def test_a_gateway_that_spoils_an_answer_now_and_then_costs_nothing(
    world: World, fault: str | bytes
) -> None:
    job = world.submit("#!/bin/sh\necho 1 >result.txt\n", outputs=("result.txt",))
    seen: set[str] = set()

    def spoil_first(method: str, path: str) -> str | bytes:
        is_first = path not in seen
        seen.add(path)
        return fault if is_first and "/inputs/" not in path else PASS

    world.server.fault = spoil_first

    assert world.start().wait() == 0
    assert world.wait_for_state(job, "done").attempt_number == 1


def test_a_claim_of_a_job_with_very_many_inputs_is_understood(world: World) -> None:
    inputs = b'{"job": null, "inputs": [' + b'"a path",' * 1_000_000 + b'"the last"]}'
    world.server.fault = lambda method, path: inputs if path.endswith("/claim") else PASS

    agent = world.start()

    assert len(inputs) > 8 * 1024 * 1024
    assert agent.wait() == 0
