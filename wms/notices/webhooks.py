"""HTTP client of webhooks: one signed request to a checked address, no redirects, time limits."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from wms.notices.signing import signature
from wms.notices.webhook_addresses import HostRefused, Target, checked_addresses

#: One step of the network may take so long, and all of a call.
STEP_S = 5.0
CALL_S = 15.0
#: Bytes read of an answer, whose status alone counts.
_ANSWER_BYTES = 4096
#: The error of a call without an answer in this time.
TIMED_OUT = "no answer in time"


@dataclass(frozen=True, slots=True)
class SendResult:
    """Result of sending a message; the error is empty where it was accepted."""

    error: str = ""

    @property
    def is_accepted(self) -> bool:
        """True when the receiver accepted it."""
        return not self.error


@dataclass(frozen=True, slots=True)
class WebhookCall:
    """Request to a webhook; its `id` is the same at every attempt."""

    target: Target
    secret: str
    id: str
    type: str
    body: bytes


def headers_of(call: WebhookCall, *, now_s: int) -> Mapping[str, str]:
    """Headers of an attempt, as docs/reference/webhooks.md describes them."""
    timestamp = str(now_s)
    return {
        "Host": call.target.authority,
        "User-Agent": "Pilotage",
        "Content-Type": "application/json",
        "Pilotage-Delivery": call.id,
        "Pilotage-Type": call.type,
        "Pilotage-Timestamp": timestamp,
        "Pilotage-Signature": f"v1={signature(call.secret, timestamp, call.body)}",
    }


def post(call: WebhookCall, *, allowed: tuple[str, ...] = ()) -> SendResult:
    """Send a request once; it is accepted by an answer from 200 to 299."""
    try:
        addresses = checked_addresses(call.target, allowed=allowed)
    except HostRefused as error:
        return SendResult(str(error))
    try:
        status = _status(call, addresses[0])
    except ssl.SSLCertVerificationError as error:
        return SendResult(f"the certificate was refused: {error.verify_message}")
    except TimeoutError:
        return SendResult(TIMED_OUT)
    except (OSError, http.client.HTTPException) as error:
        return SendResult(f"the connection failed: {type(error).__name__}")
    if 300 <= status < 400:
        return SendResult(f"answered {status}: redirects are not followed")
    return SendResult("" if 200 <= status < 300 else f"answered {status}")


def _status(call: WebhookCall, address: str) -> int:
    connection = _Pinned(call.target, address)
    headers = headers_of(call, now_s=int(time.time()))
    with _deadline(connection) as is_over:
        try:
            connection.request("POST", call.target.path, body=call.body, headers=dict(headers))
            response = connection.getresponse()
            response.read(_ANSWER_BYTES)
        except (OSError, http.client.HTTPException) as error:
            if is_over.is_set():
                raise TimeoutError from error
            raise
        finally:
            connection.close()
    # Headers that were cut off look complete.
    if is_over.is_set():
        raise TimeoutError
    return response.status


class _Pinned(http.client.HTTPConnection):
    """A connection to the address that was checked, whatever its name resolves to now."""

    def __init__(self, target: Target, address: str) -> None:
        super().__init__(target.host, target.port, timeout=STEP_S)
        self._target, self._address = target, address

    def connect(self) -> None:
        """Connect, and prove by TLS that the other side has the name."""
        plain = socket.create_connection((self._address, self._target.port), STEP_S)
        self.sock = plain
        if self._target.scheme == "https":
            context = ssl.create_default_context()
            self.sock = context.wrap_socket(plain, server_hostname=self._target.host)


@contextmanager
def _deadline(connection: http.client.HTTPConnection) -> Iterator[threading.Event]:
    """Cut the connection when all of the call takes too long, however it trickles."""
    is_over = threading.Event()

    def cut() -> None:
        is_over.set()
        try:
            connection.sock.shutdown(socket.SHUT_RDWR)
        except (OSError, AttributeError):
            return

    timer = threading.Timer(CALL_S, cut)
    timer.daemon = True
    timer.start()
    try:
        yield is_over
    finally:
        timer.cancel()
