"""Requests of pilots over HTTP, one kind after the other, and whole lives of jobs without payload.

A part of `benchmarks.api`. Each kind is asked by many clients at once for its rate; claims also by
one alone, for their times. `cpu_ms` is what a request costs the processes of the web server.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.fleet import claim_of, end_of, node_of
from benchmarks.http_load import Answer, Server, all_of, times_ms
from benchmarks.web_server import WebServer

#: So many requests are under way at once: no more than one process of the web server works on and
#: lets wait, since it may be the one that accepts them all.
CLIENTS = 12
_OK = 200


@dataclass(slots=True)
class SimulatedPilot:
    """A pilot that keeps no time of its own: it asks when it is told to."""

    port: int
    uuid: str
    secret: str
    #: Job and attempt that it has.
    held: tuple[int, int] | None = None
    _asked: int = field(default=0)

    @property
    def _server(self) -> Server:
        return Server(self.port, f"Authorization: Bearer {self.uuid}:{self._token}\r\n")

    @property
    def _token(self) -> str:
        return (self.uuid.replace("-", "") * 2)[:64]

    async def register(self) -> Answer:
        """The answer to its registration."""
        body = {
            "pilot": self.uuid, "secret": self.secret, "token": self._token,
            "node": node_of(self.uuid),
        }  # fmt: skip
        return await self._server.post("/pilot/v1/register", body)

    async def claim(self) -> Answer:
        """The answer to a claim; the job is held."""
        self._asked += 1
        key = f"{self.uuid.replace('-', '')[:24]}{self._asked:08x}"
        answer = await self._server.post("/pilot/v1/claim", claim_of(key))
        job = answer.json()["job"] if answer.status == _OK else None
        self.held = (job["job"], job["attempt"]) if job else None
        return answer

    async def beat(self) -> Answer:
        """The answer to a heartbeat."""
        self._asked += 1
        job, attempt = self.held or (0, 0)
        jobs = [{"job": job, "attempt": attempt}] if self.held else []
        body = {"jobs": jobs, "load": {"load_1min": 1.0}, "sequence": self._asked}
        return await self._server.post("/pilot/v1/heartbeat", body)

    async def start(self) -> Answer:
        """The answer to the report of a start."""
        return await self._report({"event": "started"})

    async def end(self) -> Answer:
        """The answer to the report of an end."""
        return await self._report(end_of(1.0))

    async def _report(self, body: dict[str, Any]) -> Answer:
        assert self.held is not None
        return await self._server.post(f"/pilot/v1/jobs/{self.held[0]}/{self.held[1]}/report", body)

    async def live(self) -> list[Answer]:
        """A claim, and the life of its job; nothing more where none was given."""
        answers = [await self.claim()]
        if self.held is not None:
            answers += [await self.start(), await self.beat(), await self.end()]
        return answers


def pilots_requests(web: WebServer, credentials: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Durations of the requests of these pilots; there are two jobs for each, and some more."""
    return asyncio.run(_ask(web, credentials))


async def _ask(web: WebServer, credentials: Sequence[tuple[str, str]]) -> dict[str, Any]:
    pilots = [SimulatedPilot(web.port, *each) for each in credentials]
    few = max(1, len(pilots) // 4)
    measured = _Measured(web)
    found = {
        "register": await measured.of(pilot.register() for pilot in pilots),
        "claim_alone": await measured.of((pilot.claim() for pilot in pilots[:few]), clients=1),
        "claim": await measured.of(pilot.claim() for pilot in pilots[few:]),
        "heartbeat": await measured.of(pilot.beat() for _ in range(2) for pilot in pilots),
    }
    missed = sum(pilot.held is None for pilot in pilots)
    busy = [pilot for pilot in pilots if pilot.held is not None]
    found["start"] = await measured.of(pilot.start() for pilot in busy)
    found["end"] = await measured.of(pilot.end() for pilot in busy)
    began_s, cpu_s = time.perf_counter(), web.cpu_s()
    lives = await all_of((pilot.live() for pilot in pilots), most=CLIENTS)
    whole = [life for life in lives if [each.status for each in life] == [_OK] * 4]
    found["job"] = {
        "per_s": round(len(whole) / (time.perf_counter() - began_s), 1),
        "cpu_ms": round(1000 * (web.cpu_s() - cpu_s) / max(len(whole), 1), 2),
        "failed": len(lives) - len(whole),
    }
    return {**found, "claims_without_job": missed}


class _Measured:
    """Measures requests of one kind."""

    def __init__(self, web: WebServer) -> None:
        self._web = web

    async def of(
        self, requests: Iterable[Awaitable[Answer]], *, clients: int = CLIENTS
    ) -> dict[str, Any]:
        began_s, cpu_s = time.perf_counter(), self._web.cpu_s()
        answers = await all_of(requests, most=clients)
        took_s, used_s = time.perf_counter() - began_s, self._web.cpu_s() - cpu_s
        return {
            **times_ms(answers),
            "per_s": round(len(answers) / took_s, 1),
            "cpu_ms": round(1000 * used_s / len(answers), 2),
            "failed": sum(answer.status != _OK for answer in answers),
        }
