"""Log of the pilot: written to standard output and a file, uploaded in pieces to the server."""

from __future__ import annotations

import logging
import sys
import threading
import time
from pathlib import Path

from .client import BadAnswer, Client, Rejected, Unauthorised, Unavailable

LOG_FILE = "pilot.log"
PIECE_BYTES = 128 * 1024
PIECES_AT_ONCE = 8
#: Largest log at the server, which gets its beginning; the batch system has all of it.
MOST_BYTES = 8 * 1024 * 1024

log = logging.getLogger("pilot")


def log_to(file: Path) -> None:
    """Write the log to standard output and to a file."""
    formatter = logging.Formatter("%(asctime)sZ %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    for handler in (logging.StreamHandler(sys.stdout), logging.FileHandler(file, delay=True)):
        handler.setFormatter(formatter)
        log.addHandler(handler)
    log.setLevel(logging.INFO)


class LogUploader:
    """Uploads what is new in the log; a piece that does not arrive is sent the next time."""

    def __init__(self, client: Client, file: Path) -> None:
        self._client = client
        self._file = file
        self._sent_bytes = 0
        self._is_wanted = True
        self._lock = threading.Lock()

    def upload(self) -> None:
        """Send what is new now. Never raises: a log is not worth a pilot."""
        if not self._lock.acquire(blocking=False):
            return  # another thread sends it
        try:
            for _ in range(PIECES_AT_ONCE):
                if not self._is_wanted or not self._upload_piece():
                    return
        except (Unavailable, BadAnswer, OSError):
            return
        except (Rejected, Unauthorised) as error:
            self._is_wanted = False
            log.warning("the server does not take the log: %s", error)
        finally:
            self._lock.release()

    def _upload_piece(self) -> bool:
        with self._file.open("rb") as content:
            content.seek(self._sent_bytes)
            piece = content.read(min(PIECE_BYTES, MOST_BYTES - self._sent_bytes))
        if not piece:
            return False
        self._sent_bytes = self._client.append("log", self._sent_bytes, piece)
        return True
