"""Senders: requests over the network by httpx, synchronously and asynchronously.

All they know is how to send; what is sent and what answers mean, flows say.
"""

from __future__ import annotations

import os
import re
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx

from .errors import UsageError
from .profiles import Profile
from .wire import Answer, Body, Outcome, Request, Silence

_CONNECT_S, _READ_S = 10.0, 60.0
#: A large DAG is read, checked and stored before it is answered.
_READ_OF_UPLOAD_S = 600.0
#: No proxy leads to this host.
_DIRECT: Mapping[str, Any] = {f"all://{host}": None for host in ("localhost", "127.0.0.1", "[::1]")}
_PIECE_BYTES = 256 * 1024
_FOUND = 302
_DIGEST = "x-content-sha256"


class Sender:
    """Sends requests of one profile."""

    def __init__(self, profile: Profile, transport: httpx.BaseTransport | None = None) -> None:
        self._profile, self._transport = profile, transport
        self._client = httpx.Client(**_settings(profile), transport=transport)
        self._anonymous: httpx.Client | None = None

    def send(self, request: Request) -> Outcome:
        """Outcome of a request."""
        built = _built(self._client, self._profile, request)
        begun_s = time.monotonic()
        try:
            answer = self._client.send(built, stream=True)
            try:
                at = _elsewhere(answer, request)
                if not at:
                    return _answer(answer, self._content(answer, request), begun_s)
            finally:
                answer.close()
            return self._fetched(at, answer, request)
        except (httpx.TransportError, httpx.DecodingError) as error:
            return _silence(self._profile, error)

    def _fetched(self, at: str, leading: httpx.Response, request: Request) -> Outcome:
        """Content from where the portal keeps it, which learns no token."""
        if self._anonymous is None:
            self._anonymous = httpx.Client(**_anonymous(self._profile), transport=self._transport)
        begun_s = time.monotonic()
        try:
            with self._anonymous.stream("GET", at) as answer:
                content = self._content(answer, request)
                return _with_digest(leading, _answer(answer, content, begun_s))
        except httpx.TransportError as error:
            return _silence_of_store(at, error)

    def _content(self, answer: httpx.Response, request: Request) -> bytes:
        if request.sink is None or answer.status_code >= 300:
            return answer.read()
        request.sink.begin(_length(answer))
        for piece in answer.iter_bytes(_PIECE_BYTES):
            request.sink.write(piece)
        return b""

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
        if self._anonymous is not None:
            self._anonymous.close()


class AsyncSender:
    """Sends requests of one profile, asynchronously."""

    def __init__(self, profile: Profile, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._profile, self._transport = profile, transport
        self._client = httpx.AsyncClient(**_settings(profile), transport=transport)
        self._anonymous: httpx.AsyncClient | None = None
        self._under_way, self._closes_when_idle = 0, False

    @property
    def token(self) -> str:
        """Token that it shows."""
        return self._profile.token

    async def send(self, request: Request) -> Outcome:
        """Outcome of a request."""
        self._under_way += 1
        try:
            return await self._sent(request)
        finally:
            self._under_way -= 1
            if self._closes_when_idle and not self._under_way:
                await self.close()

    async def _sent(self, request: Request) -> Outcome:
        built = _built(self._client, self._profile, request)
        begun_s = time.monotonic()
        try:
            answer = await self._client.send(built, stream=True)
            try:
                at = _elsewhere(answer, request)
                if not at:
                    return _answer(answer, await self._content(answer, request), begun_s)
            finally:
                await answer.aclose()
            return await self._fetched(at, answer, request)
        except (httpx.TransportError, httpx.DecodingError) as error:
            return _silence(self._profile, error)

    async def _fetched(self, at: str, leading: httpx.Response, request: Request) -> Outcome:
        """Content from where the portal keeps it, which learns no token."""
        if self._anonymous is None:
            self._anonymous = httpx.AsyncClient(
                **_anonymous(self._profile), transport=self._transport
            )
        begun_s = time.monotonic()
        try:
            async with self._anonymous.stream("GET", at) as answer:
                content = await self._content(answer, request)
                return _with_digest(leading, _answer(answer, content, begun_s))
        except httpx.TransportError as error:
            return _silence_of_store(at, error)

    async def _content(self, answer: httpx.Response, request: Request) -> bytes:
        if request.sink is None or answer.status_code >= 300:
            return await answer.aread()
        request.sink.begin(_length(answer))
        async for piece in answer.aiter_bytes(_PIECE_BYTES):
            request.sink.write(piece)
        return b""

    async def close_when_idle(self) -> None:
        """Close the connections after the answers that are waited for."""
        self._closes_when_idle = True
        if not self._under_way:
            await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()
        if self._anonymous is not None:
            await self._anonymous.aclose()


class _Awaited:
    """Body for the asynchronous client, which takes nothing that can be gone through at once."""

    def __init__(self, body: Body) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._body:
            yield piece


def _settings(profile: Profile) -> dict[str, Any]:
    return {
        "headers": {
            "User-Agent": "pilotage-client",
            **({"Authorization": f"Token {profile.token}"} if profile.token else {}),
        },
        "verify": _verification(profile),
        "mounts": _DIRECT,
        "timeout": httpx.Timeout(_READ_S, connect=_CONNECT_S),
        "follow_redirects": False,
    }


def _anonymous(profile: Profile) -> dict[str, Any]:
    """Settings for what is asked elsewhere than at the portal: without the token."""
    verification: ssl.SSLContext | bool = True
    if profile.ca_file:
        # The store may have the authority of the portal, or one that all believe.
        verification = ssl.create_default_context()
        verification.load_verify_locations(os.path.expanduser(profile.ca_file))
    return {
        "headers": {"User-Agent": "pilotage-client", "Accept-Encoding": "identity"},
        "verify": verification,
        "mounts": _DIRECT,
        "timeout": httpx.Timeout(_READ_S, connect=_CONNECT_S),
        "follow_redirects": False,
    }


def _elsewhere(answer: httpx.Response, request: Request) -> str:
    """Address to which the portal leads for a content; empty where the answer is one itself.

    Any other redirection is not followed: what it has not told the digest of is no content.
    """
    at = answer.headers.get("location", "")
    is_content = request.method == "GET" and not request.is_json and _DIGEST in answer.headers
    is_led = answer.status_code == _FOUND and is_content
    return at if is_led and at.startswith(("https://", "http://")) else ""


def _with_digest(leading: httpx.Response, answer: Answer) -> Answer:
    """The store's answer with the SHA-256 that the portal has told."""
    return replace(answer, headers={**answer.headers, _DIGEST: leading.headers[_DIGEST]})


def _silence_of_store(at: str, error: Exception) -> Silence:
    place = urlsplit(at)
    return Silence(f"{place.scheme}://{place.hostname}, where the files are,", _reason(error))


def _verification(profile: Profile) -> ssl.SSLContext | bool:
    """Authorities that are believed: the profile's, else this host's, else those of certifi."""
    if not profile.url.startswith("https:"):
        return False
    if profile.ca_file:
        return _authorities(profile.ca_file)
    return _of_host()


def certificates(ca_file: str) -> ssl.SSLContext | bool:
    """Authorities that are believed for others than the portal: those of this host, and its own."""
    found = _of_host()
    if not ca_file:
        return found
    if isinstance(found, bool):
        return _authorities(ca_file)
    try:
        found.load_verify_locations(cafile=os.path.expanduser(ca_file))
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"{ca_file} has no certificates: {error}.") from None
    return found


def _authorities(ca_file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=os.path.expanduser(ca_file))
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"{ca_file} has no certificates: {error}.") from None


def _of_host() -> ssl.SSLContext | bool:
    paths = ssl.get_default_verify_paths()
    if paths.cafile or (paths.capath and os.listdir(paths.capath)):
        return ssl.create_default_context()
    return True


def _built(client: Any, profile: Profile, request: Request) -> httpx.Request:
    url = f"{profile.url}/api/v1/{request.path}"
    if request.query:
        url += f"?{urlencode(request.query)}"
    named: dict[str, Any] = {"headers": request.headers}
    if request.body is not None:
        is_awaited = isinstance(client, httpx.AsyncClient)
        named["content"] = _Awaited(request.body) if is_awaited else request.body
        named["timeout"] = httpx.Timeout(_READ_OF_UPLOAD_S, connect=_CONNECT_S)
    elif request.json is not None:
        named["json"] = request.json
    try:
        built: httpx.Request = client.build_request(request.method, url, **named)
    except (httpx.InvalidURL, ValueError) as error:
        raise UsageError(f"{profile.url} is no address of a portal: {error}.") from None
    return built


def _answer(answer: httpx.Response, content: bytes, begun_s: float) -> Answer:
    headers = {name.lower(): value for name, value in answer.headers.items()}
    url = str(answer.request.url.copy_with(query=None))
    return Answer(url, answer.status_code, headers, content, time.monotonic() - begun_s)


def _silence(profile: Profile, error: Exception) -> Silence:
    is_sent = not isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError))
    return Silence(profile.url, _reason(error), is_sent)


def _reason(error: Exception) -> str:
    if isinstance(error, httpx.ConnectTimeout):
        return f"no connection within {_CONNECT_S:g} s"
    if isinstance(error, httpx.TimeoutException):
        return "no answer in time"
    if isinstance(error, httpx.ProxyError):
        return f"the proxy that the environment names refuses: {error}"
    if isinstance(error, httpx.UnsupportedProtocol):
        return "its address begins neither with http:// nor with https://"
    text = re.sub(r"\[Errno -?\d+\] ", "", str(error)).rstrip(".")
    return text or type(error).__name__


def _length(answer: httpx.Response) -> int | None:
    text = answer.headers.get("content-length", "")
    return int(text) if text.isdigit() and "content-encoding" not in answer.headers else None
