"""Address of Redis in the form that Celery's transport understands, for Unix sockets too."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit


def broker_url(url: str) -> str:
    """Address for Celery's transport, which knows no `unix:` addresses."""
    parts = urlsplit(url)
    if parts.scheme != "unix":
        return url
    options = dict(parse_qsl(parts.query))
    options["virtual_host"] = options.pop("db", "0")
    return parts._replace(scheme="redis+socket", query=urlencode(options)).geturl()
