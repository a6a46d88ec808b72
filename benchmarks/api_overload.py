"""Overload: three times as much as can be served, and what becomes of what was accepted.

A part of `benchmarks.api`. The load is lives of jobs by pilots, pages of the list of jobs, and
submissions, a third of each. First some clients ask as fast as they are answered, which is what can
be served; then three times as much is begun, whether it is answered or not, while somebody looks at
the overview. A pilot that is refused a report repeats it, as real ones do.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from benchmarks.api_pilots import CLIENTS, SimulatedPilot
from benchmarks.http_load import NO_ANSWER, Answer, Server, all_of, at_rate
from benchmarks.web_server import WebServer

_TIMES = 3
_LOOK_S = 0.5
_PATIENCE_S = 60.0


def overload(
    web: WebServer, token: str, session: str, credentials: Sequence[tuple[str, str]], seconds: float
) -> dict[str, Any]:
    """Answers by status; `accepted` are keys of submissions and jobs whose ends were accepted."""
    return asyncio.run(_Overload(web, token, session, credentials).measure(seconds))


class _Overload:
    def __init__(
        self, web: WebServer, token: str, session: str, credentials: Sequence[tuple[str, str]]
    ) -> None:
        self._web = web
        self._server = Server(web.port, f"Authorization: Bearer {token}\r\n")
        self._person = Server(web.port, f"Cookie: sessionid={session}\r\n")
        self._free = asyncio.Queue[SimulatedPilot]()
        for each in credentials:
            self._free.put_nowait(SimulatedPilot(web.port, *each))
        self._seen: Counter[str] = Counter()
        self._unnamed = 0
        self._clusters: list[int] = []
        self._ended: list[int] = []
        self._served = 0
        self._is_over = asyncio.Event()

    async def measure(self, seconds: float) -> dict[str, Any]:
        """Measure the usual load, then the overload."""
        pilots = [self._free.get_nowait() for _ in range(self._free.qsize())]
        await all_of((self._registered(pilot) for pilot in pilots), most=CLIENTS)
        for pilot in pilots:
            self._free.put_nowait(pilot)
        await self._look()
        until_s = time.perf_counter() + seconds
        began_s = time.perf_counter()
        await asyncio.gather(*(self._ask_until(until_s, first) for first in range(CLIENTS)))
        per_s = self._served / (time.perf_counter() - began_s)
        usual = dict(self._seen)
        self._seen.clear()
        self._served = self._unnamed = 0
        looking = asyncio.create_task(self._look_on())
        began_s = time.perf_counter()
        begun_per_s = await at_rate(self._one, per_s=_TIMES * per_s, for_s=seconds)
        took_s = time.perf_counter() - began_s
        self._is_over.set()
        looks = await looking
        return {
            "served_per_s": round(per_s, 1),
            "begun_per_s": round(begun_per_s, 1),
            "served_in_overload_per_s": round(self._served / took_s, 1),
            "usual": usual,
            "answers": dict(sorted(self._seen.items())),
            "refused_without_retry_after": self._unnamed,
            "overview_first_byte_ms": {
                "median": round(1000 * sorted(looks)[len(looks) // 2]),
                "most": round(1000 * max(looks)),
            },
            "clusters": self._clusters,
            "ended": self._ended,
        }

    async def _registered(self, pilot: SimulatedPilot) -> None:
        while (await pilot.register()).status == 503:
            await asyncio.sleep(0.2)

    async def _ask_until(self, until_s: float, first: int) -> None:
        number = first
        while time.perf_counter() < until_s:
            await self._one(number)
            number += 1

    async def _one(self, number: int) -> None:
        await (self._live, self._list, self._submit)[number % 3]()

    async def _live(self) -> None:
        if self._free.empty():
            # All have work: nobody claims.
            self._seen["no pilot is free"] += 1
            return
        pilot = self._free.get_nowait()
        answer = self._note("claim", await pilot.claim())
        if answer.status == 200 and pilot.held is not None:
            for name, report in (("start", pilot.start), ("beat", pilot.beat), ("end", pilot.end)):
                answer = await self._repeated(name, report)
            if answer.status == 200:
                self._ended.append(pilot.held[0])
        self._served += answer.status == 200
        self._free.put_nowait(pilot)

    async def _repeated(self, name: str, report: Any) -> Answer:
        until_s = time.perf_counter() + _PATIENCE_S
        pause_s = 0.2
        while True:
            answer = self._note(name, await report())
            is_final = answer.status not in (503, NO_ANSWER) or name == "beat"
            if is_final or time.perf_counter() > until_s:
                return answer
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, 5.0)

    async def _list(self) -> None:
        answer = self._note("list", await self._server.get("/api/v1/jobs/"))
        # Not in one line with the request: the sum of before it would be written after it.
        self._served += answer.status == 200

    async def _submit(self) -> None:
        body = {"executable": "/bin/true", "queue": 1}
        answer = self._note("submit", await self._server.post("/api/v1/jobs/", body))
        if answer.status == 201:
            self._clusters.append(answer.json()["id"])
            self._served += 1

    def _note(self, what: str, answer: Answer) -> Answer:
        self._seen[f"{what} {answer.status or 'without answer'}"] += 1
        if answer.status in (429, 503):
            self._unnamed += not answer.fields.get("retry-after", "").isdecimal()
        return answer

    async def _look_on(self) -> list[float]:
        looks = []
        while not self._is_over.is_set():
            looks.append(await self._look())
            await asyncio.sleep(_LOOK_S)
        return looks

    async def _look(self) -> float:
        """The time to the first byte of the overview; one that is refused counts as a minute."""
        answer = await self._person.get("/")
        self._seen[f"overview {answer.status or 'without answer'}"] += 1
        return answer.first_s if answer.status == 200 else 60.0
