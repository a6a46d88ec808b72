"""Fleet of thousands of simulated pilots in one process: the pilot protocol over HTTP, no payloads.

Every pilot registers, sends its heartbeats and, when it is its turn, claims a job, reports its
start, keeps it for a while and reports its end. As the real pilot does, it opens a connection for
each request. What was not answered is asked again under the same key.
`run` returns the times of all heartbeats and claims, and the jobs that were claimed and ended.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Coroutine, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import urlsplit

_TIMEOUT_S = 30.0
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Plan:
    """What the fleet does: `pilots` are pairs of a pilot's uuid and its one-time secret."""

    url: str
    pilots: Sequence[tuple[str, str]]
    seconds: float
    heartbeat_s: float
    claims_per_s: float
    payload_s: float


@dataclass(slots=True)
class Seen:
    """What the fleet saw; times in seconds."""

    heartbeats_s: list[float] = field(default_factory=list)
    claims_s: list[float] = field(default_factory=list)
    claimed: list[tuple[int, int]] = field(default_factory=list)
    ended: list[tuple[int, int]] = field(default_factory=list)
    fruitless: int = 0
    failed_requests: int = 0
    registered: int = 0
    register_s: float = 0.0
    claiming_s: float = 0.0


def node_of(uuid: str) -> dict[str, Any]:
    """The facts of the worker node that a pilot tells."""
    return {
        "hostname": f"node-{uuid[:6]}", "platform": "linux-x86_64", "cores": 1,
        "memory_mb": 2000, "disk_mb": 10_000, "slot_cores": 1, "slot_memory_mb": 2000,
        "slot_gpus": 0, "python": "3.11", "agent_version": "1",
    }  # fmt: skip


def claim_of(key: str) -> dict[str, Any]:
    """A claim that offers the whole slot."""
    return {
        "claim": key, "cpu_time_s": 86_400, "cores": 1, "memory_mb": 2000, "gpus": 0,
        "disk_mb": 10_000, "platform": "linux-x86_64", "tags": [], "required_tags": [],
    }  # fmt: skip


def end_of(wall_s: float) -> dict[str, Any]:
    """The report of an end without a fault."""
    return {
        "event": "ended", "exit_code": 0, "signal": None, "wall_s": wall_s, "cpu_s": 1.0,
        "max_rss_mb": 10, "reason": "", "missing_outputs": [],
    }  # fmt: skip


class _Refused(Exception):
    """The server answered, and not with 200."""


class _Pilot:
    def __init__(self, plan: Plan, seen: Seen, uuid: str, secret: str) -> None:
        parts = urlsplit(plan.url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._plan, self._seen = plan, seen
        self._uuid, self._secret = uuid, secret
        self._draw = random.Random(uuid)
        self._token = f"{self._draw.getrandbits(256):064x}"
        self._held: list[dict[str, int]] = []
        self._beats = 0

    async def register(self) -> None:
        node = node_of(self._uuid)
        body = {"pilot": self._uuid, "secret": self._secret, "token": self._token, "node": node}
        await self._post("register", body)
        self._seen.registered += 1

    async def beat_on(self, until_s: float) -> None:
        """Send heartbeats at random phases until a time on the monotonic clock."""
        pause_s = self._draw.uniform(0, self._plan.heartbeat_s)
        while time.monotonic() + pause_s < until_s:
            await asyncio.sleep(pause_s)
            began_s = time.monotonic()
            self._beats += 1
            body = {"jobs": self._held, "load": {"load_1min": 1.0}, "sequence": self._beats}
            if await self._post("heartbeat", body) is not None:
                self._seen.heartbeats_s.append(time.monotonic() - began_s)
            pause_s = max(0.0, began_s + self._plan.heartbeat_s - time.monotonic())

    async def run_one(self) -> None:
        """Claim a job, and carry it to its end."""
        body = claim_of(f"{self._draw.getrandbits(128):032x}")
        began_s = time.monotonic()
        answer = await self._post("claim", body)
        if answer is None:
            return
        self._seen.claims_s.append(time.monotonic() - began_s)
        job = answer["job"]
        if job is None:
            self._seen.fruitless += 1
            return
        key = job["job"], job["attempt"]
        self._seen.claimed.append(key)
        self._held = [{"job": key[0], "attempt": key[1]}]
        await self._report(key, {"event": "started"})
        await asyncio.sleep(self._draw.uniform(0.5, 1.5) * self._plan.payload_s)
        if await self._report(key, end_of(self._plan.payload_s)) is not None:
            self._seen.ended.append(key)
        self._held = []

    async def _report(self, key: tuple[int, int], body: dict[str, Any]) -> dict[str, Any] | None:
        return await self._post(f"jobs/{key[0]}/{key[1]}/report", body)

    async def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """The answer; None, and counted, when none came after some tries."""
        for number in range(_TRIES):
            try:
                return await asyncio.wait_for(self._exchange(path, body), _TIMEOUT_S)
            except (OSError, asyncio.IncompleteReadError, TimeoutError, _Refused):
                await asyncio.sleep(0.2 * 2**number * self._draw.uniform(0.7, 1))
        self._seen.failed_requests += 1
        return None

    async def _exchange(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        content = json.dumps(body).encode()
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            writer.write(
                f"POST /pilot/v1/{path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\n"
                f"Authorization: Bearer {self._uuid}:{self._token}\r\nAccept: application/json\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
                "Connection: close\r\n\r\n".encode()
                + content
            )
            answer = await reader.read()
        finally:
            writer.close()
        head, _, found = answer.partition(b"\r\n\r\n")
        if head.split(b" ", 2)[1:2] != [b"200"]:
            raise _Refused(answer[:200])
        parsed: dict[str, Any] = json.loads(found)
        return parsed


def run(plan: Plan) -> dict[str, Any]:
    """Let the fleet live for its time; what it saw, as a mapping."""
    return asdict(asyncio.run(_live(plan)))


async def _live(plan: Plan) -> Seen:
    seen = Seen()
    pilots = [_Pilot(plan, seen, uuid, secret) for uuid, secret in plan.pilots]
    began_s = time.monotonic()
    await _at_once([pilot.register() for pilot in pilots], most=16)
    seen.register_s = time.monotonic() - began_s
    until_s = time.monotonic() + plan.seconds
    beats = [asyncio.create_task(pilot.beat_on(until_s)) for pilot in pilots]
    began_s = time.monotonic()
    await _claim_steadily(plan, pilots, until_s)
    seen.claiming_s = time.monotonic() - began_s
    await asyncio.gather(*beats)
    return seen


async def _claim_steadily(plan: Plan, pilots: Sequence[_Pilot], until_s: float) -> None:
    """Start a claim at the plan's rate, by the pilot that has been free for longest."""
    free = asyncio.Queue[_Pilot]()
    for pilot in pilots:
        free.put_nowait(pilot)
    running: set[asyncio.Task[None]] = set()

    async def work(pilot: _Pilot) -> None:
        await pilot.run_one()
        free.put_nowait(pilot)

    next_s = time.monotonic()
    # The last ones have time to come to their ends.
    while time.monotonic() < until_s - 2 * plan.payload_s:
        next_s = max(next_s + 1 / plan.claims_per_s, time.monotonic() - 1)
        await asyncio.sleep(max(0.0, next_s - time.monotonic()))
        task = asyncio.create_task(work(await free.get()))
        running.add(task)
        task.add_done_callback(running.discard)
    await asyncio.gather(*running)


async def _at_once(works: Sequence[Coroutine[Any, Any, None]], *, most: int) -> None:
    gate = asyncio.Semaphore(most)

    async def one(work: Coroutine[Any, Any, None]) -> None:
        async with gate:
            await work

    await asyncio.gather(*map(one, works))
