"""HTTP connection to the server: direct, or through the proxy of the node's environment."""

from __future__ import annotations

import http.client
import urllib.parse
import urllib.request


class HttpRoute:
    """Route to one server; `path` is the prefix of its address before every path of ours."""

    def __init__(self, server_url: str) -> None:
        self._url = urllib.parse.urlsplit(server_url)
        self._proxy = _proxy_for(self._url)
        self.path = self._url.path.rstrip("/")

    def target(self, path: str) -> str:
        """Target in the first line of a request."""
        if self._proxy and self._url.scheme == "http":
            return f"http://{self._url.netloc}{path}"
        return path

    def connect(self, timeout_s: float) -> http.client.HTTPConnection:
        """A connection, not opened yet, of which each step may take so long."""
        host, port = self._url.hostname or "", self._url.port
        is_tls = self._url.scheme == "https"
        kind = http.client.HTTPSConnection if is_tls else http.client.HTTPConnection
        if self._proxy is None:
            return kind(host, port, timeout=timeout_s)
        connection = kind(self._proxy.hostname or "", self._proxy.port, timeout=timeout_s)
        if is_tls:
            connection.set_tunnel(host, port)
        return connection


def _proxy_for(url: urllib.parse.SplitResult) -> urllib.parse.SplitResult | None:
    """Proxy that the node's environment names for this server, if any."""
    proxy = urllib.request.getproxies().get(url.scheme)
    if not proxy or urllib.request.proxy_bypass(url.hostname or ""):
        return None
    return urllib.parse.urlsplit(proxy if "://" in proxy else f"http://{proxy}")
