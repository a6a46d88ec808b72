"""Servers of another release: one that tells less than today's, and one that tells more."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.wms.pilots.agent.conftest import World
from tests.wms.pilots.agent.faulty_proxy import PASS

#: All that an answer told when the first pilots were sent, by the ending of its address.
FORMER = {
    "register": ("heartbeat_s", "poll_s", "idle_limit_s", "lifetime_s"),
    "claim": ("job", "reason"),
    "heartbeat": ("commands",),
    "report": ("accepted",),
}
FORMER_JOB = (
    "job", "attempt", "name", "executable", "arguments", "environment", "inputs", "outputs",
    "wall_limit_s", "cores", "memory_mb", "gpus",
)  # fmt: skip


def less(ending: str, answer: dict[str, Any]) -> dict[str, Any]:
    """What a server of an earlier release would have told."""
    told = {name: answer[name] for name in FORMER[ending] if name in answer}
    if told.get("job"):
        told["job"] = {name: told["job"][name] for name in FORMER_JOB}
    return told


def more(ending: str, answer: dict[str, Any]) -> dict[str, Any]:
    """What a server of a later release may tell."""
    unknown = {"of_a_later_release": {"list": [1, None, "x"]}}
    if answer.get("job"):
        answer["job"] |= unknown
    if ending == "heartbeat":
        answer["commands"].append({"command": "of_a_later_release", "at": 7})
    return answer | unknown


@pytest.mark.parametrize("told", [less, more])
def test_a_pilot_works_for_a_server_of_another_release(
    world: World, told: Callable[[str, dict[str, Any]], dict[str, Any]]
) -> None:
    script = "#!/bin/sh\nsleep 1\ncat in.txt >out.txt\n"
    jobs = [world.submit(script, inputs={"in.txt": b"in"}, outputs=("out.txt",)) for _ in range(2)]

    def rewrite(method: str, path: str) -> str | Callable[[bytes], bytes]:
        ending = path.rpartition("/")[2]
        if ending not in FORMER:
            return PASS
        return lambda content: json.dumps(told(ending, json.loads(content))).encode()

    world.server.fault = rewrite
    agent = world.start()

    assert agent.wait() == 0
    for job in jobs:
        assert world.wait_for_state(job, "done").attempt_number == 1
        assert world.output(job, "out.txt") == b"in"
    agent.pilot.refresh_from_db()
    assert (agent.pilot.state, agent.pilot.state_reason) == ("done", "idle")
