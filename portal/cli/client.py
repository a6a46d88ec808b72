"""Client of the REST API for the portal's own commands: GET, and upload of files.

It uses the standard library only.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

TIMEOUT_S = 60
#: The portal is on this host: a proxy that the environment names is not asked.
_DIRECT = build_opener(ProxyHandler({}))


class ApiError(Exception):
    """The API refused a request, or cannot be reached; the text has its answer."""


class Unreachable(ApiError):
    """The API gives no answer at the moment."""


@dataclass(frozen=True, slots=True)
class Part:
    """One file of an upload: the form's field, and the file."""

    field: str
    path: Path


@dataclass(frozen=True, slots=True)
class Client:
    """Speaks for one account with one portal."""

    url: str
    token: str

    def get(self, path: str) -> Any:
        """The decoded answer to GET /api/v1/`path`."""
        return self._send(Request(f"{self.url}/api/v1/{path}"))

    def post_files(self, path: str, parts: Iterable[Part], *, key: str) -> Any:
        """The decoded answer to a multipart POST of the files.

        Sent again with the same `key`, it has the effect of one.
        """
        boundary = secrets.token_hex(16)
        body = b"".join(_encoded(part, boundary) for part in parts) + f"--{boundary}--\r\n".encode()
        content_type = f"multipart/form-data; boundary={boundary}"
        headers = {"Content-Type": content_type, "Idempotency-Key": key}
        return self._send(Request(f"{self.url}/api/v1/{path}", body, headers, method="POST"))

    def _send(self, request: Request) -> Any:
        request.add_header("Authorization", f"Token {self.token}")
        request.add_header("Accept", "application/json")
        try:
            with _DIRECT.open(request, timeout=TIMEOUT_S) as answer:
                return json.load(answer)
        except HTTPError as error:
            text = error.read().decode(errors="replace")[:2000]
            kind = Unreachable if error.code >= 500 else ApiError
            raise kind(f"{request.get_method()} {request.full_url}: {error.code} {text}") from error
        except (URLError, TimeoutError, ConnectionError) as error:
            raise Unreachable(f"{request.full_url}: {error}") from error


def _encoded(part: Part, boundary: str) -> bytes:
    disposition = f'form-data; name="{part.field}"; filename="{part.path.name}"'
    head = (
        f"--{boundary}\r\nContent-Disposition: {disposition}\r\n"
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    return head.encode() + part.path.read_bytes() + b"\r\n"
