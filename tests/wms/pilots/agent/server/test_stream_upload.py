"""Upload of stdout and stderr while they grow, to a small server that keeps pieces."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.wms.pilots.agent.conftest import World, wait_until
from tests.wms.pilots.agent.faulty_proxy import LOSE_ANSWER, PASS
from wms.jobs.models import Stream
from wms.jobs.output.streams import stream_text
from wms.pilots.agent.control import Control
from wms.pilots.agent.server import stream_upload
from wms.pilots.agent.server.client import Client
from wms.pilots.agent.server.stream_upload import StreamUploader


class Keeper(ThreadingHTTPServer):
    """Keeps streams as the portal does; `faults` are answered first, or after it has kept a piece.

    What is left out is kept as zeros, and told in `gaps`.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.kept: dict[str, bytes] = {}
        self.gaps: list[tuple[int, int]] = []
        self.largest = 0
        self.faults: list[int] = []
        self.late_faults: list[int] = []


class _Handler(BaseHTTPRequestHandler):
    server: Keeper

    def do_POST(self) -> None:
        piece = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.faults:
            self._answer(self.server.faults.pop(0), {})
            return
        url = urlsplit(self.path)
        name = url.path.rpartition("/")[2]
        query = {key: int(values[0]) for key, values in parse_qs(url.query).items()}
        offset = query["offset"]
        kept = self.server.kept.get(name, b"")
        self.server.largest = max(self.server.largest, len(piece))
        if offset > len(kept) and query.get("after") != len(kept):
            self._answer(409, {"size": len(kept)})
            return
        if offset > len(kept):
            self.server.gaps.append((len(kept), offset))
            kept = kept.ljust(offset, b"\0")
        if offset == len(kept):
            self.server.kept[name] = kept + piece
        if self.server.late_faults:
            self._answer(self.server.late_faults.pop(0), {})
            return
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
def clock() -> list[float]:
    """The time of the stream_uploader, which stands still."""
    return [0.0]


@pytest.fixture
def stream_uploader(keeper: Keeper, tmp_path: Path, clock: list[float]) -> Iterator[StreamUploader]:
    files = {name: tmp_path / name for name in ("stdout", "stderr")}
    for file in files.values():
        file.touch()
    client = Client(f"http://127.0.0.1:{keeper.server_port}", "pilot", "token", Control())
    stream_uploader = StreamUploader(client, "jobs/7/1", files, clock=lambda: clock[0])
    stream_uploader.start()
    yield stream_uploader
    stream_uploader.stop()


def add(file: Path, content: bytes) -> None:
    with file.open("ab") as opened:
        opened.write(content)


def test_what_is_added_arrives_in_order(
    keeper: Keeper, stream_uploader: StreamUploader, tmp_path: Path
) -> None:
    for number in range(3):
        add(tmp_path / "stdout", b"line %d\n" % number)
        add(tmp_path / "stderr", b"fault %d\n" % number)
        stream_uploader.send_now()
        wait_until(
            lambda n=number: keeper.kept.get("stderr", b"").endswith(b"fault %d\n" % n), "it came"
        )

    assert keeper.kept["stdout"] == b"line 0\nline 1\nline 2\n"


def test_after_a_fault_it_goes_on_where_the_server_is(
    keeper: Keeper, stream_uploader: StreamUploader, tmp_path: Path
) -> None:
    add(tmp_path / "stdout", b"first ")
    stream_uploader.send_now()
    wait_until(lambda: keeper.kept.get("stdout"), "the first piece came")
    # The server was set back, and is away for a moment.
    keeper.kept["stdout"] = b"fi"
    keeper.faults = [503]
    add(tmp_path / "stdout", b"second")

    def has_all() -> bool:
        stream_uploader.send_now()
        return keeper.kept["stdout"] == b"first second"

    wait_until(has_all, "all of it came")


def numbered(first: int, last: int) -> bytes:
    return b"".join(b"line %d\n" % number for number in range(first, last))


def has_come(keeper: Keeper, stream_uploader: StreamUploader, size: int) -> bool:
    stream_uploader.send_now()
    return len(keeper.kept.get("stdout", b"")) == size


@pytest.mark.slow
def test_a_payload_is_followed_however_long_it_prints(
    keeper: Keeper, stream_uploader: StreamUploader, tmp_path: Path, clock: list[float]
) -> None:
    printed = bytearray()
    for part in range(6):
        more = numbered(200_000 * part, 200_000 * (part + 1))
        printed += more
        add(tmp_path / "stdout", more)
        # An answer is lost: a piece is sent again that is there already.
        keeper.late_faults = [503] * (part % 2)
        size = len(printed)
        wait_until(lambda n=size: has_come(keeper, stream_uploader, n), "all that was printed")
        clock[0] += len(more) / stream_upload.RATE_BYTES_S + 10

    assert len(printed) > 10 * 2**20
    assert keeper.kept["stdout"] == bytes(printed)
    assert keeper.gaps == []
    assert keeper.largest == stream_upload.PIECE_BYTES


def test_what_is_printed_too_fast_is_left_out_and_the_end_is_sent(
    keeper: Keeper, stream_uploader: StreamUploader, tmp_path: Path, clock: list[float]
) -> None:
    printed = numbered(0, 900_000)
    add(tmp_path / "stdout", printed)
    wait_until(lambda: has_come(keeper, stream_uploader, len(printed)), "the end of the first part")
    [(start, end)] = keeper.gaps

    assert start == 0
    assert (
        len(printed) - stream_upload.BURST_BYTES
        <= end
        < len(printed) - stream_upload.BURST_BYTES + 20
    )
    assert printed[end - 1 : end] == b"\n"
    assert keeper.kept["stdout"][end:] == printed[end:]

    # Nothing more may be sent until time has passed; the other stream has its own bucket.
    more = numbered(0, 100_000)
    add(tmp_path / "stdout", more)
    add(tmp_path / "stderr", b"fault\n")
    wait_until(
        lambda: has_come(keeper, stream_uploader, len(printed)) and "stderr" in keeper.kept, "it"
    )
    printed += more
    clock[0] += 10
    wait_until(
        lambda: has_come(keeper, stream_uploader, len(printed)), "the end of the second part"
    )
    start, end = keeper.gaps[1]
    assert len(printed) - end <= 10 * stream_upload.RATE_BYTES_S + 20
    assert keeper.kept["stdout"][end:] == printed[end:]


def test_nothing_is_doubled_or_displaced_when_the_answer_is_lost(
    keeper: Keeper, stream_uploader: StreamUploader, tmp_path: Path
) -> None:
    keeper.late_faults = [503]
    printed = numbered(0, 900_000)
    add(tmp_path / "stdout", printed)

    wait_until(lambda: has_come(keeper, stream_uploader, len(printed)), "the end")

    expected = bytearray(printed)
    for start, end in keeper.gaps:
        expected[start:end] = bytes(end - start)
    assert keeper.kept["stdout"] == bytes(expected)
    assert keeper.gaps[0][0] == 0
    assert keeper.gaps[-1][1] < len(printed) - 2**20


def test_a_job_that_prints_much_is_followed_to_its_end_and_is_whole_then(world: World) -> None:
    go_on = world.directory / "go-on"
    job = world.submit(
        f"#!/bin/sh\nseq 1000000\nwhile [ ! -e {go_on} ]; do sleep 0.1; done\necho last\n"
    )
    printed = b"".join(b"%d\n" % number for number in range(1, 1_000_001))
    posts = []

    def fault(method: str, path: str) -> str:
        posts.append(path) if "/streams/stdout" in path else None
        return LOSE_ANSWER if len(posts) in (1, 4) else PASS

    world.server.fault = fault
    agent = world.start()
    wait_until(lambda: Stream.objects.filter(size_bytes=len(printed)).exists(), "the end came")
    text = stream_text(Stream.objects.get(kind="stdout"))
    [gap] = text.gaps
    assert text.read(gap.end, len(printed)) == printed[gap.end :]
    assert text.read(0, len(printed)) == printed[: gap.start]
    assert gap.end > 2**20

    go_on.touch()
    world.wait_for_state(job, "done")

    assert world.log_of(job).encode() == printed + b"last\n"
    agent.process.terminate()
    agent.wait()


def test_a_stream_that_the_server_refuses_is_sent_no_more(
    keeper: Keeper, stream_uploader: StreamUploader, tmp_path: Path
) -> None:
    keeper.faults = [403]
    add(tmp_path / "stdout", b"x")
    stream_uploader.send_now()

    wait_until(lambda: not stream_uploader._thread.is_alive(), "it gave up")
    assert keeper.kept == {}
