"""Issuers that break off in the middle of an answer are away, and nothing else breaks."""

from __future__ import annotations

import socket
import threading

import pytest
import requests

from portal.identity.issuers import get_json

_CUT = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{"


def test_an_answer_that_breaks_off_is_an_error_of_the_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(_CUT)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(requests.RequestException):
            get_json(f"http://127.0.0.1:{server.getsockname()[1]}/")
        thread.join()
