"""WebDAV server that copies from and to other servers when it is asked to (HTTP-TPC).

It makes macaroons as dCache's documents describe the request for them, and stands in for such a
server: what it hands out is a word, whose caveats it keeps and enforces at each use.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import re
import ssl
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal
from urllib.parse import urlsplit

from tests.wms.placement.servers.http import Handler, HttpServer, serving


@dataclass
class CopyingServer(HttpServer):
    """What the server has, and what of the protocol it does."""

    pulls: bool = True
    pushes: bool = True
    #: It makes credentials for one file.
    makes_macaroons: bool = False
    tells_digests: bool = True
    tells_sizes: bool = True
    #: It says so after this many bytes.
    fails_after: int | None = None
    why: str = "the disk is full"
    #: It says nothing of a copy before it is stopped, breaks off, or says that it has begun.
    silence: Literal["waits", "breaks off", "begins", ""] = ""
    #: One byte that it fetches or sends is another.
    spoils: bool = False
    #: Of macaroons, by their words: path, activity and end.
    macaroons: dict[str, tuple[str, str, datetime]] = field(default_factory=dict)
    #: What it was given for other servers.
    shown: list[str] = field(default_factory=list)


_ACTIVITIES = {"GET": "DOWNLOAD", "HEAD": "DOWNLOAD", "PUT": "UPLOAD"}


class _Copying(Handler):
    site: CopyingServer

    def _lets_in(self, shown: str) -> bool:
        macaroon = self.site.macaroons.get(shown.removeprefix("Bearer "))
        if macaroon is None:
            return super()._lets_in(shown)
        path, activity, ends_at = macaroon
        is_for_this = (path, activity) == (self.path, _ACTIVITIES.get(self.command))
        return is_for_this and datetime.now(UTC) < ends_at

    def do_HEAD(self) -> None:
        if not self.begin():
            return
        content = self.site.files.get(self.path)
        if content is None:
            self.answer(404)
            return
        headers = {}
        if self.site.tells_digests and "Want-Digest" in self.headers:
            md5 = base64.b64encode(hashlib.md5(content).digest()).decode()
            headers["Digest"] = f"adler32={zlib.adler32(content):08x},md5={md5}"
        self.answer(200, headers, len(content) if self.site.tells_sizes else None)

    def do_MKCOL(self) -> None:
        if self.begin():
            self.answer(201)

    def do_MOVE(self) -> None:
        if self.begin():
            there = urlsplit(self.headers["Destination"]).path
            self.site.files[there] = self.site.files.pop(self.path)
            self.answer(201)

    def do_POST(self) -> None:
        if not self.begin():
            return
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        kind = self.headers["Content-Type"]
        if not self.site.makes_macaroons or kind != "application/macaroon-request":
            self.answer(405)
            return
        [caveat] = order["caveats"]
        [seconds] = re.fullmatch(r"PT(\d+)S", order["validity"]).groups()
        macaroon = f"macaroon-{len(self.site.macaroons)}"
        ends_at = datetime.now(UTC) + timedelta(seconds=int(seconds))
        self.site.macaroons[macaroon] = (self.path, caveat.removeprefix("activity:"), ends_at)
        body = json.dumps({"macaroon": macaroon}).encode()
        self.answer(200, {"Content-Type": "application/json"}, len(body))
        self.wfile.write(body)

    def do_COPY(self) -> None:
        if not self.begin():
            return
        site, source = self.site, self.headers.get("Source")
        if not (site.pulls if source else site.pushes):
            self.answer(405)
            return
        site.shown.append(self.headers.get("TransferHeaderAuthorization", ""))
        if site.silence:
            self._be_silent()
            return
        self.send_response(202)
        self.send_header("Content-Type", "text/perf-marker-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        if site.fails_after is not None:
            self._mark(site.fails_after)
            self._say(f"failure: {site.why}")
            return
        if source:
            status, content = self._ask("GET", source)
            good = status == 200
            if good:
                site.files[self.path] = content
        else:
            content = self._spoilt(site.files[self.path])
            status, _ = self._ask("PUT", self.headers["Destination"], content)
            good = status == 201
        self._mark(len(content) if good else 0)
        self._say("success: Created" if good else f"failure: the other end answered {status}")

    def _be_silent(self) -> None:
        if self.site.silence == "begins":
            self.answer(202)
            return
        self.close_connection = True
        if self.site.silence == "waits":
            self.site.stopped.wait(30)

    def _ask(self, method: str, url: str, body: bytes | None = None) -> tuple[int, bytes]:
        parts = urlsplit(url)
        kind = (
            http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        )
        connection = kind(parts.netloc, timeout=10)
        shown = self.headers.get("TransferHeaderAuthorization")
        try:
            connection.request(method, parts.path, body, {"Authorization": shown} if shown else {})
            answer = connection.getresponse()
            return answer.status, self._spoilt(answer.read())
        finally:
            connection.close()

    def _spoilt(self, content: bytes) -> bytes:
        return content[:-1] + bytes([content[-1] ^ 1]) if self.site.spoils else content

    def _mark(self, size: int) -> None:
        self._say(
            f"Perf Marker\n    Timestamp: 1\n    Stripe Index: 0\n"
            f"    Stripe Bytes Transferred: {size}\n    Total Stripe Count: 1\nEnd"
        )

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\n".encode())


@contextmanager
def copying_server(tls: ssl.SSLContext | None = None) -> Iterator[CopyingServer]:
    """A server that runs, over TLS where that is given."""
    site = CopyingServer()
    with serving(site, _Copying, 0, tls):
        yield site
