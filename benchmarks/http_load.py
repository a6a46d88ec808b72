"""Client of HTTP for loads: many requests at once in one process, each on a connection of its own.

So do pilots. An answer has its status, its fields and the times to its first byte and its end.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

_TIMEOUT_S = 60.0
#: An answer that never came, or not in time.
NO_ANSWER = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer; `status` is NO_ANSWER without one."""

    status: int
    first_s: float
    took_s: float
    fields: Mapping[str, str] = field(default_factory=dict)
    content: bytes = b""

    def json(self) -> Any:
        """The content, decoded."""
        return json.loads(self.content)


@dataclass(frozen=True, slots=True)
class Server:
    """The server at a port of this host, asked as somebody: by the value of a header's field."""

    port: int
    header: str = ""

    async def get(self, path: str) -> Answer:
        """The answer to GET."""
        return await self._ask("GET", path, b"", "")

    async def post(self, path: str, body: Any, more: str = "") -> Answer:
        """The answer to POST of JSON; `more` are further lines of the head."""
        return await self._ask("POST", path, json.dumps(body).encode(), more)

    async def _ask(self, method: str, path: str, body: bytes, more: str) -> Answer:
        began_s = time.perf_counter()
        try:
            return await asyncio.wait_for(
                self._exchange(method, path, body, more, began_s), _TIMEOUT_S
            )
        except (OSError, TimeoutError, ValueError):
            took_s = time.perf_counter() - began_s
            return Answer(NO_ANSWER, took_s, took_s)

    async def _exchange(
        self, method: str, path: str, body: bytes, more: str, began_s: float
    ) -> Answer:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(
                f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n{self.header}{more}"
                f"Accept: */*\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
                + body
            )
            begun = await reader.read(2**16)
            first_s = time.perf_counter() - began_s
            whole = begun + await reader.read()
        finally:
            writer.close()
        head, _, content = whole.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        fields = {name.lower(): text.strip() for name, _, text in (x.partition(":") for x in lines)}
        status = int(first.split(" ", 2)[1]) if first else NO_ANSWER
        return Answer(status, first_s, time.perf_counter() - began_s, fields, content)


async def all_of(works: Iterable[Awaitable[Any]], *, most: int) -> list[Any]:
    """The results of all, in their order; `most` are under way at once."""
    gate = asyncio.Semaphore(most)

    async def one(work: Awaitable[Any]) -> Any:
        async with gate:
            return await work

    return list(await asyncio.gather(*map(one, works)))


async def at_rate(work: Callable[[int], Awaitable[Any]], *, per_s: float, for_s: float) -> float:
    """Begin work at a rate whatever becomes of it, and wait for its end; the rate that came about.

    A client that comes late, because it has no processor, begins what is due at once.
    """
    began_s = time.perf_counter()
    running = []
    for number in range(int(per_s * for_s)):
        await asyncio.sleep(max(0.0, began_s + number / per_s - time.perf_counter()))
        running.append(asyncio.create_task(work(number)))
    took_s = time.perf_counter() - began_s
    await asyncio.gather(*running)
    return len(running) / took_s


def times_ms(answers: Iterable[Answer]) -> dict[str, float]:
    """Median and 99th percentile of the whole times."""
    times = sorted(1000 * answer.took_s for answer in answers)
    return {
        "median_ms": round(times[len(times) // 2], 1),
        "p99_ms": round(times[int(0.99 * (len(times) - 1))], 1),
    }
