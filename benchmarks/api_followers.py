"""Followers of the stream of events, 200 at once, and how somebody else fares meanwhile.

A part of `benchmarks.api`. Each change is the submission of a job; it is told to a follower when
that one has its answer. A follower that is not let wait asks again when it was told to.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any
from urllib.parse import quote

from benchmarks.http_load import Answer, Server, times_ms
from benchmarks.web_server import WebServer

_PAUSE_S = 2.0
#: Until so long after the last change followers may be told.
_PATIENCE_S = 20.0
_PROBE_S = 0.25


def followers(web: WebServer, token: str, number: int, changes: int) -> dict[str, Any]:
    """Times from a change to each follower, and of another user's requests meanwhile."""
    return asyncio.run(_Following(web, token).measure(number, changes))


class _Following:
    def __init__(self, web: WebServer, token: str) -> None:
        self._web = web
        self._server = Server(web.port, f"Authorization: Bearer {token}\r\n")
        self._is_over = asyncio.Event()
        self._seen: list[dict[str, float]] = []
        self._asked = 0
        self._failed = 0
        self._refused = 0

    async def measure(self, number: int, changes: int) -> dict[str, Any]:
        cursor = (await self._server.get("/api/v1/events/")).json()["cursor"]
        began_s, cpu_s = time.perf_counter(), self._web.cpu_s()
        following = [asyncio.create_task(self._follow(cursor)) for _ in range(number)]
        probing = asyncio.create_task(self._probe())
        made: dict[str, float] = {}
        for at in range(changes):
            await asyncio.sleep(_PAUSE_S)
            cluster = await self._change(f"change-{at}")
            made[cluster] = time.perf_counter()
        await self._until_all_know(number, set(made))
        took_s, used_s = time.perf_counter() - began_s, self._web.cpu_s() - cpu_s
        self._is_over.set()
        probes = await probing
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)
        told = sorted(
            seen[key] - at for seen in self._seen for key, at in made.items() if key in seen
        )
        return {
            "followers": number,
            "changes": changes,
            "median_s": round(told[len(told) // 2], 2),
            "p99_s": round(told[int(0.99 * (len(told) - 1))], 2),
            "missed": number * changes - len(told),
            "requests_per_s": round(self._asked / took_s, 1),
            "failed": self._failed,
            "changes_refused": self._refused,
            "web_cores": round(used_s / took_s, 2),
            "others": times_ms(probes),
        }

    async def _change(self, name: str) -> str:
        """The cluster of a submitted job; a refused submission is repeated, as by any client."""
        body = {"executable": "/bin/true", "name": name, "queue": 1}
        while (answer := await self._server.post("/api/v1/jobs/", body)).status != 201:
            self._refused += 1
            await asyncio.sleep(float(answer.fields.get("retry-after", 1)))
        return str(answer.json()["id"])

    async def _until_all_know(self, number: int, made: set[str]) -> None:
        until_s = time.perf_counter() + _PATIENCE_S
        while time.perf_counter() < until_s:
            if len(self._seen) == number and all(made <= set(seen) for seen in self._seen):
                return
            await asyncio.sleep(0.1)

    async def _follow(self, cursor: str) -> None:
        seen: dict[str, float] = {}
        self._seen.append(seen)
        while True:
            answer = await self._server.get(
                f"/api/v1/events/?wait=30&kind=cluster&after={quote(cursor)}"
            )
            self._asked += 1
            if answer.status != 200:
                self._failed += 1
                await asyncio.sleep(float(answer.fields.get("retry-after", 1)))
                continue
            told = answer.json()
            cursor = told["cursor"]
            for event in told["events"]:
                seen.setdefault(event["object"], time.perf_counter())
            await asyncio.sleep(told["again_s"])

    async def _probe(self) -> list[Answer]:
        answers = []
        while not self._is_over.is_set():
            answers.append(await self._server.get("/api/v1/me/"))
            await asyncio.sleep(_PROBE_S)
        return answers
