"""Check whether a client is still connected, while a claim waits for a job."""

from __future__ import annotations

import socket

from django.http import HttpRequest


def is_connected(request: HttpRequest) -> bool:
    """Tell whether the other end is open, as far as the web server lets that be seen.

    gunicorn hands the connection on; one with TLS of its own cannot be looked into.
    """
    connection = request.META.get("gunicorn.socket")
    if connection is None:
        return True
    try:
        found: bytes = connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except (BlockingIOError, ValueError):
        return True
    except OSError:
        return False
    return found != b""
