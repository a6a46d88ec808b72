"""Check of webhook URLs and their hosts: no address of networks that only the portal can reach."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from wms.core.errors import InvalidInput
from wms.core.public_addresses import NotPublic, public_addresses

MAX_URL = 500
_PORTS = {"https": 443, "http": 80}


class HostRefused(Exception):
    """The host cannot be called.

    The text is the same for a name that nobody knows and for one that leads to where webhooks must
    not: whoever names hosts learns nothing of the networks that the portal can reach.
    """

    def __init__(self, host: str) -> None:
        super().__init__(
            f"{host} is not known, or is not at a public address; an administrator may allow it "
            "(PILOTAGE_WEBHOOKS_ALLOWED)"
        )


@dataclass(frozen=True, slots=True)
class Target:
    """Parts of a webhook's URL."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """Value of the header Host."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == _PORTS[self.scheme] else f"{name}:{self.port}"


def parsed(url: str, *, allows_http: bool) -> Target:
    """The parts of a URL. Raises InvalidInput where it is not one that could be called."""
    if len(url) > MAX_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise _fault(f"must be at most {MAX_URL} ASCII characters without spaces")
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname or ""
    except ValueError:
        raise _fault("is not an address of the web") from None
    if parts.scheme not in ({"https", "http"} if allows_http else {"https"}):
        raise _fault("must begin with https://" + (" or http://" if allows_http else ""))
    if not host or port == 0:
        raise _fault("names no host")
    if not _is_name(host):
        raise _fault("names no host that there can be")
    if parts.username is not None or parts.password is not None:
        raise _fault("must not contain a user or a password: use the signature")
    if parts.fragment:
        raise _fault("must not contain a fragment (#)")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, host.lower(), port or _PORTS[parts.scheme], path)


def _is_name(host: str) -> bool:
    """False for host names that cannot be resolved: parts that are empty or too long."""
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return True


def _fault(message: str) -> InvalidInput:
    return InvalidInput.of(message, field="url")


def checked_addresses(target: Target, *, allowed: Iterable[str]) -> Sequence[str]:
    """The addresses of the host, all of them checked. Raises HostRefused; the log has the reason.

    `allowed` are networks, addresses and names that the administrator lets webhooks reach.
    """
    try:
        return public_addresses(target.host, target.port, allowed=allowed)
    except NotPublic:
        raise HostRefused(target.host) from None
