"""Client of the REST API for the portal's own commands: GET, and upload of files and bytes.

It uses the standard library only, and runs on hosts that have nothing else of Pilotage.
"""

from __future__ import annotations

import json
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

TIMEOUT_S = 60
#: Larger bodies are not held in memory.
_IN_MEMORY_BYTES = 4 * 1024 * 1024
#: The portal is on this host: a proxy that the environment names is not asked.
_DIRECT = build_opener(ProxyHandler({}))


class _NoRedirects(HTTPRedirectHandler):
    """A redirection is an error: the token is for one portal only."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


_BY_PROXY = build_opener(_NoRedirects())


class ApiError(Exception):
    """The API refused a request, or cannot be reached; the text has its answer.

    `status` is that of the answer; 0 without one.
    """

    status = 0


class Unreachable(ApiError):
    """The API gives no answer at the moment."""


@dataclass(frozen=True, slots=True)
class Part:
    """One file of an upload: the form's field, the file, and its name if that is another one."""

    field: str
    path: Path
    name: str = ""


@dataclass(frozen=True, slots=True)
class Client:
    """Speaks for one account with one portal, on this host unless it `is_remote`."""

    url: str
    token: str
    is_remote: bool = False

    def get(self, path: str) -> Any:
        """The decoded answer to GET /api/v1/`path`."""
        return self._send(Request(f"{self.url}/api/v1/{path}"))

    def post_files(
        self,
        path: str,
        parts: Iterable[Part],
        *,
        key: str = "",
        texts: Sequence[tuple[str, str]] = (),
    ) -> Any:
        """The decoded answer to a multipart POST of the files and of texts by their fields.

        Sent again with the same `key`, it has the effect of one.
        """
        boundary = secrets.token_hex(16)
        with tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES) as body:
            for field, text in texts:
                body.write(_head(boundary, f'name="{field}"') + text.encode() + b"\r\n")
            for part in parts:
                named = f'name="{part.field}"; filename="{part.name or part.path.name}"'
                body.write(_head(boundary, named, "application/octet-stream"))
                with part.path.open("rb") as file:
                    shutil.copyfileobj(file, body)
                body.write(b"\r\n")
            body.write(f"--{boundary}--\r\n".encode())
            headers = {
                "Content-Type": f"multipart/form-data; boundary={boundary}",
                "Content-Length": str(body.tell()),
                **({"Idempotency-Key": key} if key else {}),
            }
            body.seek(0)
            url = f"{self.url}/api/v1/{path}"
            return self._send(Request(url, body, headers, method="POST"))

    def post_bytes(self, path: str, content: bytes = b"") -> Any:
        """The decoded answer to a POST of bytes."""
        headers = {"Content-Type": "application/octet-stream"}
        return self._send(Request(f"{self.url}/api/v1/{path}", content, headers, method="POST"))

    def _send(self, request: Request) -> Any:
        request.add_header("Authorization", f"Token {self.token}")
        request.add_header("Accept", "application/json")
        opener = _BY_PROXY if self.is_remote else _DIRECT
        try:
            with opener.open(request, timeout=TIMEOUT_S) as answer:
                return json.load(answer)
        except HTTPError as error:
            text = error.read().decode(errors="replace")[:2000]
            # Who asks for too much at once may ask again, as after a fault of the portal.
            kind = Unreachable if error.code >= 500 or error.code == 429 else ApiError
            refused = kind(f"{request.get_method()} {request.full_url}: {error.code} {text}")
            refused.status = error.code
            raise refused from error
        except (URLError, TimeoutError, ConnectionError, HTTPException, ValueError) as error:
            raise Unreachable(f"{request.full_url}: {error}") from error


def _head(boundary: str, named: str, content_type: str = "") -> bytes:
    lines = [f"--{boundary}", f"Content-Disposition: form-data; {named}"]
    lines += [f"Content-Type: {content_type}"] if content_type else []
    return ("\r\n".join(lines) + "\r\n\r\n").encode()
