"""Upload of a running payload's stdout and stderr, piece by piece, at a limited rate."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from .client import BadAnswer, Client, Rejected, Superseded, Unauthorised, Unavailable

PIECE_BYTES = 256 * 1024
#: Size and rate of each stream's token bucket. What a payload prints faster is left out, and comes
#: with the file at its end.
BURST_BYTES = 4 * 2**20
RATE_BYTES_S = 64 * 1024
#: Where something is left out, the beginning of a line is looked for within so many bytes.
_LINE_BYTES = 64 * 1024
#: The pause grows from the first to the last: who looks at a new job sees something soon.
FIRST_PAUSE_S = 1.0
LAST_PAUSE_S = 30.0

log = logging.getLogger("pilot")


class TokenBucket:
    """Token bucket: bytes of a stream that may be sent now."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._at = clock()
        self._bytes = float(BURST_BYTES)

    def now(self) -> int:
        """Bytes that may be sent now."""
        now = self._clock()
        self._bytes = min(BURST_BYTES, self._bytes + RATE_BYTES_S * (now - self._at))
        self._at = now
        return int(self._bytes)

    def use(self, count: int) -> None:
        """Take bytes that are sent, whether they arrive or not."""
        self._bytes -= count


class StreamUploader:
    """Uploads the streams of one attempt from a thread, as long as the payload runs.

    A piece that does not arrive is sent again at the next turn; nothing waits for it.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        files: Mapping[str, Path],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`path` is the prefix of the attempt's addresses, `files` maps stream names to files."""
        self._client = client
        self._path = path
        self._files = files
        self._sent = dict.fromkeys(files, 0)
        self._buckets = {name: TokenBucket(clock) for name in files}
        self._wake_up = threading.Event()
        self._is_over = False
        self._thread = threading.Thread(target=self._stream, name=f"streams {path}", daemon=True)

    def start(self) -> None:
        """Begin to send, in the background."""
        self._thread.start()

    def send_now(self) -> None:
        """Send what is there now."""
        self._wake_up.set()

    def stop(self) -> None:
        """Send no more; does not wait for a piece that is under way."""
        self._is_over = True
        self._wake_up.set()

    def _stream(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._is_over:
            self._wake_up.wait(pause_s)
            self._wake_up.clear()
            pause_s = min(pause_s * 2, LAST_PAUSE_S)
            try:
                for name in self._files:
                    self._send_new(name)
            except Unavailable as error:
                log.warning("a piece of output was not sent: %s", error)
            except (Superseded, Rejected, Unauthorised, BadAnswer) as error:
                # Whether the pilot or the attempt is refused, reports and heartbeats tell.
                log.warning("the output of %s is not sent while it runs: %s", self._path, error)
                return
            except OSError as error:
                log.warning("output cannot be read: %s", error)

    def _send_new(self, name: str) -> None:
        """Send what is new of one stream; its end alone where all of it would be too much."""
        file, bucket = self._files[name], self._buckets[name]
        end = file.stat().st_size
        allowed = bucket.now()
        after = None
        offset = self._sent[name]
        if end - offset > allowed:
            if allowed < PIECE_BYTES:
                return  # soon more may be sent, and less has to be left out
            after, offset = offset, _line_after(file, end - allowed)
        while offset < end and not self._is_over:
            piece = _read(file, offset, min(PIECE_BYTES, end - offset))
            bucket.use(len(piece))
            address = f"{self._path}/streams/{name}"
            sent = self._sent[name] = self._client.append(address, offset, piece, after=after)
            if sent <= offset:
                return
            after, offset = None, sent


def _line_after(file: Path, offset: int) -> int:
    """Offset of the first line behind an offset; the offset itself in a very long line."""
    line_end = _read(file, offset, _LINE_BYTES).find(b"\n")
    return offset + line_end + 1


def _read(file: Path, offset: int, length: int) -> bytes:
    with file.open("rb") as opened:
        opened.seek(offset)
        return opened.read(length)
