"""What payloads print, sent while it grows: to a small server that keeps pieces."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.wms.pilots.agent.conftest import wait_until
from wms.pilots.agent import streams
from wms.pilots.agent.client import Client
from wms.pilots.agent.control import Control
from wms.pilots.agent.streams import Streamer


class Keeper(ThreadingHTTPServer):
    """Keeps streams as the portal does; `faults` are answered first."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.kept: dict[str, bytes] = {}
        self.pieces = 0
        self.faults: list[int] = []


class _Handler(BaseHTTPRequestHandler):
    server: Keeper

    def do_POST(self) -> None:
        piece = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.faults:
            self._answer(self.server.faults.pop(0), {})
            return
        url = urlsplit(self.path)
        name = url.path.rpartition("/")[2]
        offset = int(parse_qs(url.query)["offset"][0])
        kept = self.server.kept.get(name, b"")
        self.server.pieces += 1
        if offset > len(kept):
            self._answer(409, {"size": len(kept)})
            return
        if offset == len(kept):
            self.server.kept[name] = kept + piece
        self._answer(200, {"size": len(self.server.kept[name])})

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    server = Keeper()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def streamer(keeper: Keeper, tmp_path: Path) -> Iterator[Streamer]:
    files = {name: tmp_path / name for name in ("stdout", "stderr")}
    for file in files.values():
        file.touch()
    client = Client(f"http://127.0.0.1:{keeper.server_port}", "pilot", "token", Control())
    streamer = Streamer(client, "jobs/7/1", files)
    streamer.start()
    yield streamer
    streamer.stop()


def add(file: Path, content: bytes) -> None:
    with file.open("ab") as opened:
        opened.write(content)


def test_what_is_added_arrives_in_order(keeper: Keeper, streamer: Streamer, tmp_path: Path) -> None:
    for number in range(3):
        add(tmp_path / "stdout", b"line %d\n" % number)
        add(tmp_path / "stderr", b"fault %d\n" % number)
        streamer.hurry()
        wait_until(
            lambda n=number: keeper.kept.get("stderr", b"").endswith(b"fault %d\n" % n), "it came"
        )

    assert keeper.kept["stdout"] == b"line 0\nline 1\nline 2\n"


def test_after_a_fault_it_goes_on_where_the_server_is(
    keeper: Keeper, streamer: Streamer, tmp_path: Path
) -> None:
    add(tmp_path / "stdout", b"first ")
    streamer.hurry()
    wait_until(lambda: keeper.kept.get("stdout"), "the first piece came")
    # The server was set back, and is away for a moment.
    keeper.kept["stdout"] = b"fi"
    keeper.faults = [503]
    add(tmp_path / "stdout", b"second")

    def has_all() -> bool:
        streamer.hurry()
        return keeper.kept["stdout"] == b"first second"

    wait_until(has_all, "all of it came")


def test_only_so_much_is_sent_while_a_payload_runs(
    keeper: Keeper, streamer: Streamer, tmp_path: Path
) -> None:
    add(tmp_path / "stdout", b"x" * (streams.LIVE_LIMIT_BYTES + 1000))
    streamer.hurry()

    wait_until(lambda: len(keeper.kept.get("stdout", b"")) == streams.LIVE_LIMIT_BYTES, "the limit")
    before = keeper.pieces
    add(tmp_path / "stderr", b"y")
    streamer.hurry()
    wait_until(lambda: keeper.kept.get("stderr"), "the other stream")
    assert keeper.pieces == before + 1


def test_a_stream_that_the_server_refuses_is_sent_no_more(
    keeper: Keeper, streamer: Streamer, tmp_path: Path
) -> None:
    keeper.faults = [403]
    add(tmp_path / "stdout", b"x")
    streamer.hurry()

    wait_until(lambda: not streamer._thread.is_alive(), "it gave up")
    assert keeper.kept == {}
