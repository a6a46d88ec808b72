"""Client of a Kubernetes API server for tests, with the rights of its administrator."""

from __future__ import annotations

import http.client
import json
import ssl
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

MERGE_PATCH = "application/merge-patch+json"


class ApiError(Exception):
    """The API server said no; `status` is its status code."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


@dataclass
class Api:
    """One API server; with `keeps_open` one connection serves all requests of a thread."""

    port: int
    ca_file: Path
    token: str
    keeps_open: bool = False
    _kept: http.client.HTTPSConnection | None = field(default=None, init=False, repr=False)

    def get(self, path: str) -> Any:
        return self.ask("GET", path)

    def post(self, path: str, body: object) -> Any:
        return self.ask("POST", path, body)

    def patch(self, path: str, body: object) -> Any:
        return self.ask("PATCH", path, body, content_type=MERGE_PATCH)

    def delete(self, path: str, body: object = None) -> Any:
        return self.ask("DELETE", path, body)

    def ask(
        self, method: str, path: str, body: object = None, content_type: str = "application/json"
    ) -> Any:
        """Return the object that the API server answers with; raise `ApiError` or OSError."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content_type}
        connection, self._kept = self._kept or self._connection(), None
        try:
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            status, text = response.status, response.read()
            if self.keeps_open and not response.will_close:
                self._kept = connection
        except http.client.HTTPException as error:
            raise OSError(str(error)) from error
        finally:
            if self._kept is None:
                connection.close()
        told = json.loads(text) if text.startswith(b"{") else text.decode(errors="replace")
        if status >= 400:
            raise ApiError(status, told["message"] if isinstance(told, dict) else told)
        return told

    def _connection(self) -> http.client.HTTPSConnection:
        context = _context(self.ca_file)
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=10)


@cache
def _context(ca_file: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca_file)
