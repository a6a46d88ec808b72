"""Report that a payload has started, sent or spooled from a thread beside the payload.

There is none of a payload that ends at once.
"""

from __future__ import annotations

import threading

from ..control import Attempt, Control
from .client import BadAnswer, Client, NodeFault, Rejected, Superseded, Unauthorised, Unavailable
from .report_spool import ReportSpool

#: A payload that has ended before is reported once only: half of the messages about short ones.
SHORT_PAYLOAD_S = 0.5
_NOT_TOLD = (Rejected, Unauthorised, Unavailable, BadAnswer, NodeFault, OSError)


class StartReport:
    """Reports the start, unless the payload ends so soon that its last report tells all."""

    def __init__(
        self, attempt: Attempt, path: str, client: Client, control: Control, spool: ReportSpool
    ) -> None:
        """`path` is the prefix of the attempt's addresses."""
        self._attempt = attempt
        self._path = path
        self._client = client
        self._control = control
        self._spool = spool
        self._fault: Exception | None = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._tell, name=f"start of {path}", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Wait until it is sent or spooled. Raises what the server has against it."""
        self._is_over.set()
        self._thread.join()
        if self._fault is not None:
            raise self._fault

    def _tell(self) -> None:
        if self._is_over.wait(SHORT_PAYLOAD_S):
            return
        try:
            self._spool.put(f"{self._path}/report", {"event": "started"}, client=self._client)
        except Superseded as error:
            self._fault = error
            self._control.kill(self._attempt, "the attempt is no longer this pilot's")
        except _NOT_TOLD as error:
            self._fault = error
