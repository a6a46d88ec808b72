"""Helper program of `ArcElement` and `KubernetesElement`: requests over one HTTPS connection.

It is run by `python -I rest_helper.py` in a process of its own, with the question as JSON on its
input and the answer on its output. It imports nothing of Pilotage.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import ssl
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

Question = Mapping[str, Any]

#: Pages of one list: more are a mistake of the server.
_MOST_PAGES = 1000
_GOOD, _BAD, _CONFLICT = 200, 400, 409
#: Stands in a follower's body for the unique id of what the request before it has made.
_OWNER = "@OWNER@"
#: A-REX breaks off one of some hundred TLS handshakes; nothing has been asked by then.
_HANDSHAKES = 3
_PAUSE_S = 0.2
_PIECE_BYTES = 65536
_TOKEN = re.compile(r"[!-~]+")
_UNIQUE_ID = re.compile(r"[A-Za-z0-9-]{1,64}")


def exchange(question: Question) -> list[dict[str, Any]]:
    """Send the requests one after another and return status and body of each.

    A body longer than the limit is cut to its end. A list that is `paged` gives an answer for each
    of its pages. A request with `then` has a follower, which is sent when it has made something,
    and whose answer stands in its place and says that it `follows`; the first such one that is
    refused is the last one sent.
    """
    connection = _connect(question)
    answers: list[dict[str, Any]] = []
    for request in question["requests"]:
        for path in request["paths"]:
            if request.get("paged"):
                answers += _pages(connection, question, request, path)
            else:
                answers.append(_sent(connection, question, request, path))
        if "then" in request:
            if _GOOD <= answers[-1]["status"] < _BAD:
                answers[-1] = _followed(connection, question, request["then"], answers[-1])
            if answers[-1]["status"] >= _BAD and answers[-1]["status"] != _CONFLICT:
                break
    return answers


def _sent(
    connection: http.client.HTTPSConnection,
    question: Question,
    request: Mapping[str, Any],
    path: str,
) -> dict[str, Any]:
    body = request.get("body")
    connection.request(
        request["method"],
        path,
        body.encode() if body is not None else None,
        _headers(question, request),
    )
    with connection.getresponse() as response:
        text = _end(response, question["limit_bytes"]).decode("utf-8", "replace")
        return {"status": response.status, "body": text}


def _pages(
    connection: http.client.HTTPSConnection,
    question: Question,
    request: Mapping[str, Any],
    path: str,
) -> Iterator[dict[str, Any]]:
    """Answers with the pages of a list, until one names no next one or is none."""
    next_path = path
    for _ in range(_MOST_PAGES):
        answer = _sent(connection, question, request, next_path)
        yield answer
        if answer["status"] >= _BAD:
            return
        told = json.loads(answer["body"])["metadata"].get("continue")
        if not told:
            return
        next_path = f"{path}&continue={quote(told, safe='')}"
    raise ValueError(f"the list has more than {_MOST_PAGES} pages")


def _followed(
    connection: http.client.HTTPSConnection,
    question: Question,
    follower: Mapping[str, Any],
    answer: Mapping[str, Any],
) -> dict[str, Any]:
    owner = json.loads(answer["body"])["metadata"]["uid"]
    if not _UNIQUE_ID.fullmatch(owner):
        raise ValueError("what was made has no unique id")
    told = {**follower, "body": follower["body"].replace(_OWNER, owner)}
    return {**_sent(connection, question, told, follower["path"]), "follows": True}


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
