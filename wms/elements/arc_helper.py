"""Helper program of `ArcElement`: requests over one HTTPS connection, in a process of its own.

It is run by `python -I arc_helper.py`, with the question as JSON on its input and the answer on its
output. It imports nothing of Pilotage.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import ssl
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

Question = Mapping[str, Any]

#: A-REX breaks off one of some hundred TLS handshakes; nothing has been asked by then.
_HANDSHAKES = 3
_PAUSE_S = 0.2
_PIECE_BYTES = 65536
_TOKEN = re.compile(r"[!-~]+")


def exchange(question: Question) -> list[dict[str, Any]]:
    """Send the requests one after another and return status and body of each.

    A body longer than the limit is cut to its end.
    """
    connection = _connect(question)
    answers = []
    for request in question["requests"]:
        body = request.get("body")
        headers = _headers(question, request)
        for path in request["paths"]:
            connection.request(
                request["method"], path, body.encode() if body is not None else None, headers
            )
            with connection.getresponse() as response:
                text = _end(response, question["limit_bytes"]).decode("utf-8", "replace")
                answers.append({"status": response.status, "body": text})
    return answers


def _connect(question: Question) -> http.client.HTTPSConnection:
    place = urlsplit(question["url"])
    context = _context(question)
    for attempt in range(_HANDSHAKES):
        connection = http.client.HTTPSConnection(
            place.hostname or "", place.port or 443, context=context, timeout=question["timeout_s"]
        )
        try:
            connection.connect()
        except ssl.SSLCertVerificationError:
            raise
        except ssl.SSLError:
            connection.close()
            if attempt == _HANDSHAKES - 1:
                raise
            time.sleep(_PAUSE_S)
        else:
            return connection
    raise AssertionError("unreachable")


def _context(question: Question) -> ssl.SSLContext:
    authorities = question["ca_path"]
    if not authorities:
        context = ssl.create_default_context()
    elif Path(authorities).is_dir():
        context = ssl.create_default_context(capath=authorities)
    else:
        context = ssl.create_default_context(cafile=authorities)
    if question["certificate"]:
        # The library reads from files only: from one that is in memory and has no name.
        descriptor = os.memfd_create("certificate")
        os.write(descriptor, question["certificate"].encode())
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        os.close(descriptor)
    elif question["certificate_file"]:
        key = question["key_file"] or question["certificate_file"]
        context.load_cert_chain(question["certificate_file"], key)
    return context


def _headers(question: Question, request: Mapping[str, Any]) -> dict[str, str]:
    headers = {"Accept": "application/json"}
    if "type" in request:
        headers["Content-Type"] = request["type"]
    if question["token"] or question["token_file"]:
        token = question["token"] or _stored_token(question["token_file"])
        if not _TOKEN.fullmatch(token):
            # The library's own error would tell the whole file.
            raise ValueError("token_file does not hold one token")
        headers["Authorization"] = f"Bearer {token}"
    return headers


def _stored_token(path: str) -> str:
    return Path(path).read_text(encoding="ascii").strip()


def _end(response: http.client.HTTPResponse, limit_bytes: int) -> bytes:
    kept = b""
    while piece := response.read(_PIECE_BYTES):
        kept = (kept + piece)[-limit_bytes:]
    return kept


def main() -> None:
    """Read the question, print the answer; an error is an answer, too."""
    question = json.load(sys.stdin)
    answer: dict[str, Any]
    try:
        answer = {"answer": exchange(question)}
    except Exception as error:  # noqa: BLE001 - whatever it is, the other process has to know
        answer = {"error": f"{type(error).__name__}: {error}", "is_refusal": False}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
