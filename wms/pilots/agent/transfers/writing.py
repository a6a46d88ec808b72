"""Files that are written, and hashed where asked for, while more of them is received.

A thread beside the receiving one does it: the system and `hashlib` let both run at once.
"""

from __future__ import annotations

import queue
import threading
from pathlib import Path
from typing import Any

#: So much is handed over at once, and so many of these may wait for a slow disk.
_BATCH_BYTES = 2**20
_MOST_WAITING = 4


class Sink:
    """Part of a file from `offset` on, cut off there; a context at whose end all is written.

    `digest` is told what is written. `size` is that of the file, of use after the end.
    A file of less than a batch is written without a thread, as is any where the node has none left.
    """

    def __init__(self, target: Path, offset: int, digest: Any = None) -> None:
        self._file = target.open("r+b" if offset else "wb", buffering=0)
        self._file.seek(offset)
        self._file.truncate()
        self._digest = digest
        self.size = offset
        self._batch: list[bytes] = []
        self._batch_bytes = 0
        self._waiting: queue.Queue[list[bytes]] = queue.Queue(_MOST_WAITING)
        self._thread: threading.Thread | None = None
        self._is_threaded = True
        self._fault: OSError | None = None

    def __enter__(self) -> Sink:
        return self

    def __exit__(self, *_: object) -> None:
        """Write the rest, also of what broke off. Raises OSError."""
        try:
            if self._thread is None:
                self._write(self._batch)
            else:
                if self._batch:
                    self._waiting.put(self._batch)
                # The end.
                self._waiting.put([])
                self._thread.join()
        finally:
            self._file.close()
        self._raise_fault()

    def add(self, piece: bytes) -> None:
        """Take the next bytes. Raises OSError where earlier ones could not be written."""
        self._batch.append(piece)
        self._batch_bytes += len(piece)
        if self._batch_bytes < _BATCH_BYTES:
            return
        self._raise_fault()
        self._hand_over(self._batch)
        self._batch, self._batch_bytes = [], 0

    def _hand_over(self, batch: list[bytes]) -> None:
        if self._thread is None and self._is_threaded:
            thread = threading.Thread(target=self._write_waiting, name="sink", daemon=True)
            try:
                thread.start()
                self._thread = thread
            except RuntimeError:
                self._is_threaded = False
        if self._thread is None:
            self._write(batch)
        else:
            self._waiting.put(batch)

    def _write_waiting(self) -> None:
        while True:
            batch = self._waiting.get()
            if not batch:
                return
            # What comes after a fault is taken all the same: the other thread may wait for room.
            if self._fault is None:
                try:
                    self._write(batch)
                except OSError as error:
                    self._fault = error

    def _write(self, batch: list[bytes]) -> None:
        for piece in batch:
            left = memoryview(piece)
            while left:
                left = left[self._file.write(left) :]
            if self._digest is not None:
                self._digest.update(piece)
            self.size += len(piece)

    def _raise_fault(self) -> None:
        if self._fault is not None:
            raise self._fault
