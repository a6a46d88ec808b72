"""Contents that the portal has elsewhere are fetched from there, without the token."""

from __future__ import annotations

import hashlib
from pathlib import Path

import httpx
import pytest
from pilotage_client import AsyncClient, Client, NoAnswer, PilotageError
from pilotage_client.files.sinks import FileSink

from tests.client.conftest import URL
from tests.client.test_python_api import driven

STORE = "https://s3.example.org/bucket/ab?X-Amz-Signature=1"
CONTENT = b"from the store"


class _PortalAndStore(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """A portal that leads to a store, and the store."""

    def __init__(self, content: bytes = CONTENT) -> None:
        self.asked: list[httpx.Request] = []
        self._content = content
        self.told = {"X-Content-SHA256": hashlib.sha256(CONTENT).hexdigest()}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        if str(request.url) == STORE:
            return httpx.Response(200, content=self._content)
        return httpx.Response(302, headers={"Location": STORE, **self.told})

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return self.handle_request(request)


def _check(transport: _PortalAndStore, digest: str, sink: FileSink) -> None:
    assert sink.keep(digest).read_bytes() == CONTENT
    assert ["authorization" in each.headers for each in transport.asked] == [True, False]


def test_a_file_comes_from_where_the_portal_leads_and_the_token_stays_with_the_portal(
    tmp_path: Path,
) -> None:
    transport, sink = _PortalAndStore(), FileSink(tmp_path / "file")

    with Client(URL, "plt_token", transport=transport) as client:
        digest = client.download("dags/1/files/x", sink)

    _check(transport, digest, sink)


def test_the_asynchronous_client_does_the_same(tmp_path: Path) -> None:
    transport, sink = _PortalAndStore(), FileSink(tmp_path / "file")

    async def work() -> str:
        async with AsyncClient(URL, "plt_token", transport=transport) as client:
            return str(await client.download("dags/1/files/x", sink))

    _check(transport, driven(work()), sink)


def test_another_content_than_the_portal_has_told_is_not_kept(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "file")

    with Client(URL, "plt_token", transport=_PortalAndStore(b"spoilt")) as client:
        digest = client.download("dags/1/files/x", sink)

    with pytest.raises(NoAnswer):
        sink.keep(digest)


def test_no_other_redirection_is_followed(tmp_path: Path) -> None:
    transport = _PortalAndStore()
    transport.told = {}

    with Client(URL, "plt_token", transport=transport) as client, pytest.raises(PilotageError):
        client.download("dags/1/files/x", FileSink(tmp_path / "file"))

    assert len(transport.asked) == 1
