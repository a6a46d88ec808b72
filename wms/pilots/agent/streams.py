"""What a payload prints, sent piece by piece while it runs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from pathlib import Path

from .client import BadAnswer, Client, Rejected, Superseded, Unauthorised, Unavailable

#: Of each stream so much is sent while it grows; the end comes with the file after the payload.
LIVE_LIMIT_BYTES = 2**20
PIECE_BYTES = 256 * 1024
#: The pause grows from the first to the last: who looks at a new job sees something soon.
FIRST_PAUSE_S = 1.0
LAST_PAUSE_S = 30.0

log = logging.getLogger("pilot")


class Streamer:
    """Sends the streams of one attempt from a thread of its own, as long as the payload runs.

    A piece that does not arrive is sent again at the next turn; nothing waits for it.
    """

    def __init__(self, client: Client, path: str, files: Mapping[str, Path]) -> None:
        """`path` is the prefix of the attempt's addresses, `files` maps stream names to files."""
        self._client = client
        self._path = path
        self._files = files
        self._sent = dict.fromkeys(files, 0)
        self._wake_up = threading.Event()
        self._is_over = False
        self._thread = threading.Thread(target=self._stream, name=f"streams {path}", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def hurry(self) -> None:
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
        """Send what has been added to one stream, up to the limit."""
        while not self._is_over:
            offset = self._sent[name]
            piece = _read(self._files[name], offset, min(PIECE_BYTES, LIVE_LIMIT_BYTES - offset))
            if not piece:
                return
            address = f"{self._path}/streams/{name}"
            self._sent[name] = self._client.append(address, offset, piece)
            if self._sent[name] <= offset:
                return


def _read(file: Path, offset: int, length: int) -> bytes:
    if length <= 0:
        return b""
    with file.open("rb") as opened:
        opened.seek(offset)
        return opened.read(length)
