"""WebDAV server (wsgidav) of a folder."""

from __future__ import annotations

import io
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import pytest

pytest.importorskip("wsgidav", reason="wsgidav is not installed")

from wsgidav.fs_dav_provider import FileResource, FilesystemProvider
from wsgidav.wsgidav_app import WsgiDAVApp


class _ClosedFile(FileResource):
    """File that is closed, too, when its disk is full."""

    def begin_write(self, *, content_type: str | None = None) -> Any:
        self.opened = super().begin_write(content_type=content_type)
        return self.opened

    def end_write(self, *, with_errors: bool) -> None:
        with suppress(OSError):
            self.opened.close()


class _Folder(FilesystemProvider):
    def get_resource_inst(self, path: str, environ: dict[str, Any]) -> Any:
        found = super().get_resource_inst(path, environ)
        if type(found) is FileResource:
            found.__class__ = _ClosedFile
        return found


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        return


class _Server(WSGIServer):
    def handle_error(self, *_: object) -> None:
        """Clients end connections as they like."""


def _with_ends_of_bodies(app: WsgiDAVApp, scheme: str, mkcol: list[str]) -> Callable[..., Any]:
    """The application, whose bodies end where they end: wsgiref lets it read on."""

    def call(environ: dict[str, Any], start_response: Any) -> Any:
        if mkcol and environ["REQUEST_METHOD"] == "MKCOL":
            start_response(mkcol.pop(), [("Content-Length", "0")])
            return []
        environ["wsgi.url_scheme"] = scheme
        size = int(environ.get("CONTENT_LENGTH") or 0)
        environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(size))
        return app(environ, start_response)

    return call


@contextmanager
def dav_server(
    folder: Path,
    *,
    password: str = "",
    tls: ssl.SSLContext | None = None,
    mkcol: list[str] | None = None,
) -> Iterator[int]:
    """The port of a server that runs; with a password, for alice alone; over TLS where given.

    `mkcol` are its answers to the first that have folders made, the last one first.
    """
    users = {"alice": {"password": password}} if password else True
    app = WsgiDAVApp(
        {
            "provider_mapping": {"/": _Folder(str(folder))},
            "simple_dc": {"user_mapping": {"*": users}},
            "http_authenticator": {"accept_basic": True, "accept_digest": False,
                                   "default_to_digest": False},
            "verbose": 0,
            "logging": {"enable": False},
        }
    )  # fmt: skip
    served = _with_ends_of_bodies(app, "https" if tls else "http", mkcol or [])
    server = make_server("127.0.0.1", 0, served, _Server, _Quiet)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
