"""Renewal of a token while other flows of the same client wait for answers."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

import httpx
from pilotage_client import AsyncClient
from pilotage_client.profiles import Login


class _Renewable(AsyncClient):
    """Client whose provider has the next token at hand."""

    def _renew(self, transport: Any) -> None:
        self.profile = replace(self.profile, token="plt_second", login=None)


class _Portal(httpx.AsyncBaseTransport):
    """Portal that answers the first token when it has seen the second."""

    def __init__(self) -> None:
        self.has_first, self.has_second = asyncio.Event(), asyncio.Event()
        self.waiting, self.closed_before = 0, False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.waiting += 1
        if request.headers["authorization"].endswith("plt_first"):
            self.has_first.set()
            await self.has_second.wait()
        else:
            self.has_second.set()
        self.waiting -= 1
        return httpx.Response(200, json={"username": "nora"})

    async def aclose(self) -> None:
        self.closed_before = self.closed_before or self.waiting > 0


def test_an_answer_that_another_flow_waits_for_is_not_cut_off() -> None:
    async def ask() -> tuple[list[str], bool]:
        portal = _Portal()
        async with _Renewable("https://p.example.org", "plt_first", transport=portal) as client:
            first = asyncio.ensure_future(client.username())
            await portal.has_first.wait()
            due = Login("p", "https://i.example.org", "c", "r", time.time())
            client.profile = replace(client.profile, login=due)
            second = await client.username()
            return [await first, second], portal.closed_before

    assert asyncio.run(ask()) == (["nora", "nora"], False)
