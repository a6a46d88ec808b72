"""Server of the browser tests: pages by Django, static files from memory, kept by the browser."""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.staticfiles import finders
from pytest_django.live_server_helper import LiveServer

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
#: As in an installation, where the name of a file changes with its content.
_KEPT = ("Cache-Control", "max-age=315360000, public, immutable")


class _StaticFiles:
    """Files below the address of static files, each read once; all else is Django's."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._prefix = urlsplit(settings.STATIC_URL).path
        self._files: dict[str, tuple[list[tuple[str, str]], bytes]] = {}

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        found = self._file(path) if path.startswith(self._prefix) else None
        if found is None:
            return self._application(environ, start_response)
        headers, content = found
        start_response("200 OK", list(headers))
        return [content]

    def _file(self, path: str) -> tuple[list[tuple[str, str]], bytes] | None:
        if path not in self._files:
            file = finders.find(path.removeprefix(self._prefix))
            if not isinstance(file, str):
                return None
            content = Path(file).read_bytes()
            kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
            length = ("Content-Length", str(len(content)))
            self._files[path] = ([("Content-Type", kind), length, _KEPT], content)
        return self._files[path]


def live_pages(address: str) -> LiveServer:
    """A running server of which no browser asks for a static file twice."""
    server = LiveServer(address, start=False)
    server.thread.static_handler = _StaticFiles
    server.start()
    return server
